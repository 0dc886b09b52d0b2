// SPDX-License-Identifier: Apache-2.0
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace kjudge {

// Keys of the values a capture runs on: the recorder makes them, and whoever has the bundle can
// make them again from Provenance::seed to repeat the capturing process's own replay and compare
// CapturedShape::output_hashes. XXH3-64 over the seed (8 bytes, little-endian), one byte for the
// use, the shape's name, a zero byte, and the tensor's name.
enum class MadeUp : std::uint8_t {
  input = 0,   // generator values of an input or inout
  poison = 1,  // fill_bits over an output before the replay
};

inline std::uint64_t made_up_key(std::uint64_t seed, std::string_view shape,
                                 std::string_view tensor, MadeUp use = MadeUp::input) {
  std::string text;
  for (int byte = 0; byte < 8; ++byte) text.push_back(static_cast<char>(seed >> (8 * byte)));
  text.push_back(static_cast<char>(use));
  text.append(shape).push_back('\0');
  text.append(tensor);
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace kjudge
