// SPDX-License-Identifier: Apache-2.0
#include "store/random.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <span>

#include "error.h"

namespace kjudge {
namespace {

void fill_random(std::span<unsigned char> out) {
  while (!out.empty()) {
    const ssize_t n = ::getrandom(out.data(), out.size(), 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      throw_errno("getrandom");
    }
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

std::string hex(std::span<const unsigned char> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

std::string random_hex(std::size_t bytes) {
  std::string drawn(bytes, '\0');
  const std::span<unsigned char> span(reinterpret_cast<unsigned char*>(drawn.data()), drawn.size());
  fill_random(span);
  return hex(span);
}

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  fill_random({reinterpret_cast<unsigned char*>(&value), sizeof value});
  return value;
}

std::string random_uuid() {
  std::array<unsigned char, 16> bytes;
  fill_random(bytes);
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text = hex(bytes);
  for (std::size_t at : {8u, 13u, 18u, 23u}) text.insert(at, 1, '-');
  return text;
}

}  // namespace kjudge
