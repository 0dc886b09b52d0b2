// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace kjudge {

// The names in the central directory at the end of a zip, which is where its readers look for what
// is in it. Throws Fault::malformed with no more than the reason unless the directory is whole and
// the file ends with it, or with a comment in it; for a zip of several disks or of zip64, which
// needs more than 4 GiB; unless its entries, each under the name that it has there, are all that
// stands before it: who reads entry by entry, without the directory, finds the same. Fault::host
// when the file cannot be read.
std::multiset<std::string> read_zip_directory(const std::filesystem::path& path);

}  // namespace kjudge
