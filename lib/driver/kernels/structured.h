// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values of FillKind that are more than one draw each, as functions of key and index: shuffles,
// lengths, power laws, scales. Integers and IEEE double arithmetic only, so that every device gives
// the same bits. Included by device code, by the host driver's module and by host code.

#include <cstdint>

#include "driver/kernels/number.h"
#include "driver/kernels/philox.h"
#include "tensor.h"

namespace kjudge {

// Counters for a second use of a key; elements and rows have those below.
constexpr std::uint64_t kSecondStream = std::uint64_t{1} << 63;

KJ_EVERYWHERE std::uint64_t wide_word(PhiloxWords words, std::uint64_t half) {
  return static_cast<std::uint64_t>(words.word[half * 2]) << 32 | words.word[half * 2 + 1];
}

// A random permutation of 0 .. n - 1, n up to 2^40: a Feistel network whose halves are numbers
// below `left` and below `right`, left * right >= n, walked until it is below n again (Black,
// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Round r adds to one half the
// upper 32 bits of mix(other half + round_key[r]), scaled to its size. With 8 rounds some
// permutations of 5 numbers were 15 % more frequent than others; with 16, none by 1 %.
struct Shuffle {
  std::uint64_t n, left, right, round_key[16];
};

// SplitMix64's finalizer.
KJ_EVERYWHERE std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// That of `row`: round_key[2 * i], [2 * i + 1] are the words at kSecondStream + 8 * row + i.
KJ_EVERYWHERE Shuffle make_shuffle(std::uint64_t key, std::uint64_t row, std::uint64_t n) {
  Shuffle made{};
  made.n = n;
  for (std::uint64_t bit = std::uint64_t{1} << 20; bit > 0; bit >>= 1) {
    if ((made.left + bit) * (made.left + bit) < n) made.left += bit;
  }
  ++made.left;  // the smallest whose square is not below n
  made.right = (n + made.left - 1) / made.left;
  for (unsigned i = 0; i < 8; ++i) {
    const PhiloxWords words = philox(key, kSecondStream + 8 * row + i);
    made.round_key[2 * i] = wide_word(words, 0);
    made.round_key[2 * i + 1] = wide_word(words, 1);
  }
  return made;
}

KJ_EVERYWHERE std::uint64_t shuffled(const Shuffle& shuffle, std::uint64_t index) {
  std::uint64_t left = index / shuffle.right, right = index % shuffle.right;
  do {
    for (int round = 0; round < 16; round += 2) {
      left += (mix(right + shuffle.round_key[round]) >> 32) * shuffle.left >> 32;
      if (left >= shuffle.left) left -= shuffle.left;
      right += (mix(left + shuffle.round_key[round + 1]) >> 32) * shuffle.right >> 32;
      if (right >= shuffle.right) right -= shuffle.right;
    }
  } while (left * shuffle.right + right >= shuffle.n);
  return left * shuffle.right + right;
}

// `count` lengths from `least` to `most` with the sum `total`; count * least <= total <=
// count * most, all up to 2^40.
struct Lengths {
  std::uint64_t count, total, least, most;
  double skew;  // 0 .. 1
};

// The sum of the first `index` lengths, by a random cascade: the count is halved, the left half has
// floor(count / 2) of the lengths, and of what is above `least` its share times a factor uniform in
// [1 - skew, 1 + skew); likewise in each half. With skew 0 all are alike, with 1 a few have most.
// Node 1 is the whole, 2k and 2k + 1 are the halves of k; the draws of a node are the words at its
// number, the first for the factor, the second to round a fraction up as often as it is large.
KJ_EVERYWHERE std::uint64_t offset_at(std::uint64_t key, const Lengths& lengths,
                                      std::uint64_t index) {
  std::uint64_t count = lengths.count, amount = lengths.total, before = 0, node = 1;
  while (index > 0) {
    if (index == count) return before + amount;
    const PhiloxWords words = philox(key, node);
    const std::uint64_t left = count / 2, right = count - left;
    const double factor = 1 + lengths.skew * (words.word[0] * 0x1p-31 - 1);
    const std::uint64_t spare = amount - count * lengths.least;
    std::uint64_t given = static_cast<std::uint64_t>(
        static_cast<double>(spare) * (static_cast<double>(left) / static_cast<double>(count)) *
            factor +
        words.word[1] * 0x1p-32);
    given = (given < spare ? given : spare) + left * lengths.least;
    // What the halves can take; a product that does not fit 64 bits is more than there is.
    const std::uint64_t full = amount / lengths.most;
    if (right <= full && given < amount - right * lengths.most) {
      given = amount - right * lengths.most;
    }
    if (left <= full && given > left * lengths.most) given = left * lengths.most;
    node *= 2;
    if (index < left) {
      count = left;
      amount = given;
    } else {
      index -= left;
      count = right;
      amount -= given;
      before += given;
      ++node;
    }
  }
  return before;
}

// ln(x) of a normal x > 0: x = 2^k * y with y in [sqrt(1/2), sqrt(2)), ln(y) = 2 atanh((y-1)/(y+1))
// by its series to z^23.
KJ_EVERYWHERE double natural_log(double x) {
  std::uint64_t bits = bit_copy<std::uint64_t>(x);
  const std::int64_t k = static_cast<std::int64_t>(bits - 0x3fe6a09e667f3bcdu) >> 52;
  bits -= static_cast<std::uint64_t>(k) << 52;
  const double y = bit_copy<double>(bits);
  const double z = (y - 1) / (y + 1);
  const double w = z * z;
  double series = 0;
  for (int i = 23; i > 0; i -= 2) series = series * w + 2.0 / i;
  return static_cast<double>(k) * 0.69314718055994531 + z * series;
}

// e^x for |x| < 700: x = k ln(2) + r, e^r by its series to r^16.
KJ_EVERYWHERE double exponential(double x) {
  const double shifted = x * 1.4426950408889634 + 0.5;
  std::int64_t k = static_cast<std::int64_t>(shifted);
  if (static_cast<double>(k) > shifted) --k;
  const double r = x - static_cast<double>(k) * 0.69314718055994531;
  double series = 1;
  for (int i = 16; i > 0; --i) series = 1 + series * (r / i);
  return series * bit_copy<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

// A rank of 0 .. n - 1, n up to 2^53: floor(x) - 1 where x in [1, n + 1) has the density
// x^-exponent (0 .. 8), by the inverse of its distribution at u, the upper 53 bits of `word`. An
// exponent within 1e-6 of 1 counts as 1, where the other formula loses its digits.
KJ_EVERYWHERE std::uint64_t power_law_rank(std::uint64_t word, std::uint64_t n, double exponent) {
  const double u = static_cast<double>(word >> 11) * 0x1p-53;
  const double log_end = natural_log(static_cast<double>(n) + 1);
  const double t = 1 - exponent;
  const double x = t < 1e-6 && t > -1e-6
                       ? exponential(u * log_end)
                       : exponential(natural_log(1 + u * (exponential(t * log_end) - 1)) / t);
  const std::uint64_t rank = x < 1 ? 1 : static_cast<std::uint64_t>(x);
  return (rank < n ? rank : n) - 1;
}

// Largest magnitude of a quantised value; 0: the type has none.
KJ_EVERYWHERE float quantised_largest(DType dtype) {
  switch (dtype) {
    case DType::int8:
      return 127;
    case DType::float8_e4m3:
      return 448;
    case DType::float8_e5m2:
      return 57344;
    case DType::float4_e2m1:
      return 6;
    default:
      return 0;
  }
}

// The scale of a block whose values reach `largest`: largest / quantised_largest(values), with
// `power_of_two` rounded up to one, as a tensor of `scales` holds it.
KJ_EVERYWHERE double block_scale(float largest, DType values, DType scales, bool power_of_two) {
  float scale = largest / quantised_largest(values);
  if (power_of_two) {
    std::uint32_t bits = bit_copy<std::uint32_t>(scale);
    if ((bits & 0x7fffffu) != 0) bits = (bits & 0x7f800000u) + 0x800000u;
    scale = bit_copy<float>(bits);
  }
  return rounded_to(scales, static_cast<double>(scale), true);
}

// value / scale within the range of `values`; 0 where the scale is.
KJ_EVERYWHERE double quantised(float value, double scale, DType values) {
  if (scale == 0) return 0;
  return saturated(static_cast<double>(value) / scale,
                   static_cast<double>(quantised_largest(values)));
}

}  // namespace kjudge
