// SPDX-License-Identifier: Apache-2.0

// Generators of more than one draw each: their values against code written from the words of
// kernels/structured.h, and against the distributions that they are said to have.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "check/oracle.h"
#include "driver/kernels/philox.h"
#include "driver/kernels/structured.h"
#include "kernel_session.h"

using namespace kjudge;

namespace {

constexpr std::uint64_t kKey = 0x0123456789abcdef;  // fill_of's

FillParams structured(FillKind kind, DType dtype, std::uint64_t count, double a, double b, double c,
                      std::uint64_t row, std::uint64_t size) {
  FillParams params = fill_of(kind, dtype, count, a, b);
  params.c = c;
  params.row = row;
  params.size = size;
  return params;
}

// Bytes of a tensor, as the kernel leaves them.
std::vector<std::uint8_t> bytes_of(Session& session, FillParams params) {
  const TensorSpec spec{
      "x", static_cast<DType>(params.dtype), {static_cast<std::int64_t>(params.count)}, {}};
  Buffer buffer(session, static_cast<std::size_t>(size_bytes(spec)));
  params.address = buffer.address();
  session.kernels->fill(session.stream, params);
  return buffer.read<std::uint8_t>();
}

// Its elements.
std::vector<double> values_of(Session& session, const FillParams& params) {
  const auto bytes = bytes_of(session, params);
  std::vector<double> values(params.count);
  for (std::uint64_t i = 0; i < params.count; ++i) {
    values[i] = load_element(static_cast<DType>(params.dtype), bytes.data(), i);
  }
  return values;
}

std::uint64_t word64(std::uint64_t key, std::uint64_t counter, int half) {
  const PhiloxWords words = philox(key, counter);
  return std::uint64_t{words.word[2 * half]} << 32 | words.word[2 * half + 1];
}

// The permutation of a row, whole.
std::vector<std::uint64_t> permutation(std::uint64_t key, std::uint64_t row, std::uint64_t n) {
  std::uint64_t left = 1;
  while (left * left < n) ++left;
  const std::uint64_t right = (n + left - 1) / left;
  const auto added = [&](std::uint64_t other, int round, std::uint64_t size) {
    const std::uint64_t round_key = word64(
        key, (std::uint64_t{1} << 63) + 8 * row + static_cast<unsigned>(round / 2), round % 2);
    std::uint64_t z = other + round_key;
    z ^= z >> 30;
    z *= 0xbf58476d1ce4e5b9;
    z ^= z >> 27;
    z *= 0x94d049bb133111eb;
    z ^= z >> 31;
    return (z >> 32) * size >> 32;
  };
  std::vector<std::uint64_t> images;
  for (std::uint64_t x = 0; x < n; ++x) {
    std::uint64_t image = x;
    do {
      std::uint64_t l = image / right, r = image % right;
      for (int round = 0; round < 16; round += 2) {
        l = (l + added(r, round, left)) % left;
        r = (r + added(l, round + 1, right)) % right;
      }
      image = l * right + r;
    } while (image >= n);
    images.push_back(image);
  }
  return images;
}

// Appends the lengths of a node's segments.
void split(std::uint64_t node, std::uint64_t count, std::uint64_t amount, std::uint64_t least,
           std::uint64_t most, double skew, std::vector<std::uint64_t>& lengths) {
  if (count == 1) {
    lengths.push_back(amount);
    return;
  }
  const PhiloxWords words = philox(kKey, node);
  const std::uint64_t left = count / 2, right = count - left;
  const double factor = 1 + skew * (2 * (words.word[0] / 4294967296.0) - 1);
  const double spare = static_cast<double>(amount - count * least);
  const double share = static_cast<double>(left) / static_cast<double>(count);
  double given = std::floor(spare * share * factor + words.word[1] / 4294967296.0);
  given = std::min(given, spare) + static_cast<double>(left * least);
  given = std::max(given, static_cast<double>(amount) - static_cast<double>(right * most));
  given = std::min(given, static_cast<double>(left * most));
  const auto part = static_cast<std::uint64_t>(given);
  split(2 * node, left, part, least, most, skew, lengths);
  split(2 * node + 1, right, amount - part, least, most, skew, lengths);
}

// Far above what chance gives, far below what a wrong share gives.
double chi_square_bound(double freedom) { return freedom + 6 * std::sqrt(2 * freedom) + 12; }

}  // namespace

