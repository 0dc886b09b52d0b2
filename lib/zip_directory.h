// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>

namespace kjudge {

struct ZipDirectory {
  std::multiset<std::string> names;
  // What a whole zip has that no submission may have, and what to do; empty: nothing.
  std::string rule;
  std::string entry;  // that breaks it; empty: the zip as a whole does
};

// The central directory at the end of a zip, which is where its readers look for what is in it.
// `rule` is broken by an entry that is encrypted, whether its own head says so or the directory, or
// has a backslash in its name, or is neither a file, a folder nor a link, unless it is
// left_out_path(); by more than `most_entries`, several disks and zip64. Throws
// Fault::malformed with no more than the reason unless the directory is whole and the file ends
// with it, or with a comment in it; unless its entries, each under the name that it has there, are
// all that stands before it: who reads entry by entry, without the directory, finds the same.
// Fault::host when the file cannot be read.
ZipDirectory read_zip_directory(const std::filesystem::path& path, std::size_t most_entries);

}  // namespace kjudge
