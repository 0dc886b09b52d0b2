// SPDX-License-Identifier: Apache-2.0
// Speed and peak memory of writing and reading a bundle: bench_bundle_speed [GiB
// [random|weights|zero]]. `weights` are normally distributed float32 in steps of 2^-20, most of
// whose bits do not compress.

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "bundle/bundle.h"
#include "error.h"
#include "file.h"

using namespace kjudge;

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peak_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 27) * 0x94d049bb133111eb;
  return value ^ value >> 31;
}

// A few MiB made before, at another offset each time: making them shall not count.
Bytes make_pool(std::string_view kind) {
  Bytes pool(8u << 20);
  for (std::size_t i = 0; i < pool.size(); i += 8) {
    std::uint64_t value = mix((i + 1) * 0x9e3779b97f4a7c15);
    if (kind == "weights") {
      const double u = (static_cast<double>(value >> 40) + 1) / (1 << 24) / 2 + 1e-9;
      const double radius = std::sqrt(-2 * std::log(u));
      const double angle = static_cast<double>(value & 0xffffff) / (1 << 24) * 6.283185307179586;
      const float pair[2] = {static_cast<float>(radius * std::cos(angle) * 0.02),
                             static_cast<float>(radius * std::sin(angle) * 0.02)};
      std::memcpy(&value, pair, sizeof(value));
    }
    if (kind == "zero") value = 0;
    std::memcpy(pool.data() + i, &value, sizeof(value));
  }
  return pool;
}

}  // namespace

int main(int argc, char** argv) try {
  const double gib = argc > 1 ? std::atof(argv[1]) : 1;
  const Bytes pool = make_pool(argc > 2 ? argv[2] : "random");

  Bundle bundle;
  bundle.provenance.arch = "x86_64";
  bundle.provenance.driver = "host";
  const auto granules = static_cast<std::uint64_t>(gib * 512);
  bundle.regions = {{kArenaBase, granules * kRegionGranule, Role::state, 0}};
  bundle.shapes.push_back({"empty", {}, {}});
  const double bytes = static_cast<double>(bundle.regions[0].size);

  TempDir directory;
  const auto path = directory.path() / "speed.kjb";
  double start = now_s();
  {
    BundleWriter writer(path);
    writer.add_memory(bundle.regions[0], [&](std::uint64_t offset, std::span<std::byte> out) {
      const std::size_t at = offset / 5 % (pool.size() - out.size()) / 8 * 8;
      std::memcpy(out.data(), pool.data() + at, out.size());
    });
    writer.finish(bundle);
  }
  const double write_s = now_s() - start;

  start = now_s();
  const BundleReader reader(path);
  std::uint64_t sum = 0;
  Bytes target(4u << 20);
  reader.read_memory(0, [&](std::uint64_t, std::span<const std::byte> block) {
    std::memcpy(target.data(), block.data(), block.size());
    sum += static_cast<std::uint64_t>(target[block.size() / 2]);
  });
  const double read_s = now_s() - start;

  std::printf(
      "%.2f GiB, %.2f GiB in the file: write %.0f MB/s (to the disk), read %.0f MB/s, "
      "peak memory %.0f MiB (check %llu)\n",
      bytes / (1 << 30), static_cast<double>(reader.file_bytes()) / (1 << 30),
      bytes / write_s / 1e6, bytes / read_s / 1e6, peak_mib(),
      static_cast<unsigned long long>(sum));
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
