// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inputs that were accepted. One that was refused stays so, for the same reason, whatever else is
// changed in it; so a mutator that knows the format starts from these.

#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace kjudge {

class Accepted {
 public:
  using Input = std::vector<std::uint8_t>;

  void add(std::span<const std::uint8_t> input) {
    if (!hashes_.insert(hash(input)).second) return;
    if (inputs_.size() < kMost) {
      inputs_.emplace_back(input.begin(), input.end());
    } else {
      inputs_[next_++ % kMost].assign(input.begin(), input.end());
    }
  }

  // `input` itself if it was accepted, and now and then if not; else one that was.
  std::span<const std::uint8_t> base(std::span<const std::uint8_t> input,
                                     std::minstd_rand& random) const {
    if (inputs_.empty() || hashes_.count(hash(input)) != 0 || random() % 8 == 0) return input;
    return inputs_[random() % inputs_.size()];
  }

 private:
  static constexpr std::size_t kMost = 256;

  static std::size_t hash(std::span<const std::uint8_t> input) {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(input.data()), input.size()});
  }

  std::vector<Input> inputs_;
  std::unordered_set<std::size_t> hashes_;
  std::size_t next_ = 0;
};

}  // namespace kjudge
