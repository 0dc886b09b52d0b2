// SPDX-License-Identifier: Apache-2.0
#include "judge/measured_device.h"

#include <doctest/doctest.h>

#include <cstdlib>

#include "error.h"
#include "file.h"
#include "json_faults.h"
#include "judge/doctor_measure.h"

using namespace kjudge;

namespace {

const DeviceIdentity kGpu{"NVIDIA H200 GPU-1", "sm_90", "cuda 13.0", "device"};

MeasuredDevice measured() {
  MeasuredDevice device{kGpu.name, kGpu.arch, kGpu.driver, "0.1.0", "2026-11-30T12:00:00Z",
                        {},        2,         {}};
  device.rates = {4.25e12, 3.875e12, {{"float32", 5.9e13}, {"float64", 9e8}}};
  Noise noise;
  noise.shape = "copy-5us";
  noise.time_ns = 5120;
  noise.replays_per_arm = 5;
  noise.error_median = 0.0125;
  noise.error_95 = 0.0301;
  noise.within = 0.05;
  noise.width = 0.1;
  noise.holds_1 = 0.5;
  device.noise = {noise, noise};
  device.noise[1].shape = "copy-1000us";
  device.noise[1].between = 0.001;
  return device;
}

void store(const TempDir& folder, const std::string& text) {
  write_file_atomically(measured_device_path(folder.path(), kGpu), text);
}

}  // namespace

TEST_CASE("there is no golden file of a measured device") {
  const TempDir folder;
  const std::filesystem::path golden =
      std::filesystem::path(KJUDGE_TEST_FOLDER) / "golden" / "measured-v1" / "measured.json";
  if (std::getenv("KJUDGE_WRITE_GOLDEN") != nullptr) {
    write_file_atomically(golden, print_json(Json{measured_device_table().write(measured())}));
  }
  store(folder, read_file(golden));
  const auto read = read_measured_device(folder.path(), kGpu);
  REQUIRE(read.has_value());
  CHECK(print_json(Json{measured_device_table().write(*read)}) ==
        print_json(Json{measured_device_table().write(measured())}));
}

TEST_CASE("a measured device is read back as it was written, and no other device's") {
  const TempDir folder;
  CHECK_FALSE(read_measured_device(folder.path(), kGpu).has_value());
  store(folder, print_json(Json{measured_device_table().write(measured())}));
  const auto read = read_measured_device(folder.path(), kGpu);
  REQUIRE(read.has_value());
  CHECK(print_json(Json{measured_device_table().write(*read)}) ==
        print_json(Json{measured_device_table().write(measured())}));
  CHECK(read->rates.operations_per_s == measured().rates.operations_per_s);
  CHECK_FALSE(read->noise[0].between.has_value());
  CHECK(*read->noise[1].between == 0.001);
  DeviceIdentity other = kGpu;
  other.name = "NVIDIA H200 GPU-2";
  CHECK_FALSE(read_measured_device(folder.path(), other).has_value());
  other = kGpu;
  other.driver = "cuda 13.1";
  CHECK(read_measured_device(folder.path(), other).has_value());
}

TEST_CASE("a measured device's file that is something else says what to do") {
  const TempDir folder;
  for (const char* text : {"{", "{\"format\": \"kjudge-measured/2\"}"}) {
    store(folder, text);
    try {
      read_measured_device(folder.path(), kGpu);
      FAIL("read");
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::malformed);
      CHECK(std::string(error.what()).ends_with("; measure again: kjudge doctor --measure"));
    }
  }
}

TEST_CASE("every field of a measured device refuses every wrong kind, and names itself") {
  const TempDir folder;
  const int tried = json_faults::try_every_fault(
      Json{measured_device_table().write(measured())}, json_format(measured_device_table()).schema,
      [&](const std::string& faulty) {
        store(folder, faulty);
        read_measured_device(folder.path(), kGpu);
      },
      {.file = measured_device_path(folder.path(), kGpu).string()});
  CHECK(tried > 200);
}

TEST_CASE("a measured device as text") {
  CHECK(
      measured_device_text(measured()) ==
      "measured: NVIDIA H200 GPU-1, driver cuda 13.0\n"
      "    memory: 4.25 TB/s read, 3.88 TB/s read and written\n"
      "    arithmetic: 59.00 T/s float32, 0.90 G/s float64, a multiply-add being two; not of "
      "matrix units\n"
      "    noise of 2 evaluations of a copy against itself, in %:\n"
      "    shape         length  replays  error  95 %  within  between  width  contain 1  voids\n"
      "    copy-5us     5.12 us        5   1.25  3.01    5.00        -  10.00         50      0\n"
      "    copy-1000us  5.12 us        5   1.25  3.01    5.00     0.10  10.00         50      0\n");
}
