// SPDX-License-Identifier: Apache-2.0
#include "driver/nvml.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

using namespace kjudge;

namespace {

bool empty(const GpuReading& reading) {
  return !reading.power_w && !reading.temperature_c && !reading.throttle_reasons;
}

int users_of_fake() {
  void* library = ::dlopen(KJUDGE_FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto users = reinterpret_cast<int (*)()>(::dlsym(library, "fake_nvml_users"));
  REQUIRE((users != nullptr));
  return users();
}

}  // namespace

TEST_CASE("NVML: power, temperature and throttle reasons of the GPU with the UUID") {
  {
    const Nvml nvml("GPU-hot", KJUDGE_FAKE_NVML);
    CHECK(users_of_fake() == 1);
    const GpuReading reading = nvml.read();
    CHECK(reading.power_w == doctest::Approx(698.5));
    CHECK(reading.temperature_c == 71);
    REQUIRE(reading.throttle_reasons);
    CHECK(*reading.throttle_reasons ==
          std::vector<std::string>{"sw_power_cap", "sw_thermal_slowdown", "unknown 0x400"});
  }
  CHECK(users_of_fake() == 0);
}

TEST_CASE("NVML: a GPU that is only idle is not throttled, by the function's older name too") {
  const GpuReading reading = Nvml("GPU-hot", KJUDGE_FAKE_NVML_OLD).read();
  REQUIRE(reading.throttle_reasons);
  CHECK(reading.throttle_reasons->empty());
}

TEST_CASE("NVML: what is not there is absent, and no error") {
  CHECK(empty(Nvml("GPU-silent", KJUDGE_FAKE_NVML).read()));
  CHECK(empty(Nvml("GPU-of-another-machine", KJUDGE_FAKE_NVML).read()));
  CHECK(users_of_fake() == 0);
  CHECK(empty(Nvml("GPU-hot", "/no/such/libnvidia-ml.so.1").read()));
  CHECK(empty(Nvml("GPU-hot", "libc.so.6").read()));  // a library, but another
}

TEST_CASE("NVML: how a GPU is set up") {
  const GpuSettings settings = Nvml("GPU-hot", KJUDGE_FAKE_NVML).settings();
  CHECK(settings.persistence == true);
  CHECK(settings.ecc == false);
  CHECK(settings.mig == true);
  CHECK(settings.compute_mode == "exclusive_process");
  CHECK(settings.clock_mhz == 345u);
  CHECK(settings.most_clock_mhz == 1980u);
  CHECK(settings.memory_clock_mhz == 2619u);
  CHECK(settings.most_memory_clock_mhz == 3201u);
  CHECK(settings.processes == std::vector<unsigned>{4711, 42});

  const std::pair<const char*, const char*> silent[] = {{"GPU-silent", KJUDGE_FAKE_NVML},
                                                        {"GPU-hot", KJUDGE_FAKE_NVML_OLD},
                                                        {"GPU-hot", "/no/such/libnvidia-ml.so.1"}};
  for (const auto& [uuid, library] : silent) {
    const GpuSettings nothing = Nvml(uuid, library).settings();
    CHECK_FALSE(nothing.persistence.has_value());
    CHECK_FALSE(nothing.compute_mode.has_value());
    CHECK_FALSE(nothing.clock_mhz.has_value());
    CHECK_FALSE(nothing.processes.has_value());
  }
}
