// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors of the kinds from fill_bernoulli on: the loops around kernels/structured.h.

#include "driver/kernels.h"
#include "driver/kernels/structured.h"
#include "driver/kernels/values.h"

namespace kjudge {

constexpr int kMostRank = 128;  // fill_low_rank: a sign each in the words of one counter

KJ_DEVICE void store_whole(const FillParams& p, std::uint64_t index, std::int64_t value) {
  if (static_cast<DType>(p.dtype) == DType::int64) {
    at<std::int64_t>(p.address)[index] = value;
  } else {
    store_element(static_cast<DType>(p.dtype), at<void>(p.address), index,
                  static_cast<double>(value), true);
  }
}

// Element i is b where word i % 4 at counter i / 4 is below a * 2^32.
KJ_DEVICE void fill_bernoulli_tile(const FillParams& p, std::uint64_t first, std::uint64_t count) {
  std::uint32_t words[4][kLanes];
  random_words(p.key, first / 4, words);
  const auto bound = static_cast<std::uint64_t>(p.a * 0x1p32);
  for (std::uint64_t i = 0; i < count; ++i) {
    store_element(static_cast<DType>(p.dtype), at<void>(p.address), first + i,
                  words[i % 4][i / 4] < bound ? p.b : 0, true);
  }
}

// Calls use(i, value) for the normal values of elements first .. first + count - 1, in order.
template <class Use>
KJ_DEVICE void each_normal(const FillParams& p, std::uint64_t first, std::uint64_t count,
                           float mean, float deviation, Use use) {
  const std::uint64_t end = first + count;
  for (std::uint64_t group = first / 4; group * 4 < end; group += kLanes) {
    const Values made = normal_values(p.key, group, mean, deviation);
    for (std::uint64_t i = 0; i < kTile; ++i) {
      const std::uint64_t index = group * 4 + i;
      if (index >= first && index < end) use(index, made.value[i]);
    }
  }
}

// Row r of a matrix has `rank` normal values u, those of indices from r times rank, rounded up to a
// multiple of 4; column j of matrix m has `rank` signs s, the bits of the words at kSecondStream +
// m
// * row + j. The element is b / sqrt(rank) * sum of s_k u_k: normal by itself, and the matrix has
// that rank.
KJ_DEVICE void fill_low_rank_tile(const FillParams& p, std::uint64_t first, std::uint64_t count) {
  const int rank = static_cast<int>(p.c);
  const auto stride = static_cast<std::uint64_t>((rank + 3) / 4 * 4);
  const float factor = static_cast<float>(p.b) / root(static_cast<float>(rank));
  for (std::uint64_t begin = first, end = first + count; begin < end;) {
    const std::uint64_t row = begin / p.row, row_end = (row + 1) * p.row;
    const int width = static_cast<int>((row_end < end ? row_end : end) - begin);
    float terms[kMostRank];
    each_normal(p, row * stride, static_cast<std::uint64_t>(rank), 0, 1,
                [&](std::uint64_t index, float value) { terms[index - row * stride] = value; });
    const std::uint64_t column = begin / p.size * p.row + begin % p.row;
    std::uint32_t signs[4][kTile];
    float sum[kTile];
    for (int i = 0; i < width; ++i) {
      const PhiloxWords words = philox(p.key, kSecondStream + column + static_cast<unsigned>(i));
      for (int word = 0; word < 4; ++word) signs[word][i] = words.word[word];
      sum[i] = 0;
    }
    for (int k = 0; k < rank; ++k) {
      for (int i = 0; i < width; ++i) {
        sum[i] += (signs[k / 32][i] >> (k % 32) & 1) != 0 ? -terms[k] : terms[k];
      }
    }
    for (int i = 0; i < width; ++i) {
      store_element(static_cast<DType>(p.dtype), at<void>(p.address),
                    begin + static_cast<unsigned>(i), static_cast<double>(factor * sum[i]), true);
    }
    begin += static_cast<unsigned>(width);
  }
}

// A block of fill_quantised, or its scale: the normal values are made once for the largest and once
// more to be stored, which takes no memory.
KJ_DEVICE void fill_blocks(const FillParams& p, Range blocks) {
  const auto dtype = static_cast<DType>(p.dtype), other = static_cast<DType>(p.other);
  const bool of_scales = p.kind == fill_scales;
  const auto mean = static_cast<float>(p.a), deviation = static_cast<float>(p.b);
  for (std::uint64_t block = blocks.begin; block < blocks.end; block += blocks.step) {
    float largest = 0;
    each_normal(p, block * p.row, p.row, mean, deviation, [&](std::uint64_t, float value) {
      const float size = value < 0 ? -value : value;
      largest = size > largest ? size : largest;
    });
    const double scale =
        block_scale(largest, of_scales ? other : dtype, of_scales ? dtype : other, p.c != 0);
    if (of_scales) {
      store_element(dtype, at<void>(p.address), block, scale, true);
      continue;
    }
    each_normal(p, block * p.row, p.row, mean, deviation, [&](std::uint64_t index, float value) {
      store_element(dtype, at<void>(p.address), index, quantised(value, scale, dtype), true);
    });
  }
}

KJ_DEVICE Lengths lengths_of(const FillParams& p) {
  switch (p.kind) {
    case fill_lengths:
      return {p.count, p.size, static_cast<std::uint64_t>(p.a), static_cast<std::uint64_t>(p.c),
              p.b};
    case fill_offsets:
      return {p.count - 1, p.size, static_cast<std::uint64_t>(p.a), static_cast<std::uint64_t>(p.c),
              p.b};
    default:  // the distances between fill_sorted's numbers, and to both ends of their range
      return {p.count + 1, p.size, 0, p.size > 0 ? p.size : 1, p.b};
  }
}

KJ_DEVICE void fill_with_structure(const FillParams& p, Range tiles) {
  Shuffle shuffle{};
  const std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t shuffled_row = kNone;
  const auto shuffle_of = [&](std::uint64_t row, std::uint64_t n) -> const Shuffle& {
    if (row != shuffled_row) shuffle = make_shuffle(p.key, row, n);
    shuffled_row = row;
    return shuffle;
  };
  const Lengths lengths = lengths_of(p);
  const auto low = static_cast<std::int64_t>(p.a);

  for (std::uint64_t tile = tiles.begin; tile < tiles.end; tile += tiles.step) {
    const std::uint64_t first = tile * kTile;
    const std::uint64_t end = first + kTile <= p.count ? first + kTile : p.count;
    if (p.kind == fill_bernoulli) {
      fill_bernoulli_tile(p, first, end - first);
      continue;
    }
    if (p.kind == fill_low_rank) {
      fill_low_rank_tile(p, first, end - first);
      continue;
    }
    for (std::uint64_t i = first; i < end; ++i) {
      switch (p.kind) {
        case fill_permutation:
          store_whole(p, i,
                      static_cast<std::int64_t>(shuffled(shuffle_of(i / p.row, p.row), i % p.row)));
          break;
        case fill_block_table: {
          const bool used = p.source == 0 || static_cast<double>(i % p.row) * p.b <
                                                 load_element(static_cast<DType>(p.other),
                                                              at<const void>(p.source), i / p.row);
          store_whole(p, i,
                      used ? static_cast<std::int64_t>(shuffled(shuffle_of(0, p.size), i)) : low);
          break;
        }
        case fill_one_hot:
          store_element(static_cast<DType>(p.dtype), at<void>(p.address), i,
                        wide_word(philox(p.key, i / p.row), 0) % p.row == i % p.row ? p.b : 0,
                        true);
          break;
        case fill_power_law: {
          const std::uint64_t n =
              static_cast<std::uint64_t>(static_cast<std::int64_t>(p.b) - low) + 1;
          const std::uint64_t rank = power_law_rank(wide_word(philox(p.key, i / 2), i % 2), n, p.c);
          store_whole(p, i,
                      low + static_cast<std::int64_t>(p.size != 0 ? shuffled(shuffle_of(0, n), rank)
                                                                  : rank));
          break;
        }
        case fill_lengths:
          store_whole(p, i,
                      static_cast<std::int64_t>(offset_at(p.key, lengths, i + 1) -
                                                offset_at(p.key, lengths, i)));
          break;
        case fill_offsets:
          store_whole(p, i, static_cast<std::int64_t>(offset_at(p.key, lengths, i)));
          break;
        default:
          store_whole(p, i, low + static_cast<std::int64_t>(offset_at(p.key, lengths, i + 1)));
      }
    }
  }
}

}  // namespace kjudge
