// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "archive.h"

namespace kjudge {

// kjudge as it runs on a machine that has none installed: laid out as `cmake --install` does, with
// every shared library but the C library's own.
struct ProgramFiles {
  std::vector<ArchiveFile> files;  // bin/kjudge, lib/kjudge/*, include/kjudge/*
  std::string version, commit;     // of the binary
  std::string arch;                // "x86_64"
  std::string glibc;               // the oldest it runs with: "2.36"
};

// Section of the binary that holds "VERSION COMMIT": it may be for another machine, so it is not
// asked.
inline constexpr const char* kBuildSection = "kjudge_build";

// Of the binary PREFIX/bin/kjudge, with what belongs to it beside it. Shared libraries are taken
// from PREFIX/lib/kjudge; for the running binary also from where this process has them.
// Fault::usage, naming what is missing, when `binary` is not such a binary or a library is not
// found.
ProgramFiles program_files(const std::filesystem::path& binary);

}  // namespace kjudge
