// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random numbers of kjudge's kernels: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), counter based, so any element is made by itself. Included
// by device code, by the host driver's module and by host code.

#include <cstdint>

#ifdef __CUDACC__
#define KJ_EVERYWHERE __host__ __device__ __forceinline__
#else
#define KJ_EVERYWHERE inline
#endif

namespace kjudge {

struct PhiloxWords {
  std::uint32_t word[4];
};

// The 4 words at `counter` of the stream of `key`.
KJ_EVERYWHERE PhiloxWords philox(std::uint64_t key, std::uint64_t counter) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter);
  std::uint32_t c1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c2 = 0, c3 = 0;
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t m0 = std::uint64_t{0xD2511F53} * c0;
    const std::uint64_t m1 = std::uint64_t{0xCD9E8D57} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(m1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(m0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(m1);
    c3 = static_cast<std::uint32_t>(m0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

// Byte `index` of a tensor filled with fill_bits: byte index % 16, little-endian, of the words at
// counter index / 16.
KJ_EVERYWHERE std::uint8_t poison_byte(std::uint64_t key, std::uint64_t index) {
  const PhiloxWords words = philox(key, index / 16);
  return static_cast<std::uint8_t>(words.word[index % 16 / 4] >> (8 * (index % 4)));
}

}  // namespace kjudge
