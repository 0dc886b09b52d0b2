// SPDX-License-Identifier: Apache-2.0
#include "replay/rebuild.h"

#include <doctest/doctest.h>

#include "error.h"

using namespace kjudge;

TEST_CASE("the arena of a recording is that of the one device its memory is of") {
  Bundle bundle;
  CHECK(arena_range(bundle) == 0);
  bundle.regions.resize(2);
  CHECK(arena_range(bundle) == 0);
  bundle.regions[0].device = 3;
  try {
    arena_range(bundle);
    FAIL("two devices");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::malformed);
    CHECK(std::string(error.what()) ==
          "its memory is of devices 3 and 0; only recordings of one device can be replayed");
  }
  bundle.regions[1].device = 3;
  CHECK(arena_range(bundle) == 3);
}
