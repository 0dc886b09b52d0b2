// SPDX-License-Identifier: Apache-2.0
#include <iostream>

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
    if (options->json) {
      print_bundle_json(reader.bundle(), std::cout);
    } else {
      std::cout << printable(dump(reader));
    }
    status = exit_done;
  });
}

}  // namespace kjudge
