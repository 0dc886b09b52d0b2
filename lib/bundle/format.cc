// SPDX-License-Identifier: Apache-2.0
#include "bundle/format.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <optional>

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

namespace {

// Whether the library's demangler may have it. What a symbol refers back to is written out again,
// so one of 200 bytes, each type a function of the type before and once more of that, comes to 40
// MB, and one of 1000 to more than there is. With r references that is 3^(r/3) at most, and a pack
// expansion (Dp) can repeat its pattern for each byte of the symbol.
bool is_short_written_out(std::string_view symbol) {
  constexpr std::size_t kMost = 32, kPack = 12;
  std::size_t weight = 0;
  for (std::size_t i = 0; i + 1 < symbol.size(); ++i) {
    if (symbol.substr(i, 2) == "Dp") weight += kPack;
    if (symbol[i] != 'S' && symbol[i] != 'T') continue;
    const std::size_t end = symbol.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    if (end != symbol.npos && symbol[end] == '_') ++weight;
  }
  return weight <= kMost;
}

// "cutlass::device_kernel<...>" of "_ZN7cutlass13device_kernelI...": the names that a symbol begins
// with; nullopt when it begins with something else.
std::optional<std::string> leading_names(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return std::nullopt;
  std::string text;
  std::size_t at = symbol.substr(2, 1) == "N" ? 3 : 2;
  while (at < symbol.size() && symbol[at] >= '1' && symbol[at] <= '9') {
    std::size_t length = 0;
    for (; at < symbol.size() && symbol[at] >= '0' && symbol[at] <= '9'; ++at) {
      length = length * 10 + static_cast<std::size_t>(symbol[at] - '0');
      if (length > symbol.size()) return std::nullopt;
    }
    if (length > symbol.size() - at) return std::nullopt;
    text += cat(text.empty() ? "" : "::", symbol.substr(at, length));
    at += length;
    if (symbol[2] != 'N') break;
  }
  if (text.empty()) return std::nullopt;
  return at < symbol.size() && symbol[at] == 'I' ? text + "<...>" : text;
}

}  // namespace

std::string readable_name(const std::string& symbol) {
  constexpr std::size_t kMost = 160;
  int status = -1;
  std::unique_ptr<char, void (*)(void*)> demangled(nullptr, std::free);
  if (is_short_written_out(symbol)) {
    demangled.reset(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status));
  }
  std::string name = status == 0 ? demangled.get() : leading_names(symbol).value_or(symbol);
  if (name.starts_with("void ")) name.erase(0, 5);
  if (name.size() > kMost) name.replace(kMost - 3, name.npos, "...");
  return name;
}

std::string suspects(const Graph& graph) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> kernels;  // and their nodes
  std::size_t launched = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto* kernel = std::get_if<KernelNode>(&graph.nodes[i]);
    if (kernel == nullptr) continue;
    ++launched;
    const std::string name = readable_name(kernel->name);
    const auto known = std::find_if(kernels.begin(), kernels.end(),
                                    [&](const auto& other) { return other.first == name; });
    (known == kernels.end() ? kernels.emplace_back(name, 0) : *known).second.push_back(i);
  }
  if (kernels.empty()) return "a copy or memset";
  static constexpr std::size_t kMostNamed = 8;
  const auto numbered = [](const std::vector<std::size_t>& nodes) {
    std::string text = nodes.size() == 1 ? "node " : "nodes ";
    for (std::size_t i = 0; i < std::min(nodes.size(), kMostNamed); ++i) {
      text += cat(i == 0 ? "" : ", ", nodes[i]);
    }
    return nodes.size() > kMostNamed ? cat(text, " and ", nodes.size() - kMostNamed, " more")
                                     : text;
  };
  if (kernels.size() == 1) {
    const auto& [name, nodes] = kernels.front();
    return cat("kernel ", name, " (", nodes.size() == 1 ? "" : "one of ", numbered(nodes), ")");
  }
  std::string names;
  for (std::size_t i = 0; i < std::min(kernels.size(), kMostNamed); ++i) {
    names += cat(i == 0 ? "" : "; ", kernels[i].first, ": ", numbered(kernels[i].second));
  }
  if (kernels.size() > kMostNamed) names += cat("; and ", kernels.size() - kMostNamed, " more");
  return cat("one of ", launched, " kernels (", names, ")");
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
