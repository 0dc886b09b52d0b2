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

TEST_CASE("a recording of another release of the driver is none of this one's") {
  Provenance recorded;
  recorded.driver = "cuda";
  recorded.driver_version = 13000;
  recorded.arch = "sm_90";
  recorded.device = "NVIDIA H200";
  DeviceIdentity here{"NVIDIA H200 GPU-1", "sm_90", "cuda 13.0 (580.159.04)", "device",
                      "580.159.04"};
  check_recorded_here(recorded, here);  // which release it was is not known
  recorded.driver_release = "580.159.04";
  check_recorded_here(recorded, here);
  recorded.driver_release = "580.65.06";
  try {
    check_recorded_here(recorded, here);
    FAIL("other code places its kernels");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::malformed);
    CHECK(std::string(error.what()) ==
          "was recorded on NVIDIA H200 (sm_90) with driver cuda 13.0 (580.65.06); this is NVIDIA "
          "H200 GPU-1 (sm_90) with driver cuda 13.0 (580.159.04): capture it here");
  }
  here.driver = "cuda 13.0";
  here.driver_release = "";
  check_recorded_here(recorded, here);
  here.driver = "cuda 13.1";
  CHECK_THROWS_AS(check_recorded_here(recorded, here), Error);
}

TEST_CASE("the release of NVIDIA's driver is found in what its module tells") {
  CHECK(driver_release_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  "
                          "Release Build  (dvs-builder@U22)  Tue Sep  9 02:26:25 UTC 2025\n"
                          "GCC version:  gcc version 12.3.0\n") == "580.159.04");
  CHECK(driver_release_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54  Tue Jun  6\n") ==
        "535.54");
  CHECK(driver_release_in("NVRM version: none\nGCC version:  gcc version 12.3.0\n") == "");
  CHECK(driver_release_in("") == "");
  CHECK(driver_release(DriverKind::host) == "");
}
