// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kjudge {

// From the kernel's generator: nobody can guess them.
std::string random_hex(std::size_t bytes);
std::uint64_t random_u64();
std::string random_uuid();  // version 4

}  // namespace kjudge
