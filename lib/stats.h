// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace kjudge {

// Statistics of samples in any order. No samples: Fault::bug. A NaN among them: NaN. The same
// samples give the same bits on any machine, so that scores can be compared as text: every step is
// an operation that IEEE 754 rounds correctly, and what the C library makes of log and exp, which
// differs between libraries, is corrected before it is returned (stats.cc).

// The middle sample, or the mean of the two middle ones.
double median(std::span<const double> samples);

// Linear between order statistics (Hyndman and Fan's type 7, the default of R and NumPy); `share`
// is from 0 to 1.
double quantile(std::span<const double> samples, double share);

// NaN for a negative sample, and for 0 together with infinity.
double geometric_mean(std::span<const double> samples);

}  // namespace kjudge
