// SPDX-License-Identifier: Apache-2.0
#pragma once

// Uniform and normal values from Philox words: the same bits everywhere, for nothing here calls a
// math library and a*b+c is never contracted.

#include "driver/kernels/number.h"
#include "driver/kernels/philox.h"
#include "driver/kernels/thread.h"

namespace kjudge {

// ln(x) for x in (0, 1], exact arithmetic steps only: x = 2^k * y with y in [sqrt(1/2), sqrt(2)),
// ln(y) = 2 atanh((y-1)/(y+1)) by its series to z^9. Error below 2e-7 relative to the result's use
// in a normal deviate.
KJ_DEVICE float log_unit(float x) {
  std::uint32_t bits = bit_copy<std::uint32_t>(x);
  const std::int32_t k = static_cast<std::int32_t>(bits - 0x3f3504f3u) >> 23;
  bits -= static_cast<std::uint32_t>(k) << 23;
  const float y = bit_copy<float>(bits);
  const float z = (y - 1.0f) / (y + 1.0f);
  const float w = z * z;
  const float series =
      2.0f + w * (0.666666667f + w * (0.4f + w * (0.285714286f + w * 0.222222222f)));
  return static_cast<float>(k) * 0.693147181f + z * series;
}

// sin and cos of 2*pi*turn/2^32: the top two bits choose the quadrant, the rest is an angle in
// [0, pi/2) centered to [-pi/4, pi/4) for the polynomials.
KJ_DEVICE void sin_cos_turn(std::uint32_t turn, float* sine, float* cosine) {
  const std::uint32_t eighth = turn + 0x20000000u;
  const std::uint32_t quadrant = eighth >> 30;
  const float angle =
      static_cast<float>(static_cast<std::int32_t>(eighth & 0x3fffffffu) - 0x20000000) *
      1.46291807926715968e-9f;  // pi / 2^31
  const float a2 = angle * angle;
  const float s =
      angle * (1.0f + a2 * (-0.166666667f + a2 * (8.33333333e-3f + a2 * -1.98412698e-4f)));
  const float c =
      1.0f + a2 * (-0.5f + a2 * (4.16666667e-2f + a2 * (-1.38888889e-3f + a2 * 2.48015873e-5f)));
  const float swap_s = quadrant & 1 ? c : s;
  const float swap_c = quadrant & 1 ? s : c;
  *sine = quadrant & 2 ? -swap_s : swap_s;
  *cosine = (quadrant + 1) & 2 ? -swap_c : swap_c;
}

// Values of kLanes consecutive groups of 4 elements; lane-wise loops, which vectorize on the host.
struct Values {
  float value[4 * kLanes];
};

KJ_DEVICE void random_words(std::uint64_t key, std::uint64_t group,
                            std::uint32_t (*words)[kLanes]) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const PhiloxWords made = philox(key, group + static_cast<unsigned>(lane));
    for (int i = 0; i < 4; ++i) words[i][lane] = made.word[i];
  }
}
KJ_DEVICE Values uniform_values(std::uint64_t key, std::uint64_t group, float a, float width) {
  std::uint32_t words[4][kLanes];
  random_words(key, group, words);
  Values made;
  for (int i = 0; i < 4; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float unit = static_cast<float>(static_cast<std::int32_t>(words[i][lane] >> 8)) *
                         5.9604644775390625e-8f;  // 2^-24
      made.value[4 * lane + i] = a + width * unit;
    }
  }
  return made;
}

// Box-Muller on pairs of words.
KJ_DEVICE Values normal_values(std::uint64_t key, std::uint64_t group, float mean,
                               float deviation) {
  std::uint32_t words[4][kLanes];
  random_words(key, group, words);
  Values made;
  for (int i = 0; i < 4; i += 2) {
    for (int lane = 0; lane < kLanes; ++lane) {
      // (0, 1]: 24 bits plus half a step keeps the logarithm finite.
      const float unit = static_cast<float>(static_cast<std::int32_t>(words[i][lane] >> 8)) *
                             5.9604644775390625e-8f +
                         2.98023223876953125e-8f;
      const float radius = root(-2.0f * log_unit(unit));
      float sine, cosine;
      sin_cos_turn(words[i + 1][lane], &sine, &cosine);
      made.value[4 * lane + i] = mean + deviation * (radius * cosine);
      made.value[4 * lane + i + 1] = mean + deviation * (radius * sine);
    }
  }
  return made;
}

}  // namespace kjudge
