// SPDX-License-Identifier: Apache-2.0
#include "judge/rank_report.h"

#include <doctest/doctest.h>

using namespace kjudge;

TEST_CASE(
    "what was judged without a device is left out for that, not for terms that nobody names") {
  VariantStandings standings;
  standings.left_out = 1;
  CHECK(standings_remarks(standings) ==
        std::vector<std::string>{
            "1 submission is left out: kjudge failed before it knew the device"});
  standings.left_out = 2;
  standings.elsewhere = {"softmax version 1, NVIDIA H100, method 1", "softmax version 2, host"};
  CHECK(standings_remarks(standings) ==
        std::vector<std::string>{
            "2 submissions were judged only on other terms, and left out: softmax version 1, "
            "NVIDIA H100, method 1, softmax version 2, host"});
}
