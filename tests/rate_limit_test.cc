// SPDX-License-Identifier: Apache-2.0
#include "web/server/rate_limit.h"

#include <doctest/doctest.h>

using namespace kjudge;
using namespace std::chrono_literals;

TEST_CASE("a burst, then so many in a time, for each person") {
  RateLimit limit(3, 0.5);
  const RateLimit::Clock::time_point begin{};
  for (int i = 0; i < 3; ++i) CHECK(limit.wait_s("ada", begin) == 0);
  CHECK(limit.wait_s("ada", begin) == 2);
  CHECK(limit.wait_s("ben", begin) == 0);
  CHECK(limit.wait_s("ada", begin + 1s) == 1);
  CHECK(limit.wait_s("ada", begin + 2s) == 0);
  CHECK(limit.wait_s("ada", begin + 2s) == 2);
  // A rest gives a burst, and no more.
  for (int i = 0; i < 3; ++i) CHECK(limit.wait_s("ada", begin + 1h) == 0);
  CHECK(limit.wait_s("ada", begin + 1h) == 2);
}

TEST_CASE("whoever waits as told is let in") {
  for (const double per_s : {0.003, 0.1, 0.7, 3.0, 1000.0}) {
    RateLimit limit(1, per_s);
    auto now = RateLimit::Clock::time_point{};
    for (int i = 0; i < 100; ++i) {
      CHECK(limit.wait_s("ada", now) == 0);
      const int wait_s = limit.wait_s("ada", now);
      CHECK(wait_s >= 1);
      now += std::chrono::seconds(wait_s);
    }
  }
}
