// SPDX-License-Identifier: Apache-2.0
#include "replay/supervisor_device.h"

#include <xxhash.h>

#include <algorithm>
#include <set>

#include "challenge/generators.h"

namespace kjudge {
namespace {

constexpr std::uint64_t kMegabyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kStagingBytes = 8 * kMegabyte;

std::uint64_t round_up(std::uint64_t size, std::uint64_t to) { return (size + to - 1) / to * to; }

const Tensor& find(const Bundle& bundle, std::size_t shape, const std::string& tensor_name) {
  for (const Tensor& tensor : bundle.tensors) {
    if (tensor.shape == shape && tensor.spec.name == tensor_name) return tensor;
  }
  throw Error(Fault::malformed, cat("no tensor ", tensor_name));
}

void check_spec(const Tensor& tensor, const TensorSpec& wanted, DType dtype) {
  if (tensor.spec.dtype != dtype || tensor.spec.dims != wanted.dims ||
      tensor.spec.strides != contiguous_strides(wanted.dims)) {
    throw Error(Fault::malformed, cat("tensor ", wanted.name, ": is not the contiguous ",
                                      name(dtype), " tensor of the challenge"));
  }
}

}  // namespace

// At least 4 x the last-level cache: a cache with a random or adaptive policy keeps some of what it
// held after one pass of its own size. On the host driver at most 256 MiB: the huge caches of large
// servers are slices that a few cores do not fill, and 1 GiB took 60 ms for each replay, many times
// the kernel.
std::uint64_t eviction_bytes(const DeviceSide& side) {
  const int cache = side.context.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  const std::uint64_t bytes =
      std::max<std::uint64_t>(4 * static_cast<std::uint64_t>(std::max(cache, 0)), 16 * kMegabyte);
  return side.driver.kind == DriverKind::host ? std::min(bytes, 256 * kMegabyte) : bytes;
}

BoundBundle bind_shapes(const BundleReader& reader, std::span<const Shape* const> shapes,
                        ExpectedType type) {
  const Bundle& bundle = reader.bundle();
  arena_range(bundle);
  BoundBundle bound{&reader, {}, tensors_by_shape(bundle), {}};
  for (const Shape* shape : shapes) {
    const auto recorded =
        std::find_if(bundle.shapes.begin(), bundle.shapes.end(),
                     [&](const CapturedShape& captured) { return captured.name == shape->name; });
    if (recorded == bundle.shapes.end()) {
      throw Error(Fault::malformed, cat("shape ", shape->name, ": not in the bundle"));
    }
    const auto index = static_cast<std::size_t>(recorded - bundle.shapes.begin());
    bound.shapes.push_back(index);
    std::vector<std::size_t> outputs;
    try {
      for (const InputSpec& input : shape->inputs) {
        const Tensor& tensor = find(bundle, index, input.tensor.name);
        check_spec(tensor, input.tensor, input.tensor.dtype);
        const Region& region = bundle.regions[region_of(bundle, tensor.address)];
        const auto in_region = std::count_if(
            bundle.tensors.begin(), bundle.tensors.end(),
            [&](const Tensor& other) { return other.address - region.address < region.size; });
        if (tensor.role == Role::output || tensor.address != region.address || in_region != 1 ||
            region.size != round_up(std::max<std::uint64_t>(
                                        static_cast<std::uint64_t>(size_bytes(tensor.spec)), 1),
                                    kRegionGranule)) {
          throw Error(Fault::malformed,
                      cat("input ", input.tensor.name, ": is not alone in a region of its size"));
        }
      }
      const auto& recorded_outputs = bound.tensors[index].written;
      for (const OutputSpec& output : shape->outputs) {
        const Tensor& tensor = find(bundle, index, output.tensor.name);
        check_spec(
            tensor, output.tensor,
            type == ExpectedType::of_reference ? output.expected_dtype : output.tensor.dtype);
        const auto place = std::find_if(
            recorded_outputs.begin(), recorded_outputs.end(),
            [&](const auto& candidate) { return &bundle.tensors[candidate.tensor] == &tensor; });
        if (place == recorded_outputs.end()) {
          throw Error(Fault::malformed, cat("tensor ", output.tensor.name, ": is not an output"));
        }
        outputs.push_back(static_cast<std::size_t>(place - recorded_outputs.begin()));
      }
    } catch (Error& error) {
      error.context(cat("shape ", shape->name));
      throw;
    }
    bound.outputs.push_back(std::move(outputs));
  }
  return bound;
}

SupervisorDevice::SupervisorDevice(const Driver& driver, int device, int range, bool allow_pageable)
    : side_(driver, device, range), driver_(driver), results_(driver, 4096) {
  if (driver.kind == DriverKind::cuda && !allow_pageable &&
      side_.context.attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0) {
    throw Error(
        Fault::device,
        "kernels of this GPU can read and write all memory of their process (pageable memory "
        "access), so a submission could forge its times; load the nvidia_uvm module with "
        "uvm_disable_hmm=1, or allow it for submissions that you trust");
  }
  if (driver.kind == DriverKind::cuda) nvml_.emplace(gpu_uuid(driver, device));
}

void SupervisorDevice::make_inputs(std::vector<const Shape*> shapes) {
  shapes_ = std::move(shapes);
  expected_before_.assign(shapes_.size(), false);
  for (const Shape* shape : shapes_) {
    std::vector<Input> inputs;
    for (const InputSpec& input : shape->inputs) {
      const auto size = static_cast<std::uint64_t>(size_bytes(input.tensor));
      inputs.push_back({make_buffer(side_, size, Access::read_write), size, 0});
    }
    inputs_.push_back(std::move(inputs));
  }
}

void SupervisorDevice::start_inputs(const Challenge& challenge, Channel::Idle idle) {
  std::vector<ChallengePython::SharedShape> shared;
  bool used = false;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const auto& regimes = shapes_[s]->regimes;
    used = used || std::any_of(regimes.begin(), regimes.end(), uses_python);
    ChallengePython::SharedShape& shape = shared.emplace_back();
    shape.shape = shapes_[s];
    for (const Input& input : inputs_[s]) shape.tensors.push_back(&input.buffer.memory);
  }
  if (!used) return;
  inputs_python_ = std::make_unique<ChallengePython>(
      driver_, side_.number, challenge, ChallengePython::File::inputs, shared, std::move(idle));
}