TEST_CASE("bernoulli takes each value as often as it should, by the words of its counter") {
  on_each_driver([](Session& session) {
    for (const double probability : {0.0, 0.25, 0.9, 1.0}) {
      for (const DType dtype : {DType::boolean, DType::float4_e2m1, DType::float32, DType::int64}) {
        for (const std::uint64_t count : {1u, 63u, 64u, 100'003u}) {
          const double value = dtype == DType::boolean ? 1 : 3;
          const auto values = values_of(
              session, structured(fill_bernoulli, dtype, count, probability, value, 0, 1, 0));
          double ones = 0;
          for (std::uint64_t i = 0; i < count; ++i) {
            const bool one = philox(kKey, i / 4).word[i % 4] / 4294967296.0 < probability;
            REQUIRE(values[i] == (one ? value : 0));
            ones += one;
          }
          if (count > 100) CHECK(std::abs(ones / static_cast<double>(count) - probability) < 0.01);
        }
      }
    }
  });
}

TEST_CASE("every row of a permutation is one, another in every row") {
  on_each_driver([](Session& session) {
    for (const std::uint64_t n : {1u, 2u, 3u, 7u, 16u, 17u, 127u, 1000u, 4096u}) {
      for (const DType dtype : {DType::int16, DType::int64}) {
        const auto values =
            values_of(session, structured(fill_permutation, dtype, 3 * n, 0, 0, 0, n, 0));
        for (std::uint64_t row = 0; row < 3; ++row) {
          const auto expected = permutation(kKey, row, n);
          std::set<double> seen;
          for (std::uint64_t i = 0; i < n; ++i) {
            REQUIRE(values[row * n + i] == static_cast<double>(expected[i]));
            seen.insert(values[row * n + i]);
          }
          REQUIRE(seen.size() == n);
        }
      }
    }
  });
  CHECK(permutation(kKey, 0, 100) != permutation(kKey, 1, 100));
  CHECK(permutation(kKey, 0, 100) != permutation(kKey + 1, 0, 100));
}

TEST_CASE("all permutations of few numbers are equally likely") {
  for (const std::uint64_t n : {2u, 3u, 4u, 5u}) {
    std::map<std::vector<std::uint64_t>, double> seen;
    const double draws = 60'000;
    for (std::uint64_t row = 0; row < 60'000; ++row) {
      const Shuffle shuffle = make_shuffle(4711, row, n);
      std::vector<std::uint64_t> images;
      for (std::uint64_t i = 0; i < n; ++i) images.push_back(shuffled(shuffle, i));
      ++seen[images];
    }
    double kinds = 1;
    for (std::uint64_t i = 2; i <= n; ++i) kinds *= static_cast<double>(i);
    CHECK(static_cast<double>(seen.size()) == kinds);
    double chi_square = 0;
    for (const auto& [images, count] : seen) {
      chi_square += (count - draws / kinds) * (count - draws / kinds) / (draws / kinds);
    }
    CHECK(chi_square < chi_square_bound(kinds - 1));
  }
}

TEST_CASE("a shuffle of 2^40 numbers neither leaves them nor meets itself") {
  const std::uint64_t n = std::uint64_t{1} << 40;
  for (const std::uint64_t size : {n, n - 1, (std::uint64_t{1} << 32) + 1}) {
    const Shuffle shuffle = make_shuffle(kKey, 5, size);
    std::set<std::uint64_t> images;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const std::uint64_t image = shuffled(shuffle, i % 2 != 0 ? i : size - 1 - i);
      REQUIRE(image < size);
      images.insert(image);
    }
    CHECK(images.size() == 20'000);
    CHECK(*images.rbegin() > size / 100 * 99);
  }
}

TEST_CASE("a block table uses no block twice, and none beyond a row's length") {
  on_each_driver([](Session& session) {
    const std::uint64_t rows = 37, columns = 11, blocks = 500, block_size = 16;
    std::vector<std::int32_t> lengths;
    for (std::uint64_t row = 0; row < rows; ++row) {
      lengths.push_back(static_cast<std::int32_t>(row * 177 % (columns * block_size + 1)));
    }
    lengths[1] = 0;
    lengths[2] = 16;
    lengths[3] = 17;
    Buffer source(session, rows * 4);
    source.write(lengths);
    auto params = structured(fill_block_table, DType::int32, rows * columns, -7, block_size, 0,
                             columns, blocks);
    params.source = source.address();
    params.other = static_cast<std::uint32_t>(DType::int32);
    const auto values = values_of(session, params);
    const auto expected = permutation(kKey, 0, blocks);
    std::set<double> seen;
    std::size_t used = 0;
    for (std::uint64_t i = 0; i < rows * columns; ++i) {
      const auto needed =
          (static_cast<std::uint64_t>(lengths[i / columns]) + block_size - 1) / block_size;
      if (i % columns < needed) {
        REQUIRE(values[i] == static_cast<double>(expected[i]));
        seen.insert(values[i]);
        ++used;
      } else {
        REQUIRE(values[i] == -7);
      }
    }
    CHECK(seen.size() == used);

    params.source = 0;
    const auto full = values_of(session, params);
    CHECK(std::set<double>(full.begin(), full.end()).size() == rows * columns);
  });
}

TEST_CASE("every row of a one-hot tensor has its one anywhere") {
  on_each_driver([](Session& session) {
    for (const std::uint64_t columns : {1u, 2u, 3u, 64u, 1000u}) {
      for (const DType dtype : {DType::boolean, DType::float4_e2m1, DType::float32}) {
        const std::uint64_t rows = 1001;
        const auto values = values_of(
            session, structured(fill_one_hot, dtype, rows * columns, 0, 1, 0, columns, 0));
        std::vector<double> seen(columns);
        for (std::uint64_t row = 0; row < rows; ++row) {
          const std::uint64_t hot = word64(kKey, row, 0) % columns;
          for (std::uint64_t i = 0; i < columns; ++i) {
            REQUIRE(values[row * columns + i] == (i == hot ? 1 : 0));
          }
          ++seen[hot];
        }
        if (columns > 3) continue;
        for (const double count : seen)
          CHECK(std::abs(count * static_cast<double>(columns) / rows - 1) < 0.2);
      }
    }
  });
}

TEST_CASE("power-law values are as frequent as the law says") {
  on_each_driver([](Session& session) {
    for (const double exponent : {0.0, 0.5, 1.0, 1.0000001, 1.2, 3.0, 8.0}) {
      const std::uint64_t count = 200'001, n = 50;
      const auto values = values_of(
          session, structured(fill_power_law, DType::int32, count, -3, 46, exponent, 0, 0));
      const auto again = values_of(
          session, structured(fill_power_law, DType::int32, count, -3, 46, exponent, 0, 1));
      const auto order = permutation(kKey, 0, n);
      std::vector<double> seen(n);
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto rank = power_law_rank(word64(kKey, i / 2, static_cast<int>(i % 2)), n, exponent);
        REQUIRE(values[i] == static_cast<double>(rank) - 3);
        REQUIRE(again[i] == static_cast<double>(order[rank]) - 3);
        ++seen[rank];
      }
      // The density's integral from k to k + 1.
      const auto below = [&](double x) {
        return std::abs(exponent - 1) < 1e-6 ? std::log(x)
                                             : (std::pow(x, 1 - exponent) - 1) / (1 - exponent);
      };
      double chi_square = 0, freedom = 0;
      for (std::uint64_t k = 1; k <= n; ++k) {
        const double x = static_cast<double>(k);
        const double expected = static_cast<double>(count) * (below(x + 1) - below(x)) /
                                below(static_cast<double>(n) + 1);
        if (expected < 5) continue;
        chi_square += (seen[k - 1] - expected) * (seen[k - 1] - expected) / expected;
        ++freedom;
      }
      CAPTURE(exponent);
      CHECK(chi_square < chi_square_bound(freedom));
    }
  });
}

