// SPDX-License-Identifier: Apache-2.0
#include "decompressed_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>

#include "error.h"

namespace kjudge {
namespace {

constexpr std::size_t kBlockBytes = 1 << 16;
constexpr int kGzipOnly = 15 + 16;  // of zlib's windowBits
constexpr int kMostWindowLog = 27;

void end_inflating(z_stream* stream) {
  ::inflateEnd(stream);
  delete stream;
}

}  // namespace

Compression compression_of(std::string_view first_bytes) {
  if (first_bytes.starts_with("\x1f\x8b")) return Compression::gzip;
  if (first_bytes.starts_with("\x28\xb5\x2f\xfd")) return Compression::zstd;
  return Compression::none;
}

DecompressedFile::DecompressedFile(const std::filesystem::path& path, std::uint64_t most)
    : path_(path),
      left_(most),
      file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)),
      block_(kBlockBytes),
      zlib_(nullptr, &end_inflating),
      zstd_(nullptr, &ZSTD_freeDCtx) {
  if (!file_.valid()) throw_errno(path.string());
  refill();
  compression_ = compression_of(input_);
  if (compression_ == Compression::none) return;
  output_.resize(kBlockBytes);
  if (compression_ == Compression::gzip) {
    auto stream = std::make_unique<z_stream>();
    KJ_CHECK(::inflateInit2(stream.get(), kGzipOnly) == Z_OK);
    zlib_.reset(stream.release());
  } else {
    zstd_.reset(ZSTD_createDCtx());
    KJ_CHECK(zstd_ != nullptr && ZSTD_isError(ZSTD_DCtx_setParameter(
                                     zstd_.get(), ZSTD_d_windowLogMax, kMostWindowLog)) == 0);
  }
}

// False: the file is at its end. The first block is whole, so that its first bytes tell what it is.
bool DecompressedFile::refill() {
  std::size_t filled = 0;
  while (filled < block_.size()) {
    const ssize_t n = ::read(file_.get(), block_.data() + filled, block_.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(path_.string());
    if (n == 0) break;
    filled += static_cast<std::size_t>(n);
  }
  input_ = {block_.data(), filled};
  return filled > 0;
}

std::string_view DecompressedFile::next() {
  std::size_t made = 0;
  while (made == 0 && broken_.empty()) {
    if (input_.empty() && !more_to_come_ && !refill()) {
      if (!between_) broken_ = "cut short";
      return {};
    }
    if (compression_ == Compression::none) {
      made = std::exchange(input_, {}).size();
    } else {
      made = compression_ == Compression::gzip ? inflate_some() : zstd_some();
      more_to_come_ = !between_ && made == output_.size();
    }
  }
  if (!broken_.empty()) return {};
  const std::string_view bytes(compression_ == Compression::none ? block_.data() : output_.data(),
                               made);
  if (made > left_) broken_ = "it holds more than its files may";
  if (std::exchange(first_, false) && compression_ != Compression::none &&
      compression_of(bytes) != Compression::none) {
    broken_ = "compressed more than once";
  }
  left_ -= std::min<std::uint64_t>(left_, made);
  return broken_.empty() ? bytes : std::string_view();
}

std::size_t DecompressedFile::inflate_some() {
  z_stream& stream = *zlib_;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
  stream.avail_in = static_cast<uInt>(input_.size());
  stream.next_out = reinterpret_cast<Bytef*>(output_.data());
  stream.avail_out = static_cast<uInt>(output_.size());
  const int status = ::inflate(&stream, Z_NO_FLUSH);
  input_.remove_prefix(input_.size() - stream.avail_in);
  between_ = status == Z_STREAM_END;
  if (between_) {
    KJ_CHECK(::inflateReset(&stream) == Z_OK);  // another may follow
  } else if (status != Z_OK && status != Z_BUF_ERROR) {
    broken_ = stream.msg != nullptr ? stream.msg : "cannot be decompressed";
  }
  return output_.size() - stream.avail_out;
}

std::size_t DecompressedFile::zstd_some() {
  ZSTD_inBuffer in{input_.data(), input_.size(), 0};
  ZSTD_outBuffer out{output_.data(), output_.size(), 0};
  const std::size_t status = ZSTD_decompressStream(zstd_.get(), &out, &in);
  input_.remove_prefix(in.pos);
  if (ZSTD_isError(status) != 0) {
    broken_ = ZSTD_getErrorCode(status) == ZSTD_error_frameParameter_windowTooLarge
                  ? "zstd needs more than 128 MiB for it; compress without --long and --ultra"
                  : ZSTD_getErrorName(status);
    return 0;
  }
  between_ = status == 0;
  return out.pos;
}

}  // namespace kjudge
