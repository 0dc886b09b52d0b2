// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between the two files that validate(): the bundle's tables, and its graphs.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "bundle/format.h"
#include "error.h"

namespace kjudge {

inline constexpr std::size_t kSymbolBytes = 64u << 10;  // mangled C++ templates are long

[[noreturn]] inline void refuse(const std::string& what) { throw Error(Fault::malformed, what); }

inline std::uint64_t multiply(std::uint64_t a, std::uint64_t b, std::string_view what) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) refuse(cat(what, " does not fit 64 bits"));
  return product;
}

inline std::uint64_t add(std::uint64_t a, std::uint64_t b, std::string_view what) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) refuse(cat(what, " does not fit 64 bits"));
  return sum;
}

// UTF-8 without control characters, not empty, at most `most` bytes.
void check_name(std::string_view what, std::string_view text, std::size_t most);

// Index of the one region that holds [address, address + size); `regions` are ascending.
std::size_t region_of(std::span<const Region> regions, std::uint64_t address, std::uint64_t size,
                      std::string_view what);

// Names of what a module lets a launch start. Those of a shared object are in a table that only
// loading makes readable: there the driver answers.
using KernelNames = std::optional<std::unordered_set<std::string_view>>;

// `kernels` by module.
void check_graph(const Bundle& bundle, const Graph& graph, std::span<const KernelNames> kernels);

}  // namespace kjudge