TEST_CASE("ranks of a power law are those of the formula in other arithmetic") {
  for (const double exponent : {0.0, 0.7, 1.0, 1.5, 4.0}) {
    for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{1000}, std::uint64_t{1} << 40}) {
      double worst = 0;
      for (std::uint64_t i = 0; i < 10'000; ++i) {
        const std::uint64_t word = word64(99, i, 0);
        const long double u = static_cast<long double>(word >> 11) * 0x1p-53L;
        const long double end = static_cast<long double>(n) + 1, t = 1 - exponent;
        const long double x = exponent == 1 ? std::exp(u * std::log(end))
                                            : std::pow(1 + u * (std::pow(end, t) - 1), 1 / t);
        const auto rank = static_cast<double>(power_law_rank(word, n, exponent));
        worst = std::max(worst, std::abs(rank + 1 - static_cast<double>(std::floor(x))) /
                                    static_cast<double>(x));
        REQUIRE(rank < static_cast<double>(n));
      }
      // One off where x is next to a whole number.
      CHECK(worst < (n <= 1000 ? 1e-9 : 0.51));
    }
  }
  for (int i = -300; i <= 300; ++i) {
    const double x = i * 1.0371;
    CHECK(std::abs(exponential(x) / std::exp(x) - 1) < 1e-13);
    const double y = std::exp(x);
    CHECK(std::abs(natural_log(y) - x) <= 1e-14 * std::max(1.0, std::abs(x)));
  }
}

