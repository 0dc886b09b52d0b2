// SPDX-License-Identifier: Apache-2.0
#include "stats.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "error.h"
#include "file.h"
#include "json_fields.h"

using namespace kjudge;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Samples = std::vector<double>;

struct Reference {
  std::string name;
  Samples samples;
  double median = 0, geometric_mean = 0;
  std::vector<Samples> quantiles;
};
struct ReferenceFile {
  std::vector<Reference> cases;
};

ReferenceFile read_reference() {
  const auto path = std::filesystem::path(KJUDGE_TEST_FOLDER) / "stats_reference.json";
  const auto numbers = list_kind(number_kind());
  const FieldTable<ReferenceFile> table(
      {format_field<ReferenceFile>("kjudge-stats-reference/1"),
       required("cases", &ReferenceFile::cases,
                list_kind(object_kind(FieldTable<Reference>(
                    {required("name", &Reference::name, line_kind(), ""),
                     required("samples", &Reference::samples, numbers, ""),
                     required("median", &Reference::median, number_kind(), ""),
                     required("geometric_mean", &Reference::geometric_mean, number_kind(), ""),
                     required("quantiles", &Reference::quantiles, list_kind(numbers), "")}))),
                "")});
  const Json json = parse_json(read_file(path), path.native(), Fault::host);
  return table.read(JsonCursor(json, path.native(), Fault::host));
}

double ulps(double a, double b) {
  if (a == b) return 0;
  const double unit = std::nextafter(std::fabs(b), kInf) - std::fabs(b);
  return std::fabs(a - b) / unit;
}

}  // namespace

TEST_CASE("statistics agree with exact arithmetic done elsewhere") {
  const ReferenceFile file = read_reference();
  REQUIRE(file.cases.size() >= 10);
  for (const Reference& reference : file.cases) {
    CAPTURE(reference.name);
    Samples samples = reference.samples;
    for (int order = 0; order < 3; ++order) {
      CHECK(ulps(median(samples), reference.median) <= 1);
      // Rounded once from more than 53 bits: the very same double.
      CHECK(geometric_mean(samples) == reference.geometric_mean);
      for (const Samples& quantile_at : reference.quantiles) {
        CAPTURE(quantile_at[0]);
        CHECK(ulps(quantile(samples, quantile_at[0]), quantile_at[1]) <= 4);
      }
      std::rotate(samples.begin(), samples.begin() + samples.size() / 3, samples.end());
    }
  }
}

TEST_CASE("statistics of one sample are the sample") {
  for (double x : {0.0, 1.5, 1e-320, 1.7e308, kInf}) {
    CHECK(median(Samples{x}) == x);
    CHECK(quantile(Samples{x}, 0.3) == x);
    CHECK(geometric_mean(Samples{x}) == x);
  }
}

TEST_CASE("statistics of nothing are a bug of the caller") {
  CHECK_THROWS_AS(median(Samples{}), Error);
  CHECK_THROWS_AS(quantile(Samples{}, 0.5), Error);
  CHECK_THROWS_AS(geometric_mean(Samples{}), Error);
  CHECK_THROWS_AS(quantile(Samples{1}, 1.5), Error);
  CHECK_THROWS_AS(quantile(Samples{1}, kNaN), Error);
}

TEST_CASE("a NaN among the samples is never sorted away") {
  for (const Samples& samples : {Samples{kNaN, 1, 2}, Samples{1, kNaN, 2}, Samples{1, 2, kNaN}}) {
    CHECK(std::isnan(median(samples)));
    CHECK(std::isnan(quantile(samples, 0)));
    CHECK(std::isnan(geometric_mean(samples)));
  }
}

TEST_CASE("infinities and zeros") {
  CHECK(median(Samples{kInf, 1, kInf}) == kInf);
  CHECK(median(Samples{1, kInf}) == kInf);
  CHECK(median(Samples{-kInf, kInf, 3}) == 3);
  CHECK(std::isnan(median(Samples{-kInf, kInf})));
  CHECK(median(Samples{-0.0, -0.0}) == 0);
  CHECK(std::signbit(median(Samples{-0.0, -0.0})));
  CHECK(median(Samples{1.7e308, 1.7e308, 1.7e308, 1.7e308}) == 1.7e308);
  CHECK(median(Samples{1.6e308, 1.7e308}) == doctest::Approx(1.65e308));
  CHECK(quantile(Samples{1, 2, kInf}, 0.5) == 2);
  CHECK(geometric_mean(Samples{0, 5}) == 0);
  CHECK(geometric_mean(Samples{-0.0, 5}) == 0);
  CHECK(geometric_mean(Samples{kInf, 5}) == kInf);
  CHECK(std::isnan(geometric_mean(Samples{kInf, 0})));
  CHECK(std::isnan(geometric_mean(Samples{-1, -1})));
}
