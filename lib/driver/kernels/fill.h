// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elements that are drawn one by one: constant, uniform, normal, integers, and poison.

#include "driver/kernels.h"
#include "driver/kernels/values.h"

namespace kjudge {

KJ_DEVICE void fill_with_bits(const FillParams& p, Range tiles) {
  for (std::uint64_t tile = tiles.begin; tile < tiles.end; tile += tiles.step) {
    std::uint32_t words[4][kLanes];
    const std::uint64_t group = tile * kLanes;
    random_words(p.key, group, words);
    if ((group + kLanes) * 16 <= p.count) {
      std::uint32_t* to = at<std::uint32_t>(p.address) + group * 4;
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int i = 0; i < 4; ++i) to[lane * 4 + i] = words[i][lane];
      }
    } else {
      for (std::uint64_t byte = group * 16; byte < p.count; ++byte) {
        at<std::uint8_t>(p.address)[byte] =
            static_cast<std::uint8_t>(words[byte % 16 / 4][byte / 16 - group] >> (8 * (byte % 4)));
      }
    }
  }
}

KJ_DEVICE void store_integers(const FillParams& p, std::uint64_t first, std::uint64_t count) {
  const std::int64_t low = static_cast<std::int64_t>(p.a);
  const std::uint64_t span = static_cast<std::uint64_t>(static_cast<std::int64_t>(p.b) - low) + 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + i;
    const PhiloxWords words = philox(p.key, index / 2);
    const std::uint64_t wide =
        static_cast<std::uint64_t>(words.word[index % 2 * 2]) << 32 | words.word[index % 2 * 2 + 1];
    const std::int64_t value = low + static_cast<std::int64_t>(span ? wide % span : wide);
    if (static_cast<DType>(p.dtype) == DType::int64) {
      at<std::int64_t>(p.address)[index] = value;
    } else {
      store_element(static_cast<DType>(p.dtype), at<void>(p.address), index,
                    static_cast<double>(value), true);
    }
  }
}

KJ_DEVICE void fill_with_values(const FillParams& p, Range tiles) {
  const DType dtype = static_cast<DType>(p.dtype);
  for (std::uint64_t tile = tiles.begin; tile < tiles.end; tile += tiles.step) {
    const std::uint64_t first = tile * kTile;
    const std::uint64_t count = first + kTile <= p.count ? kTile : p.count - first;
    if (p.kind == fill_integers) {
      store_integers(p, first, count);
      continue;
    }
    Values made;
    if (p.kind == fill_normal) {
      made = normal_values(p.key, first / 4, static_cast<float>(p.a), static_cast<float>(p.b));
    } else if (p.kind == fill_uniform) {
      made =
          uniform_values(p.key, first / 4, static_cast<float>(p.a), static_cast<float>(p.b - p.a));
    }
    if (p.kind == fill_constant) {
      for (std::uint64_t i = 0; i < count; ++i) {
        store_element(dtype, at<void>(p.address), first + i, p.a, true);
      }
    } else if (dtype == DType::float32) {
      for (std::uint64_t i = 0; i < count; ++i) at<float>(p.address)[first + i] = made.value[i];
    } else {
      for (std::uint64_t i = 0; i < count; ++i) {
        store_element(dtype, at<void>(p.address), first + i, static_cast<double>(made.value[i]),
                      true);
      }
    }
  }
}

}  // namespace kjudge