void SupervisorDevice::start_checks(const Challenge& challenge, Channel::Idle idle) {
  if (std::none_of(shapes_.begin(), shapes_.end(),
                   [](const Shape* shape) { return uses_custom_check(*shape); })) {
    return;
  }
  std::vector<std::vector<const DeviceMemory*>> inputs;
  for (const auto& of_shape : inputs_) {
    auto& memories = inputs.emplace_back();
    for (const Input& input : of_shape) memories.push_back(&input.buffer.memory);
  }
  custom_checks_ =
      std::make_unique<CustomChecks>(side_, challenge, shapes_, inputs, std::move(idle));
}

// Memory for the regions of a bundle: the shapes' inputs, and a pristine copy of each region of
// state, decompressed once for all rounds.
std::vector<SharedMemory> SupervisorDevice::share(const BoundBundle& bound) {
  const Bundle& bundle = bound.bundle();
  std::vector<SharedMemory> shared;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    for (std::size_t i = 0; i < shapes_[s]->inputs.size(); ++i) {
      const Tensor& tensor = find(bundle, bound.shapes[s], shapes_[s]->inputs[i].tensor.name);
      shared.push_back({region_of(bundle, tensor.address),
                        tensor.role == Role::inout ? Purpose::inout_source : Purpose::input,
                        &inputs_[s][i].buffer.memory});
    }
  }
  for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
    if (bundle.regions[i].role != Role::state) continue;
    pristine_.push_back(DeviceMemory::create(driver_, side_.number, bundle.regions[i].size));
    const Mapping mapping(driver_, side_.number, pristine_.back(), Access::read_write);
    if (driver_.kind == DriverKind::cuda) {  // the host driver's memory begins as zeros
      KJ_DRIVER(driver_,
                cuMemsetD8Async(mapping.address(), 0, pristine_.back().size(), side_.stream.get()));
      side_.stream.synchronize();
    }
    bound.reader->read_memory(i, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
      side_.stream.upload(mapping.address() + offset, bytes.data(), bytes.size());
    });
    side_.stream.synchronize();
    shared.push_back({i, Purpose::pristine, &pristine_.back()});
  }
  return shared;
}

