// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "challenge/challenge.h"
#include "driver/nvml.h"
#include "replay/challenge_python.h"
#include "replay/custom_checks.h"
#include "replay/device_checks.h"
#include "replay/device_side.h"
#include "replay/evaluation.h"
#include "replay/other_processes.h"
#include "replay/rebuild.h"

namespace kjudge {

// What to read so that the device's caches hold nothing else.
std::uint64_t eviction_bytes(const DeviceSide& side);

// A bundle seen through the shapes that are measured.
struct BoundBundle {
  const BundleReader* reader = nullptr;
  std::vector<std::size_t> shapes;    // by measured shape: index into Bundle::shapes
  std::vector<ShapeTensors> tensors;  // by shape of the bundle
  // By measured shape and output of the challenge: index into ShapeTensors::written.
  std::vector<std::vector<std::size_t>> outputs;
  const Bundle& bundle() const { return reader->bundle(); }
};

enum class ExpectedType { of_submission, of_reference };

// Fault::malformed when the bundle is of several devices, lacks a shape or tensor, has one of
// another type or size, or has an input that is not alone in its region: all inputs of a shape are
// memory of the supervisor's.
BoundBundle bind_shapes(const BundleReader& reader, std::span<const Shape* const> shapes,
                        ExpectedType type);

// The trusted side of the device. Owns what workers map: inputs, pristine copies of recorded
// memory, the eviction buffer, a transfer buffer per slot. Expected outputs stay in memory that is
// never sent to anyone.
class SupervisorDevice {
 public:
  // `range` is that of the reference's bundle. Fault::device on a GPU that reads pageable host
  // memory, unless `allow_pageable`.
  SupervisorDevice(const Driver& driver, int device, int range, bool allow_pageable);

  // In this order, once. The bundles, shapes and challenge must outlive this.
  void make_inputs(std::vector<const Shape*> shapes);
  void start_inputs(const Challenge& challenge,
                    Channel::Idle idle);  // inputs.py, where it has a part
  void rebuild_reference(const BoundBundle& reference);
  void start_reference(const Challenge& challenge, Channel::Idle idle);  // in its place
  void start_checks(const Challenge& challenge,
                    Channel::Idle idle);  // check.py, where it has a part
  // In this order: what is made before the copies cannot fail for want of memory that an arm took.
  void bind_arm(ArmName arm, const BoundBundle& bundle);
  void make_buffers();
  void make_eviction(CacheMode cache);  // for workers
  void copy_memory(ArmName arm);

  // What a worker of the arm is given.
  const BoundBundle& arm(ArmName arm) const { return arms_[static_cast<std::size_t>(arm)].bundle; }
  const std::vector<SharedMemory>& memory(ArmName arm) const {
    return arms_[static_cast<std::size_t>(arm)].memory;
  }
  const DeviceMemory& eviction() const { return eviction_; }
  const DeviceMemory& transfer(std::size_t slot) const { return transfers_[slot].memory; }

  // The values of one replay, the same for reference and arms.
  using KeyOf = std::function<std::uint64_t(const std::string& tensor)>;
  void fill(std::size_t shape, std::size_t regime, const KeyOf& key_of);
  Bytes input_bytes(std::size_t shape, std::size_t input);
  std::vector<std::uint64_t> input_digests(std::size_t shape) const;
  // Runs the reference on them: the expected outputs.
  void expect(std::size_t shape);
  // The name of an input that is not as fill() left it.
  std::optional<std::string> changed_input(std::size_t shape);

  // Clears a transfer buffer: kernels can write there, and what a replay left must not be there at
  // the next.
  void wipe(std::size_t slot);

  // Outputs in a transfer buffer, against the expected ones. `poison` is what the replay began
  // with.
  std::optional<DeviceChecks::Failure> check(std::size_t shape, std::size_t regime, ArmName arm,
                                             std::size_t slot, std::uint64_t poison);
  // What all of an arm's outputs together came to, where check.py is asked for that.
  std::optional<DeviceChecks::Failure> check_means(std::size_t shape, ArmName arm) const;
  // XXH3-64 of each output's bytes, in the order of the bundle's tensors.
  std::vector<std::uint64_t> output_hashes(std::size_t shape, ArmName arm, std::size_t slot);

  struct Spin {
    double cycles = 0, ns = 0;
  };
  Spin calibrate();
  // Empty on the host driver, and where NVML is not there.
  GpuReading gpu_reading() const { return nvml_ ? nvml_->read() : GpuReading{}; }
  // Other processes on the GPU since the last call. The first begins to look; nullopt also where
  // nothing tells.
  std::optional<std::string> other_processes();

 private:
  struct Input {
    DeviceBuffer buffer;
    std::uint64_t size_bytes = 0, digest = 0;
  };
  struct ArmSide {
    BoundBundle bundle;
    std::vector<SharedMemory> memory;
  };

  std::vector<SharedMemory> share(const BoundBundle& bundle);
  std::vector<std::uint64_t> digests(std::size_t shape);
  std::uint64_t hash(std::uint64_t address, std::uint64_t bytes);
  std::uint64_t expected_address(std::size_t shape, std::size_t output) const;

  DeviceSide side_;
  const Driver& driver_;
  std::optional<Nvml> nvml_;
  std::optional<OtherProcesses> others_;
  std::vector<const Shape*> shapes_;
  std::vector<std::vector<Input>> inputs_;  // by measured shape and input of the challenge
  std::deque<DeviceMemory> pristine_;
  DeviceMemory eviction_;
  std::array<DeviceBuffer, 2> transfers_;
  DeviceBuffer sums_;  // that kjudge's kernels add to
  std::optional<DeviceChecks> checks_;
  std::array<ArmSide, 2> arms_;
  std::unique_ptr<ChallengePython> inputs_python_;  // null: no shape needs it
  std::unique_ptr<CustomChecks> custom_checks_;     // likewise
  BoundBundle reference_;
  std::unique_ptr<Rebuild> rebuild_;
  // Of a reference in Python.
  std::vector<std::vector<DeviceBuffer>>
      expected_;  // by measured shape and output of the challenge
  std::unique_ptr<ChallengePython> python_;
  std::vector<bool> expected_before_;    // by measured shape
  PinnedMemory results_;                 // of kjudge's kernels
  std::optional<PinnedMemory> staging_;  // on the way to a hash
};

}  // namespace kjudge
