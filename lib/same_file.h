// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace kjudge {

// Whether `path` is the file or folder that is open, and no link to it. After a rename that failed:
// a server may have done what it was asked, and been asked again because its answer was lost.
bool is_same_file(int open, const std::filesystem::path& path);

}  // namespace kjudge
