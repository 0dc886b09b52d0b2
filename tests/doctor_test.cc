// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor.h"

#include <doctest/doctest.h>

#include "error.h"
#include "judge/doctor_gpu.h"

using namespace kjudge;

namespace {

GpuSettings fit() {
  GpuSettings settings;
  settings.persistence = true;
  settings.ecc = true;
  settings.mig = false;
  settings.compute_mode = "default";
  settings.clock_mhz = 345;
  settings.most_clock_mhz = 1980;
  settings.processes = {7};
  return settings;
}

// "GPU 0 MIG: warning", of those that are not good.
std::string complaints(const GpuSettings& settings, const std::vector<std::string>& reasons = {}) {
  GpuReading reading;
  reading.throttle_reasons = reasons;
  std::string text;
  for (const Finding& finding : examine_settings("GPU 0 ", settings, reading, 7)) {
    CHECK(finding.advice.empty() == (finding.state == Finding::State::good));
    if (finding.state == Finding::State::good) continue;
    text += cat(text.empty() ? "" : ", ", finding.name, ": ", name(finding.state));
  }
  return text;
}

template <class Member, class Value>
std::string with(Member member, Value value) {
  GpuSettings settings = fit();
  settings.*member = value;
  return complaints(settings);
}

}  // namespace

TEST_CASE("doctor: a GPU that is fit has nothing said against it, nor one that says nothing") {
  CHECK(complaints(fit()).empty());
  CHECK(examine_settings("GPU 0 ", {}, {}, 7).empty());
}

TEST_CASE("doctor: what of a GPU disturbs or stops") {
  CHECK(with(&GpuSettings::persistence, false) == "GPU 0 persistence mode: warning");
  CHECK(with(&GpuSettings::ecc, false) == "GPU 0 ECC: warning");
  CHECK(with(&GpuSettings::mig, true) == "GPU 0 MIG: warning");
  CHECK(with(&GpuSettings::compute_mode, "exclusive_process") == "GPU 0 compute mode: failure");
  CHECK(with(&GpuSettings::compute_mode, "prohibited") == "GPU 0 compute mode: failure");
  CHECK(with(&GpuSettings::processes, std::vector<unsigned>{7, 8}) ==
        "GPU 0 other processes: warning");
  CHECK(complaints(fit(), {"sw_power_cap"}) == "GPU 0 throttled: warning");
}

TEST_CASE("doctor: each finding of this machine has a name, and advice where it is not good") {
  for (const Finding& finding : examine_machine()) {
    CAPTURE(finding.name);
    CHECK_FALSE(finding.name.empty());
    CHECK_FALSE(finding.what.empty());
    CHECK(finding.advice.empty() == (finding.state == Finding::State::good));
  }
}