void SupervisorDevice::rebuild_reference(const BoundBundle& reference) {
  reference_ = reference;
  rebuild_ = std::make_unique<Rebuild>(side_, reference_.bundle(), share(reference_));
}

void SupervisorDevice::start_reference(const Challenge& challenge, Channel::Idle idle) {
  std::vector<ChallengePython::SharedShape> shared;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    std::vector<DeviceBuffer>& expected = expected_.emplace_back();
    ChallengePython::SharedShape& shape = shared.emplace_back();
    shape.shape = shapes_[s];
    for (const Input& input : inputs_[s]) shape.tensors.push_back(&input.buffer.memory);
    for (const OutputSpec& output : shapes_[s]->outputs) {
      TensorSpec tensor = output.tensor;
      tensor.dtype = output.expected_dtype;
      const auto size = static_cast<std::uint64_t>(size_bytes(tensor));
      expected.push_back(make_buffer(side_, std::max<std::uint64_t>(size, 1), Access::read_write));
    }
    for (const DeviceBuffer& buffer : expected) shape.tensors.push_back(&buffer.memory);
  }
  python_ = std::make_unique<ChallengePython>(
      driver_, side_.number, challenge, ChallengePython::File::reference, shared, std::move(idle));
}

std::uint64_t SupervisorDevice::expected_address(std::size_t shape, std::size_t output) const {
  if (python_ != nullptr) return expected_[shape][output].mapping.address();
  const auto& places = reference_.tensors[reference_.shapes[shape]].written;
  return reference_.bundle().tensors[places[reference_.outputs[shape][output]].tensor].address;
}

void SupervisorDevice::bind_arm(ArmName arm, const BoundBundle& bundle) {
  arms_[static_cast<std::size_t>(arm)].bundle = bundle;
}

void SupervisorDevice::copy_memory(ArmName arm) {
  ArmSide& side = arms_[static_cast<std::size_t>(arm)];
  side.memory = share(side.bundle);
}

// Hot replays evict nothing: theirs is there for the sake of one protocol.
void SupervisorDevice::make_eviction(CacheMode cache) {
  const bool used = cache == CacheMode::cold;
  eviction_ = DeviceMemory::create(driver_, side_.number, used ? eviction_bytes(side_) : 1);
  if (!used) return;
  // Written once, so that on the host driver its pages are memory and not one page of zeros.
  const Mapping mapping(driver_, side_.number, eviction_, Access::read_write);
  KJ_DRIVER(driver_,
            cuMemsetD8Async(mapping.address(), 0x5a, eviction_.size(), side_.stream.get()));
  side_.stream.synchronize();
}

void SupervisorDevice::make_buffers() {
  // In device memory: a GPU's atomics on host memory took 100 ms for a digest of 256 MB.
  sums_ = make_buffer(side_, 1, Access::read_write);
  checks_.emplace(side_, shapes_);
  std::uint64_t most = 1;
  for (const ArmSide& arm : arms_) {
    for (const std::size_t shape : arm.bundle.shapes) {
      most = std::max(most, arm.bundle.tensors[shape].transfer_bytes);
    }
  }
  for (DeviceBuffer& transfer : transfers_) transfer = make_buffer(side_, most, Access::read_write);
}

// Of kjudge: this process, two workers, and those of Python.
std::optional<std::string> SupervisorDevice::other_processes() {
  if (!nvml_) return std::nullopt;
  if (others_) return others_->seen();
  std::size_t own = 3;
  for (const bool there :
       {inputs_python_ != nullptr, python_ != nullptr, custom_checks_ != nullptr}) {
    own += there ? 1 : 0;
  }
  others_.emplace([this] { return nvml_->processes(); }, own);
  return std::nullopt;
}

