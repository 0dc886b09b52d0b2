// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "driver/kernels.h"

namespace kjudge {

// What a challenge, and the request for a capture, call the kinds. fill_bits is for kjudge only.
inline constexpr std::array<std::pair<std::string_view, FillKind>, 16> kFillWords = {{
    {"constant", fill_constant},
    {"uniform", fill_uniform},
    {"normal", fill_normal},
    {"integers", fill_integers},
    {"bernoulli", fill_bernoulli},
    {"permutation", fill_permutation},
    {"block_table", fill_block_table},
    {"one_hot", fill_one_hot},
    {"power_law", fill_power_law},
    {"lengths", fill_lengths},
    {"offsets", fill_offsets},
    {"sorted", fill_sorted},
    {"low_rank", fill_low_rank},
    {"quantised", fill_quantised},
    {"scales", fill_scales},
    {"python", fill_python},
}};

// Empty for fill_bits.
constexpr std::string_view name(FillKind kind) {
  for (const auto& [word, value] : kFillWords) {
    if (value == kind) return word;
  }
  return {};
}

constexpr std::optional<FillKind> parse_fill_kind(std::string_view text) {
  for (const auto& [word, value] : kFillWords) {
    if (word == text) return value;
  }
  return std::nullopt;
}

}  // namespace kjudge
