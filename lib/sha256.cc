// SPDX-License-Identifier: Apache-2.0
#include "sha256.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <vector>

#include "error.h"

namespace kjudge {

namespace {

using Digest = std::array<unsigned char, 32>;

std::string hex(const Digest& digest) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  Digest digest;
  KJ_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr));
  return hex(digest);
}

std::string sha256_of_file(int fd, std::string_view name) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  KJ_CHECK(context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr));
  std::vector<char> block(1u << 20);
  for (off_t at = 0;;) {
    const ssize_t n = ::pread(fd, block.data(), block.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(std::string(name));
    if (n == 0) break;
    KJ_CHECK(EVP_DigestUpdate(context.get(), block.data(), static_cast<std::size_t>(n)));
    at += n;
  }
  Digest digest;
  KJ_CHECK(EVP_DigestFinal_ex(context.get(), digest.data(), nullptr));
  return hex(digest);
}

}  // namespace kjudge