std::vector<std::uint64_t> SupervisorDevice::digests(std::size_t shape) {
  auto& inputs = inputs_[shape];
  std::vector<std::uint64_t> sums(inputs.size());
  if (sums.empty()) return sums;
  const std::size_t bytes = sums.size() * sizeof(std::uint64_t);
  KJ_CHECK(bytes <= sums_.memory.size());
  KJ_DRIVER(driver_, cuMemsetD8Async(sums_.mapping.address(), 0, bytes, side_.stream.get()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    side_.kernels.digest(
        side_.stream.get(),
        DigestParams{inputs[i].buffer.mapping.address(), round_up(inputs[i].size_bytes, 8),
                     sums_.mapping.address() + i * sizeof(std::uint64_t)});
  }
  side_.stream.synchronize();
  KJ_DRIVER(driver_, cuMemcpyDtoH(sums.data(), sums_.mapping.address(), bytes));
  return sums;
}

void SupervisorDevice::fill(std::size_t shape, std::size_t regime, const KeyOf& key_of) {
  const auto& specs = shapes_[shape]->inputs;
  const auto& generators = shapes_[shape]->regimes[regime].generators;
  KJ_CHECK(generators.size() == specs.size());
  checks_->new_inputs();
  for (const std::size_t i : fill_order(generators)) {
    const Generator& generator = generators[i];
    FillParams params = fill_params(generator, specs[i].tensor);
    params.address = inputs_[shape][i].buffer.mapping.address();
    params.key = key_of(generator.key_of.empty() ? specs[i].tensor.name : generator.key_of);
    for (std::size_t j = 0; j < specs.size(); ++j) {
      if (specs[j].tensor.name != generator.source) continue;
      params.source = inputs_[shape][j].buffer.mapping.address();
    }
    side_.kernels.fill(side_.stream.get(), params);
  }
  if (uses_python(shapes_[shape]->regimes[regime])) {
    // What it leaves out must not be of the replay before.
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (generators[i].kind != fill_python) continue;
      KJ_DRIVER(driver_, cuMemsetD8Async(inputs_[shape][i].buffer.mapping.address(), 0,
                                         inputs_[shape][i].size_bytes, side_.stream.get()));
    }
    side_.stream.synchronize();
    inputs_python_->fill(shape, regime, key_of("inputs.py"));
  }
  const auto sums = digests(shape);
  for (std::size_t i = 0; i < sums.size(); ++i) inputs_[shape][i].digest = sums[i];
}

std::vector<std::uint64_t> SupervisorDevice::input_digests(std::size_t shape) const {
  std::vector<std::uint64_t> found;
  for (const Input& input : inputs_[shape]) found.push_back(input.digest);
  return found;
}

Bytes SupervisorDevice::input_bytes(std::size_t shape, std::size_t input) {
  Bytes bytes(inputs_[shape][input].size_bytes);
  side_.stream.synchronize();
  KJ_DRIVER(driver_, cuMemcpyDtoH(bytes.data(), inputs_[shape][input].buffer.mapping.address(),
                                  bytes.size()));
  return bytes;
}

void SupervisorDevice::expect(std::size_t shape) {
  // An element that the reference does not write is then wrong for everyone, and seen at once.
  constexpr std::uint64_t kPoison = 0x6578706563746564u;
  const bool first = !expected_before_[shape];
  expected_before_[shape] = true;
  if (python_ != nullptr) {
    for (std::size_t o = 0; first && o < expected_[shape].size(); ++o) {
      FillParams fill{};
      fill.address = expected_[shape][o].mapping.address();
      fill.count = expected_[shape][o].memory.size();
      fill.key = poison_key(kPoison, o);
      fill.kind = fill_bits;
      fill.dtype = static_cast<std::uint32_t>(DType::uint8);
      side_.kernels.fill(side_.stream.get(), fill);
    }
    side_.stream.synchronize();
    python_->call(shape);
    return;
  }
  const std::size_t index = reference_.shapes[shape];
  rebuild_->select(index);
  rebuild_->restore(index);
  if (first) rebuild_->poison(index, kPoison);
  KJ_DRIVER(driver_, cuGraphLaunch(rebuild_->exec(index), side_.stream.get()));
  side_.stream.synchronize();
}

