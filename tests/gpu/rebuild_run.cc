// SPDX-License-Identifier: Apache-2.0
// Rebuilds a bundle in a fresh process and replays its shapes on inputs from files.
//
//   rebuild_run BUNDLE FOLDER RUNS LAUNCHES
//
// Also a library, librebuild_run.so, whose rebuild_run() does so in a process that is there already.
//
// For each shape S and input X, FOLDER/S.X.in holds RUNS tensors one after the other; outputs go to
// FOLDER/S.Y.out likewise. Then LAUNCHES timed launches of each shape on hot caches. Prints JSON: times
// in milliseconds, "first_launch_ms" from the start of main, graphs' medians in nanoseconds.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <list>

#include <nlohmann/json.hpp>

#include "bundle/bundle.h"
#include "replay/rebuild.h"
#include "replay/timed_launch.h"
#include "replay/timing.h"

namespace kjudge {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::filesystem::path file_of(const std::filesystem::path& folder, const CapturedShape& shape,
                              const Tensor& tensor, const char* suffix) {
  return folder / cat(shape.name, ".", tensor.spec.name, suffix);
}

void run(const std::filesystem::path& bundle_path, const std::filesystem::path& folder, int runs,
         int launches) {
  const auto start = Clock::now();
  nlohmann::json out;
  const Driver& driver = Driver::open(DriverKind::cuda);
  const BundleReader reader(bundle_path);
  const Bundle& bundle = reader.bundle();
  DeviceSide device(driver, 0, arena_range(bundle));
  out["context_ms"] = ms_since(start);

  auto step = Clock::now();
  std::list<DeviceMemory> memory;
  std::list<Mapping> mappings;
  std::vector<SharedMemory> shared;
  std::map<std::size_t, std::uint64_t> address_of_region;
  std::uint64_t state_bytes = 0;
  for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
    const Region& region = bundle.regions[i];
    if (region.role == Role::output) continue;
    memory.push_back(DeviceMemory::create(driver, 0, region.size));
    mappings.emplace_back(driver, 0, memory.back(), Access::read_write);
    const std::uint64_t address = mappings.back().address();
    address_of_region[i] = address;
    Purpose purpose = region.role == Role::inout ? Purpose::inout_source : Purpose::input;
    if (region.role == Role::state) {
      purpose = Purpose::pristine;
      state_bytes += region.size;
      KJ_DRIVER(driver, cuMemsetD8Async(address, 0, region.size, device.stream.get()));
      device.stream.synchronize();
      reader.read_memory(i, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
        device.stream.upload(address + offset, bytes.data(), bytes.size());
      });
    }
    shared.push_back({i, purpose, &memory.back()});
  }
  out["state_bytes"] = state_bytes;
  out["memory_ms"] = ms_since(step);
  step = Clock::now();
  Rebuild rebuild(device, bundle, shared);
  device.stream.synchronize();
  out["rebuild_ms"] = ms_since(step);
  TimedLaunch timed(driver, device.kernels, device.stream.get(), 2'000'000'000);

  for (std::size_t s = 0; s < bundle.shapes.size(); ++s) {
    const CapturedShape& shape = bundle.shapes[s];
    rebuild.select(s);
    for (int r = 0; r < runs; ++r) {
      for (const std::size_t input : rebuild.tensors(s).inputs) {
        const Tensor& tensor = bundle.tensors[input];
        Bytes bytes(static_cast<std::size_t>(size_bytes(tensor.spec)));
        std::ifstream file(file_of(folder, shape, tensor, ".in"), std::ios::binary);
        file.seekg(static_cast<std::streamoff>(bytes.size()) * r);
        if (!file.read(reinterpret_cast<char*>(bytes.data()),
                       static_cast<std::streamsize>(bytes.size()))) {
          throw Error(Fault::host, cat(file_of(folder, shape, tensor, ".in").string(), ": too short"));
        }
        device.stream.upload(address_of_region.at(region_of(bundle, tensor.address)), bytes.data(),
                             bytes.size());
      }
      rebuild.restore(s);
      rebuild.poison(s, static_cast<std::uint64_t>(r));
      KJ_DRIVER(driver, cuGraphLaunch(rebuild.exec(s), device.stream.get()));
      device.stream.synchronize();
      if (!out.contains("first_launch_ms")) out["first_launch_ms"] = ms_since(start);
      for (const auto& written : rebuild.tensors(s).written) {
        const Tensor& tensor = bundle.tensors[written.tensor];
        Bytes bytes(written.size_bytes);
        KJ_DRIVER(driver, cuMemcpyDtoH(bytes.data(), tensor.address, bytes.size()));
        std::ofstream file(file_of(folder, shape, tensor, ".out"),
                           std::ios::binary | (r == 0 ? std::ios::trunc : std::ios::app));
        file.write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
      }
    }
    std::vector<double> times;
    for (int i = 0; i < launches; ++i) {
      timed.queue(rebuild.exec(s), static_cast<std::uint64_t>(i));
      timed.run();
      times.push_back(timed.event_ns());
    }
    out["shapes"][shape.name] = {{"nodes", shape.graph.nodes.size()}};
    if (!times.empty()) out["shapes"][shape.name]["event_ns"] = median(std::move(times));
  }
  std::cout << out.dump() << "\n";
}

}  // namespace
}  // namespace kjudge

// Prints the JSON, or what went wrong; returns an exit code.
extern "C" int rebuild_run(const char* bundle, const char* folder, int runs, int launches) {
  try {
    kjudge::run(bundle, folder, runs, launches);
    std::cout.flush();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "rebuild_run BUNDLE FOLDER RUNS LAUNCHES\n");
    return 2;
  }
  std::_Exit(rebuild_run(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4])));
}
