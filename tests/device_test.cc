// SPDX-License-Identifier: Apache-2.0
#include "judge/device.h"

#include <doctest/doctest.h>

#include "error.h"

using namespace kjudge;

TEST_CASE("a recording of a GPU whose name begins like this one's is another model's") {
  Provenance recorded;
  recorded.driver = "cuda";
  recorded.driver_version = 13000;
  recorded.arch = "sm_89";
  recorded.device = "NVIDIA L4";
  DeviceIdentity here{"NVIDIA L40 GPU-1", "sm_89", "cuda 13.0", "device"};
  try {
    check_recorded_here(recorded, here);
    FAIL("an L40 is no L4");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::malformed);
    CHECK(std::string(error.what()) ==
          "was recorded on NVIDIA L4 (sm_89) with driver cuda 13.0; this is NVIDIA L40 GPU-1 "
          "(sm_89) with driver cuda 13.0: capture it here");
  }
  here.name = "NVIDIA L4 GPU-1";
  check_recorded_here(recorded, here);
  here.driver = "cuda 13.1";
  CHECK_THROWS_AS(check_recorded_here(recorded, here), Error);
}
