// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kjudge {

// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view bytes);
// The same of all that an open file holds, wherever its offset is. Fault::host when it cannot be
// read.
std::string sha256_of_file(int fd, std::string_view name);

}  // namespace kjudge
