// SPDX-License-Identifier: Apache-2.0
#include "judge/floor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "error.h"
#include "file.h"
#include "judge/device.h"

using namespace kjudge;

namespace {

constexpr std::uint64_t kMillion = 1'000'000;

FloorBasis measured() {
  FloorBasis basis{"NVIDIA H200 GPU-1", 60 * kMillion, {}};
  basis.measured = MeasuredRates{4e12, 3e12, {{"float32", 5e13}}};
  return basis;
}

// Floor of one shape: "25 us measured", "none".
std::string floor_with(const Work& work, const FloorBasis& basis,
                       const std::function<void(Challenge&)>& change = {}) {
  Challenge challenge;
  Shape& shape = challenge.shapes.emplace_back();
  shape.dtype = "float32";
  shape.work = work;
  if (change) change(challenge);
  compute_floors(challenge, basis);
  const Shape& made = challenge.shapes.front();
  if (!made.floor_ns) return "none";
  return cat(std::llround(*made.floor_ns / 1e3), " us ", name(made.floor_from));
}

const auto kSaid = [](Challenge& challenge) {
  challenge.rates = {{"A100", 2e12, {}}, {"H200", 5e12, {{"float32", 1e14}}}, {"NVIDIA", 1, {}}};
};
const auto kHot = [](Challenge& challenge) { challenge.cache = CacheMode::hot; };

}  // namespace

TEST_CASE("floor: the longer of bytes and operations") {
  CHECK(floor_with({400 * kMillion, 0, 0}, measured()) == "100 us measured");
  CHECK(floor_with({0, 0, 10'000 * kMillion}, measured()) == "200 us measured");
  CHECK(floor_with({400 * kMillion, 0, 10'000 * kMillion}, measured()) == "200 us measured");
  CHECK(floor_with({400 * kMillion, 0, 1'000 * kMillion}, measured()) == "100 us measured");
  CHECK(floor_with({0, 0, 0}, measured()) == "none");
}

TEST_CASE("floor: what is written may stay in the caches, and what is hot is there") {
  CHECK(floor_with({400 * kMillion, 60 * kMillion, 0}, measured()) == "100 us measured");
  CHECK(floor_with({400 * kMillion, 460 * kMillion, 0}, measured()) == "200 us measured");
  CHECK(floor_with({40 * kMillion, 0, 0}, measured()) == "10 us measured");
  CHECK(floor_with({40 * kMillion, 20 * kMillion, 0}, measured(), kHot) == "none");
  CHECK(floor_with({440 * kMillion, 20 * kMillion, 0}, measured(), kHot) == "100 us measured");
}

TEST_CASE("floor: what the challenge says of the device goes before what was measured") {
  CHECK(floor_with({500 * kMillion, 0, 0}, measured(), kSaid) == "100 us rates");
  CHECK(floor_with({0, 0, 10'000 * kMillion}, measured(), kSaid) == "100 us rates");
  FloorBasis other = measured();
  other.device = "another GPU";
  CHECK(floor_with({400 * kMillion, 0, 0}, other, kSaid) == "100 us measured");
  // Of the A100 only its memory is said.
  other.device = "NVIDIA A100";
  CHECK(floor_with({0, 0, 10'000 * kMillion}, other, kSaid) == "200 us measured");
  CHECK(floor_with({200 * kMillion, 0, 10'000 * kMillion}, other, kSaid) == "200 us measured");
  CHECK(floor_with({600 * kMillion, 0, 10'000 * kMillion}, other, kSaid) == "300 us rates");
}

TEST_CASE("floor: none is made of what nobody knows") {
  FloorBasis nothing = measured();
  nothing.measured.reset();
  CHECK(floor_with({400 * kMillion, 0, 10'000 * kMillion}, nothing) == "none");
  const auto other_dtype = [](Challenge& challenge) { challenge.shapes[0].dtype = "float16"; };
  CHECK(floor_with({0, 0, 10'000 * kMillion}, measured(), other_dtype) == "none");
  const auto no_work = [](Challenge& challenge) {
    challenge.shapes[0].work.reset();
    challenge.shapes[0].floor_ns = 7000;
  };
  CHECK(floor_with({}, measured(), no_work) == "7 us challenge");
}

TEST_CASE("floor: a device that was measured is known by its file") {
  const TempDir cache;
  const Driver& driver = Driver::open(DriverKind::host);
  const DeviceIdentity identity = identify(driver, 0);
  CHECK(floor_basis(driver, 0, cache.path()).device == identity.name);
  CHECK_FALSE(floor_basis(driver, 0, cache.path()).measured.has_value());
  MeasuredDevice device{identity.name,          "x86_64",         "host 13.0", "0.1.0",
                        "2026-11-30T12:00:00Z", {2e10, 1e10, {}}, 1,           {}};
  write_file_atomically(measured_device_path(cache.path(), identity),
                        print_json(Json{measured_device_table().write(device)}));
  CHECK(floor_basis(driver, 0, cache.path()).measured->read_bytes_per_s == 2e10);
}
