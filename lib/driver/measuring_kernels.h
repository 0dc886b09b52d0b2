// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels that show what a device can do: how fast it reads and copies memory, how fast it
// multiplies and adds. An image of their own, so that they can be recorded like anybody's. Plain
// types of fixed size only, as in driver/kernels.h.

#include <cstdint>

namespace kjudge {

// Reads all of a buffer.
struct ReadParams {
  uint64_t from, bytes;  // multiples of 16
  uint64_t sink;         // never written, keeps the loads alive
};

// Copies a buffer.
struct CopyParams {
  uint64_t to, from, bytes;  // multiples of 16
};

// Dependent multiply-adds in as many chains as hide their latency.
struct MultiplyAddParams {
  uint64_t iterations;  // of one multiply-add in every chain
  uint64_t sink;        // never written
  double never;         // no sum of a chain is this; the compiler does not know
};

inline constexpr int kGpuChains = 8;    // of each thread
inline constexpr int kHostChains = 64;  // of each block: a block of the host driver is one call

}  // namespace kjudge
