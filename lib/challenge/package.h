// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "archive.h"
#include "challenge/challenge.h"
#include "json_fields.h"

namespace kjudge {

// What a contestant downloads, see kjudge-package(5): one folder NAME-VERSION with TASK.md,
// submission.py, harness.py, submit.py, package.json and kjudge itself, which holds the challenge.

struct PackedFile {
  std::string name, sha256;
};

// package.json
struct PackageManifest {
  std::string challenge;
  int challenge_version = 1;
  std::string challenge_sha256;
  std::string server;  // where submit.py hands in; may be empty
  std::string kjudge_version, kjudge_commit;
  std::string arch;               // of the binary
  std::string glibc;              // the oldest that the binary runs with
  std::vector<PackedFile> files;  // all but package.json, in the order of their names
};

const FieldTable<PackageManifest>& package_table();
std::string package_to_json(const PackageManifest& manifest);
// Fault::malformed with the file, the path of the field, what was expected and what was found.
PackageManifest package_from_json(const std::string& text, const std::filesystem::path& path);

// What `kjudge pack --json` prints.
struct Packed {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;
  bool checked = false;
  PackageManifest package;
};
const FieldTable<Packed>& packed_table();

struct PackageOptions {
  std::filesystem::path binary;  // PREFIX/bin/kjudge, see program_files()
  std::string server;            // http or https; empty: none
};

struct Package {
  PackageManifest manifest;
  std::string bytes;  // of the tar.zst; the same input, the same bytes
};

// Nothing that the challenge hides is in it. Fault::usage for a server's address that is none and
// what program_files() throws; Fault::package for a hidden file that is not there,
// unless the challenge is an unpacked package's.
Package make_package(const Challenge& challenge, const PackageOptions& options);

}  // namespace kjudge
