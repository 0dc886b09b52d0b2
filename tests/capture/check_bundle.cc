// SPDX-License-Identifier: Apache-2.0

// check_bundle FILE: reads all of a bundle, memory too, and prints it. Exit status 1 says why not.

#include <cstdio>

#include "bundle/bundle.h"
#include "error.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const std::filesystem::path path = argv[1];
    const kjudge::BundleReader reader(path);
    for (std::size_t i = 0; i < reader.bundle().regions.size(); ++i) {
      if (reader.bundle().regions[i].role == kjudge::Role::state) {
        reader.read_memory(i, [](std::uint64_t, std::span<const std::byte>) {});
      }
    }
    std::fputs(kjudge::dump(reader).c_str(), stdout);
    return 0;
  } catch (const kjudge::Error& error) {
    std::fprintf(stderr, "check_bundle: %s\n", error.what());
    return 1;
  }
}
