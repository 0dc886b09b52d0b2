// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>

#include "bundle/bundle.h"
#include "judge/bundle_json.h"
#include "judge/report.h"
#include "options.h"

namespace kjudge {
namespace {

struct DumpOptions {
  bool json = false;
  std::string bundle;
};

}  // namespace

void add_dump(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<DumpOptions>(app, "dump", "Print what is in a bundle", command);
  command->add_option("bundle", options->bundle, "A .kjb file")->type_name("FILE")->required();
  command->callback([=, &status] {
    const BundleReader reader(options->bundle);
    // Memory is not printed, but what is printed should be of a whole bundle.
    for (std::size_t i = 0; i < reader.bundle().regions.size(); ++i) {
      if (reader.bundle().regions[i].role == Role::state) {
        reader.read_memory(i, [](std::uint64_t, std::span<const std::byte>) {});
      }
    }
    if (options->json) {
      print_bundle_json(reader.bundle(), std::cout);
    } else {
      std::cout << printable(dump(reader));
    }
    status = exit_done;
  });
}

}  // namespace kjudge