TEST_CASE("lengths add up, keep their bounds and are as uneven as asked") {
  struct Case {
    std::uint64_t count, total, least, most;
    double skew;
  };
  on_each_driver([](Session& session) {
    for (const Case& c : {Case{1, 5, 0, 5, 1}, Case{2, 1, 0, 1, 0}, Case{3, 3, 1, 1, 1},
                          Case{64, 10'000, 0, 10'000, 0}, Case{64, 10'000, 10, 400, 1},
                          Case{1000, 1'000'003, 1, 1'000'003, 0.5}, Case{777, 777 * 90, 0, 100, 1},
                          Case{4097, 100, 0, 2, 1}}) {
      std::vector<std::uint64_t> expected;
      split(1, c.count, c.total, c.least, c.most, c.skew, expected);
      auto params = structured(fill_lengths, DType::int32, c.count, static_cast<double>(c.least),
                               c.skew, static_cast<double>(c.most), 0, c.total);
      const auto values = values_of(session, params);
      params.kind = fill_offsets;
      params.count = c.count + 1;
      params.dtype = static_cast<std::uint32_t>(DType::int64);
      const auto offsets = values_of(session, params);
      double sum = 0;
      for (std::uint64_t i = 0; i < c.count; ++i) {
        REQUIRE(values[i] == static_cast<double>(expected[i]));
        REQUIRE(expected[i] >= c.least);
        REQUIRE(expected[i] <= c.most);
        REQUIRE(offsets[i] == sum);
        sum += values[i];
      }
      CHECK(sum == static_cast<double>(c.total));
      CHECK(offsets[c.count] == sum);
    }
    const auto largest = [&](double skew) {
      const auto values = values_of(
          session, structured(fill_lengths, DType::int32, 1024, 0, skew, 1 << 20, 0, 1 << 20));
      return *std::max_element(values.begin(), values.end());
    };
    CHECK(largest(0) <= 1034);  // rounding at each of 10 halvings
    CHECK(largest(0.5) > 2500);
    CHECK(largest(1) > 10'000);
  });
}

TEST_CASE("no place of a list has longer lengths than others") {
  std::vector<double> sums(16);
  for (std::uint64_t key = 0; key < 20'000; ++key) {
    const Lengths lengths{16, 40, 0, 40, 0.5};
    for (std::uint64_t i = 0; i < 16; ++i) {
      sums[i] += static_cast<double>(offset_at(key, lengths, i + 1) - offset_at(key, lengths, i));
    }
  }
  for (const double sum : sums) CHECK(std::abs(sum / 20'000 - 2.5) < 0.1);
}

TEST_CASE("offsets of 2^40 elements keep their order") {
  const std::uint64_t n = std::uint64_t{1} << 40;
  const Lengths lengths{n, n, 0, 3, 1};
  std::uint64_t last = 0;
  for (std::uint64_t i = (std::uint64_t{1} << 33) + 5; i <= n; i += n / 1000) {
    const std::uint64_t here = offset_at(kKey, lengths, i), next = offset_at(kKey, lengths, i + 1);
    REQUIRE(here >= last);
    REQUIRE(next - here <= 3);
    last = next;
  }
  CHECK(offset_at(kKey, lengths, n) == n);
  CHECK(offset_at(kKey, lengths, 0) == 0);
}

TEST_CASE("sorted values ascend through their range") {
  on_each_driver([](Session& session) {
    for (const std::uint64_t count : {1u, 2u, 65u, 10'000u}) {
      const auto values =
          values_of(session, structured(fill_sorted, DType::int32, count, -1000, 0.5, 0, 0, 3000));
      std::vector<std::uint64_t> distances;
      split(1, count + 1, 3000, 0, 3000, 0.5, distances);
      double expected = -1000;
      for (std::uint64_t i = 0; i < count; ++i) {
        expected += static_cast<double>(distances[i]);
        REQUIRE(values[i] == expected);
      }
      CHECK(values.back() <= 2000);
      CHECK(std::is_sorted(values.begin(), values.end()));
    }
    for (const double value :
         values_of(session, structured(fill_sorted, DType::int8, 99, 4, 0.5, 0, 0, 0))) {
      REQUIRE(value == 4);
    }
  });
}

TEST_CASE("low-rank matrices have their rank and normal elements") {
  on_each_driver([](Session& session) {
    const std::uint64_t rows = 40, columns = 33, matrices = 3;
    for (const std::uint64_t rank : {1u, 2u, 5u, 33u}) {
      const auto values =
          values_of(session, structured(fill_low_rank, DType::float32, matrices * rows * columns, 0,
                                        2, static_cast<double>(rank), columns, rows * columns));
      for (std::uint64_t m = 0; m < matrices; ++m) {
        // Gauss, with the largest pivot.
        std::vector<double> a(
            values.begin() + static_cast<std::ptrdiff_t>(m * rows * columns),
            values.begin() + static_cast<std::ptrdiff_t>((m + 1) * rows * columns));
        std::uint64_t found = 0;
        for (; found < columns; ++found) {
          std::uint64_t best = found * columns + found;
          for (std::uint64_t r = found; r < rows; ++r) {
            for (std::uint64_t c = found; c < columns; ++c) {
              if (std::abs(a[r * columns + c]) > std::abs(a[best])) best = r * columns + c;
            }
          }
          if (std::abs(a[best]) < 1e-4) break;
          for (std::uint64_t c = 0; c < columns; ++c) {
            std::swap(a[found * columns + c], a[best / columns * columns + c]);
          }
          for (std::uint64_t r = 0; r < rows; ++r) {
            std::swap(a[r * columns + found], a[r * columns + best % columns]);
          }
          for (std::uint64_t r = found + 1; r < rows; ++r) {
            const double factor = a[r * columns + found] / a[found * columns + found];
            for (std::uint64_t c = found; c < columns; ++c) {
              a[r * columns + c] -= factor * a[found * columns + c];
            }
          }
        }
        CHECK(found == rank);
      }
    }
    // By the formula, from the normal values of the same key.
    const std::uint64_t rank = 6, n = 70;
    const auto terms = filled<float>(session, fill_of(fill_normal, DType::float32, n * 8, 0, 1));
    const auto values = values_of(session, structured(fill_low_rank, DType::float32, n * n, 0, 3,
                                                      static_cast<double>(rank), n, n * n));
    double squares = 0;
    for (std::uint64_t i = 0; i < n * n; ++i) {
      const std::uint32_t signs = philox(kKey, kSecondStream + i % n).word[0];
      float sum = 0;
      for (std::uint64_t k = 0; k < rank; ++k) {
        sum += (signs >> k & 1) != 0 ? -terms[i / n * 8 + k] : terms[i / n * 8 + k];
      }
      REQUIRE(values[i] == static_cast<double>(3 / std::sqrt(static_cast<float>(rank)) * sum));
      squares += values[i] * values[i];
    }
    CHECK(std::abs(squares / static_cast<double>(n * n) / 9 - 1) < 0.25);
    const auto one =
        values_of(session, structured(fill_low_rank, DType::bfloat16, 1, 0, 1, 128, 1, 1));
    CHECK(std::isfinite(one[0]));
  });
}

TEST_CASE("quantised values times their scales are the normal values they were made from") {
  on_each_driver([](Session& session) {
    struct Case {
      DType values, scales;
      std::uint64_t block;
      bool power_of_two;
      double worst;  // error of a value, in scales
    };
    for (const Case& c : {Case{DType::int8, DType::float32, 1, false, 0.51},
                          Case{DType::int8, DType::float16, 128, false, 0.51},
                          Case{DType::int8, DType::bfloat16, 33, true, 0.51},
                          Case{DType::float8_e4m3, DType::float32, 64, false, 17},
                          Case{DType::float8_e5m2, DType::float32, 100, false, 4100},
                          Case{DType::float4_e2m1, DType::float8_e4m3, 16, false, 1.4},
                          Case{DType::float4_e2m1, DType::bfloat16, 32, true, 1.01}}) {
      const std::uint64_t blocks = 301, count = blocks * c.block;
      const auto exact =
          filled<float>(session, fill_of(fill_normal, DType::float32, count, 0.5, 3));
      auto params =
          structured(fill_quantised, c.values, count, 0.5, 3, c.power_of_two ? 1 : 0, c.block, 0);
      params.other = static_cast<std::uint32_t>(c.scales);
      const auto values = values_of(session, params);
      params.kind = fill_scales;
      params.count = blocks;
      params.dtype = static_cast<std::uint32_t>(c.scales);
      params.other = static_cast<std::uint32_t>(c.values);
      const auto scales = values_of(session, params);
      const double largest = c.values == DType::int8          ? 127
                             : c.values == DType::float8_e4m3 ? 448
                             : c.values == DType::float8_e5m2 ? 57344
                                                              : 6;
      double worst = 0;
      for (std::uint64_t block = 0; block < blocks; ++block) {
        float reach = 0;
        for (std::uint64_t i = 0; i < c.block; ++i) {
          reach = std::max(reach, std::abs(exact[block * c.block + i]));
        }
        double scale = reach / static_cast<float>(largest);
        if (c.power_of_two) scale = std::exp2(std::ceil(std::log2(scale)));
        scale = round_to(c.scales, scale, Overflow::saturate);
        REQUIRE(scales[block] == scale);
        for (std::uint64_t i = block * c.block; i < (block + 1) * c.block; ++i) {
          const double ratio = std::clamp(exact[i] / scale, -largest, largest);
          REQUIRE(values[i] == round_to(c.values, ratio, Overflow::saturate));
          worst = std::max(worst, std::abs(values[i] - exact[i] / scale));
        }
      }
      CAPTURE(name(c.values));
      CHECK(worst < c.worst);
    }
    // A scale too small for its type: all is 0, and nothing divides by it.
    auto params = structured(fill_quantised, DType::int8, 64, 0, 1e-9, 0, 64, 0);
    params.other = static_cast<std::uint32_t>(DType::float16);
    for (const double value : values_of(session, params)) REQUIRE(value == 0);
  });
}

namespace {

// One of each kind, large enough for several tiles and host blocks.
std::vector<FillParams> one_of_each() {
  std::vector<FillParams> all = {
      structured(fill_bernoulli, DType::bfloat16, 70'001, 0.5, 2, 0, 1, 0),
      structured(fill_permutation, DType::int32, 70'000, 0, 0, 0, 700, 0),
      structured(fill_block_table, DType::int32, 70'000, -1, 1, 0, 7, 80'000),
      structured(fill_one_hot, DType::float16, 70'007, 0, 1, 0, 7, 0),
      structured(fill_power_law, DType::int64, 70'001, 0, 1e12, 1.1, 0, 1),
      structured(fill_lengths, DType::int32, 70'001, 0, 1, 1e6, 0, 1'000'000),
      structured(fill_offsets, DType::int64, 70'001, 0, 1, 1e6, 0, 1'000'000),
      structured(fill_sorted, DType::int32, 70'001, -5, 1, 0, 0, 1'000'000),
      structured(fill_low_rank, DType::float32, 70'000, 0, 1, 7, 100, 7000),
      structured(fill_quantised, DType::float4_e2m1, 70'000, 0, 1, 0, 50, 0),
      structured(fill_scales, DType::float32, 70'000, 0, 1, 0, 50, 0),
  };
  all[9].other = static_cast<std::uint32_t>(DType::float16);
  all[10].other = static_cast<std::uint32_t>(DType::int8);
  return all;
}

}  // namespace

TEST_CASE("a structured tensor follows from its key, and from nothing else") {
  on_each_driver([](Session& session) {
    for (FillParams params : one_of_each()) {
      CAPTURE(params.kind);
      const auto first = bytes_of(session, params);
      CHECK(bytes_of(session, params) == first);
      params.key ^= std::uint64_t{1} << 63;
      CHECK(bytes_of(session, params) != first);
      params.key ^= std::uint64_t{1} << 63 | 1;
      CHECK(bytes_of(session, params) != first);
    }
  });
}

TEST_CASE("host and GPU fill structured tensors with the same bits") {
  if (!cuda_available()) return;
  Session host(DriverKind::host), cuda(DriverKind::cuda);
  for (const FillParams& params : one_of_each()) {
    CHECK_MESSAGE(bytes_of(host, params) == bytes_of(cuda, params), "kind ", params.kind);
  }
}
