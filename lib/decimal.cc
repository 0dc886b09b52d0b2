// SPDX-License-Identifier: Apache-2.0
#include "decimal.h"

#include <array>
#include <charconv>

namespace kjudge {

std::string decimal(double value) {
  std::array<char, 400> digits;  // of the largest there is
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  return {digits.data(), end.ptr};
}

}  // namespace kjudge