std::optional<std::string> SupervisorDevice::changed_input(std::size_t shape) {
  const auto sums = digests(shape);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] != inputs_[shape][i].digest) return shapes_[shape]->inputs[i].tensor.name;
  }
  return std::nullopt;
}

void SupervisorDevice::wipe(std::size_t slot) {
  const DeviceBuffer& transfer = transfers_[slot];
  KJ_DRIVER(driver_, cuMemsetD8Async(transfer.mapping.address(), 0, transfer.memory.size(),
                                     side_.stream.get()));
  side_.stream.synchronize();
}

std::optional<DeviceChecks::Failure> SupervisorDevice::check(std::size_t shape, std::size_t regime,
                                                             ArmName arm_name, std::size_t slot,
                                                             std::uint64_t poison) {
  const BoundBundle& bound = arm(arm_name);
  const auto& written = bound.tensors[bound.shapes[shape]].written;
  std::vector<DeviceChecks::Place> places;
  for (std::size_t o = 0; o < shapes_[shape]->outputs.size(); ++o) {
    const std::size_t place = bound.outputs[shape][o];
    places.push_back({transfers_[slot].mapping.address() + written[place].offset,
                      expected_address(shape, o), poison_key(poison, place)});
  }
  auto failure = checks_->check(*shapes_[shape], arm_name, places);
  if (failure || custom_checks_ == nullptr) return failure;
  return custom_checks_->check(shape, regime, arm_name, places);
}

std::optional<DeviceChecks::Failure> SupervisorDevice::check_means(std::size_t shape,
                                                                   ArmName arm_name) const {
  return custom_checks_ == nullptr ? std::nullopt : custom_checks_->check_means(shape, arm_name);
}

std::vector<std::uint64_t> SupervisorDevice::output_hashes(std::size_t shape, ArmName arm_name,
                                                           std::size_t slot) {
  const BoundBundle& bound = arm(arm_name);
  std::vector<std::uint64_t> hashes;
  for (const auto& output : bound.tensors[bound.shapes[shape]].written) {
    hashes.push_back(hash(transfers_[slot].mapping.address() + output.offset, output.size_bytes));
  }
  return hashes;
}

// XXH3-64 of device memory. One half of the staging memory is hashed while the other is filled.
std::uint64_t SupervisorDevice::hash(std::uint64_t address, std::uint64_t bytes) {
  if (!staging_) staging_.emplace(driver_, 2 * kStagingBytes);
  const auto half = [&](std::uint64_t offset) {
    return staging_->as<std::byte>() + offset / kStagingBytes % 2 * kStagingBytes;
  };
  const auto copy = [&](std::uint64_t offset) {
    KJ_DRIVER(driver_,
              cuMemcpyDtoHAsync(half(offset), address + offset,
                                std::min(bytes - offset, kStagingBytes), side_.stream.get()));
  };
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  KJ_CHECK(state != nullptr);
  XXH3_64bits_reset(state.get());
  if (bytes > 0) copy(0);
  for (std::uint64_t offset = 0; offset < bytes; offset += kStagingBytes) {
    side_.stream.synchronize();
    if (bytes - offset > kStagingBytes) copy(offset + kStagingBytes);
    XXH3_64bits_update(state.get(), half(offset), std::min(bytes - offset, kStagingBytes));
  }
  return XXH3_64bits_digest(state.get());
}

// Long enough to show the clock, short enough to cost nothing: about 0.1 ms.
SupervisorDevice::Spin SupervisorDevice::calibrate() {
  const std::uint64_t iterations = driver_.kind == DriverKind::cuda ? 4000 : 50000;
  auto* result = results_.as<std::uint64_t>();
  side_.kernels.calibrate(side_.stream.get(), CalibrateParams{results_.address(), iterations});
  side_.stream.synchronize();
  return {static_cast<double>(result[0]), static_cast<double>(result[1])};
}

}  // namespace kjudge
