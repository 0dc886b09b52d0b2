// SPDX-License-Identifier: Apache-2.0
#include "decimal.h"

#include <doctest/doctest.h>

using namespace kjudge;

TEST_CASE("a number in a message is as its author wrote it") {
  CHECK(decimal(0.5) == "0.5");
  CHECK(decimal(10) == "10");
  CHECK(decimal(0.001) == "0.001");
  CHECK(decimal(86400) == "86400");
  CHECK(decimal(100000) == "100000");
  CHECK(decimal(1.2345678) == "1.2345678");
}
