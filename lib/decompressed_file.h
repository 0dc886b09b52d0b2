// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "file.h"

namespace kjudge {

// How the bytes that a file begins with say it is compressed.
enum class Compression { none, gzip, zstd };
Compression compression_of(std::string_view first_bytes);

// The bytes of a file of strangers, decompressed where they are gzip or zstd: all of them, each
// with its checksum, and nothing after the last. Memory for zstd's window is at most 128 MiB.
class DecompressedFile {
 public:
  // Gives up after `most` bytes. Fault::host when it cannot be read, here and in next().
  DecompressedFile(const std::filesystem::path& path, std::uint64_t most);

  Compression compression() const { return compression_; }
  // The next bytes, until the next call; empty at the end, and where broken() says why there are no
  // more.
  std::string_view next();
  const std::string& broken() const { return broken_; }

 private:
  bool refill();
  // Both decompress what is in input_, as far as there is room.
  std::size_t inflate_some();
  std::size_t zstd_some();

  std::filesystem::path path_;
  std::uint64_t left_;
  Fd file_;
  std::vector<char> block_, output_;
  std::string_view input_;  // of block_, not yet decompressed
  Compression compression_;
  std::unique_ptr<z_stream, void (*)(z_stream*)> zlib_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> zstd_;
  bool between_ = true;        // no member or frame is begun
  bool more_to_come_ = false;  // from what is taken of input_ already
  bool first_ = true;
  std::string broken_;
};

}  // namespace kjudge
