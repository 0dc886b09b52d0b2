// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace kjudge {

// Draws from a seed, the same on every machine (the standard library's distributions are not).
// SplitMix64: the seeds are secret or unpredictable already, so no more is needed.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 .. bound - 1. The bias of the remainder is below 2^-50 for the bounds used here.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
  bool coin() { return (next() >> 63) != 0; }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace kjudge
