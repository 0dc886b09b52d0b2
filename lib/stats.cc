// SPDX-License-Identifier: Apache-2.0
#include "stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "error.h"

namespace kjudge {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool any_nan(std::span<const double> samples) {
  return std::any_of(samples.begin(), samples.end(), [](double x) { return std::isnan(x); });
}

// Between a and b: no overflow, and none of the NaN that infinity - infinity would give.
double between(double a, double b, double share) {
  if (a == b || share == 0) return a;
  if (std::isinf(a) || std::isinf(b)) return std::isinf(a) ? (std::isinf(b) ? kNaN : a) : b;
  return a * (1 - share) + b * share;
}

// high + low, |low| at most half an ulp of high.
struct DoubleDouble {
  double high, low;
};

// a * b / c to about 2^-100.
DoubleDouble times_quotient(DoubleDouble a, double b, double c) {
  const double quotient = b / c;
  const double quotient_rest = std::fma(-quotient, c, b) / c;
  const double product = a.high * quotient;
  const double rest =
      std::fma(a.high, quotient, -product) + a.high * quotient_rest + a.low * quotient;
  const double high = product + rest;
  return {high, rest - (high - product)};
}

}  // namespace

double median(std::span<const double> samples) {
  KJ_CHECK(!samples.empty());
  if (any_nan(samples)) return kNaN;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return sorted[half];
  return between(sorted[half - 1], sorted[half], 0.5);
}

double quantile(std::span<const double> samples, double share) {
  KJ_CHECK(!samples.empty());
  KJ_CHECK(share >= 0 && share <= 1);
  if (any_nan(samples)) return kNaN;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return between(sorted[below], sorted[above], place - static_cast<double>(below));
}

// exp and log differ by an ulp between C libraries, and between processors with and without FMA. So
// their answer is only an estimate r: the product of all sample / r, in double-double, is
// (1 + e)^n, and r + r * e is the mean to 1e-30, which rounds the same everywhere.
double geometric_mean(std::span<const double> samples) {
  KJ_CHECK(!samples.empty());
  if (any_nan(samples)) return kNaN;
  const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  if (*low < 0 || (*low == 0 && *high == INFINITY)) return kNaN;
  if (*low == 0) return 0;
  if (*high == INFINITY || *low == *high) return *high;

  double log_sum = 0;
  for (double x : samples) log_sum += std::log(x);
  const double n = static_cast<double>(samples.size());
  double estimate = std::exp(log_sum / n);
  if (!std::isnormal(estimate)) return estimate;
  for (int step = 0; step < 2; ++step) {
    DoubleDouble product{1, 0};
    int exponent = 0;
    for (double x : samples) {
      int sample_exponent = 0;
      product = times_quotient(product, std::frexp(x, &sample_exponent), 1);
      int moved = 0;
      product.high = std::frexp(product.high, &moved);
      product.low = std::ldexp(product.low, -moved);
      exponent += sample_exponent + moved;
    }
    int estimate_exponent = 0;
    const double mantissa = std::frexp(estimate, &estimate_exponent);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      product = times_quotient(product, 1, mantissa);
      int moved = 0;
      product.high = std::frexp(product.high, &moved);
      product.low = std::ldexp(product.low, -moved);
      exponent += moved - estimate_exponent;
    }
    // Near 1 by now, so the subtraction is exact.
    product.high = std::ldexp(product.high, exponent);
    product.low = std::ldexp(product.low, exponent);
    const double error = ((product.high - 1) + product.low) / n;
    const double better = estimate + estimate * error;
    if (better == estimate) break;
    estimate = better;
  }
  return estimate;
}

}  // namespace kjudge
