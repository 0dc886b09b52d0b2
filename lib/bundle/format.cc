// SPDX-License-Identifier: Apache-2.0
#include "bundle/format.h"

#include <cxxabi.h>

#include <cstdlib>

#define XXH_INLINE_ALL
#include <xxhash.h>
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

namespace kjudge {

std::string_view name(BundleSection section) {
  switch (section) {
    case BundleSection::memory:
      return "memory";
    case BundleSection::blocks:
      return "blocks";
    case BundleSection::provenance:
      return "provenance";
    case BundleSection::modules:
      return "modules";
    case BundleSection::regions:
      return "regions";
    case BundleSection::shapes:
      return "shapes";
    case BundleSection::tensors:
      return "tensors";
    case BundleSection::limits:
      return "limits";
  }
  return "unknown";
}

std::uint64_t xxh3(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

void decompress(std::span<const std::byte> stored, std::span<std::byte> out) {
  // One plain frame only: libzstd itself would also take several, skippable ones, and those of old
  // formats, whose decoders are seldom tried with hostile bytes.
  ZSTD_frameHeader header;
  if (ZSTD_getFrameHeader(&header, stored.data(), stored.size()) != 0 ||
      header.frameType != ZSTD_frame || header.frameContentSize != out.size() ||
      ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size()) {
    throw Error(Fault::malformed, cat("not one zstd frame of ", out.size(), " bytes"));
  }
  const std::size_t size = ZSTD_decompress(out.data(), out.size(), stored.data(), stored.size());
  if (ZSTD_isError(size)) {
    throw Error(Fault::malformed, cat("zstd: ", ZSTD_getErrorName(size)));
  }
  if (size != out.size()) throw Error(Fault::malformed, "zstd: frame is shorter than it says");
}

BundleCompressor::BundleCompressor() : context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

BundleCompressor::~BundleCompressor() { ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(context_)); }

std::optional<std::size_t> BundleCompressor::compress(std::span<const std::byte> bytes,
                                                      std::span<std::byte> out, int level) {
  const std::size_t size = ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(context_), out.data(),
                                             out.size(), bytes.data(), bytes.size(), level);
  if (!ZSTD_isError(size)) return size;
  if (ZSTD_getErrorCode(size) == ZSTD_error_dstSize_tooSmall) return std::nullopt;
  throw Error(Fault::bug, cat("zstd: ", ZSTD_getErrorName(size)));
}

std::string readable_name(const std::string& symbol) {
  constexpr std::size_t kMost = 160;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 ? demangled.get() : symbol;
  if (name.starts_with("void ")) name.erase(0, 5);
  if (name.size() > kMost) name.replace(kMost - 3, name.npos, "...");
  return name;
}

std::string_view name(Role role) {
  switch (role) {
    case Role::state:
      return "state";
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::inout:
      return "inout";
  }
  return "unknown";
}

}  // namespace kjudge
