// SPDX-License-Identifier: Apache-2.0
#include "contest.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "challenge/generators.h"
#include "record/made_up.h"
#include "replay/rebuild.h"

namespace kjudge {
namespace {

constexpr std::uint64_t kSeed = 4711;

Bytes image_of(DriverKind kind) {
  const std::string text =
      read_file(kind == DriverKind::host ? KJUDGE_TEST_HOST_KERNELS : KJUDGE_TEST_GPU_KERNELS);
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(bytes, bytes + text.size());
}

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

Shape make_shape(const std::string& shape_name, std::int64_t n, bool timed) {
  Shape shape;
  shape.name = shape_name;
  shape.timed = timed;
  shape.arch = "x86_64";
  shape.dtype = "float32";
  shape.inputs.push_back({TensorSpec{"x", DType::float32, {n}, {}}, false});
  OutputSpec output;
  output.tensor = TensorSpec{"out", DType::float32, {n}, {}};
  output.checks.push_back({CheckKind::close, 1e-5, 1e-5, 0, false});
  shape.outputs.push_back(output);
  shape.regimes.push_back({"nominal", 3, {{fill_normal, 0, 1}}});
  shape.regimes.push_back({"large", 2, {{fill_uniform, 2e5, 3e5}}});
  return shape;
}

}  // namespace

void on_each_driver(const std::function<void(DriverKind)>& test) {
  const char* only = std::getenv("KJUDGE_TEST_DRIVER");
  const auto wanted = [&](DriverKind kind) { return only == nullptr || name(kind) == only; };
  if (wanted(DriverKind::host)) test(DriverKind::host);
  if (wanted(DriverKind::cuda) && cuda_available()) test(DriverKind::cuda);
}

Contest::Contest(DriverKind kind, std::vector<std::int64_t> sizes) : driver_(Driver::open(kind)) {
  challenge.name = "double";
  challenge.limits.replay_s = 5;
  for (const std::int64_t n : sizes) challenge.shapes.push_back(make_shape(cat("n", n), n, true));
  challenge.shapes.push_back(make_shape("ragged", 4097, false));
  options.secret = "secret";
  options.evaluation = "00000000-0000-4000-8000-000000000001";
  options.order_seed = 7;
  options.worker = KJUDGE_TEST_WORKER;
}

void Contest::with_inout() {
  inout = true;
  for (Shape& shape : challenge.shapes) {
    shape.inputs.push_back(
        {TensorSpec{"y", DType::float32, shape.inputs[0].tensor.dims, {}}, true});
    for (Regime& regime : shape.regimes) regime.generators.push_back({fill_normal, 0, 1});
  }
}

std::filesystem::path Contest::make(const ArmCode& code, bool is_reference) {
  Bundle bundle;
  const bool host = driver_.kind == DriverKind::host;
  bundle.provenance.arch = host ? "x86_64" : "sm_90";
  bundle.provenance.driver = host ? "host" : "cuda";
  bundle.provenance.seed = kSeed;
  Module module;
  module.image = image_of(driver_.kind);
  if (code.variable) {
    module.variables.push_back({"calls_in_variable", 8});
  }
  bundle.modules.push_back(module);

  const auto region = [&](std::uint64_t size, Role role) {
    Region made{
        next_address_,
        (std::max<std::uint64_t>(size, 1) + kRegionGranule - 1) / kRegionGranule * kRegionGranule,
        role, 0};
    next_address_ += made.size + kRegionGranule;
    bundle.regions.push_back(made);
    return made.address;
  };
  struct Addresses {
    std::uint64_t in, out, y;
  };
  std::vector<Addresses> addresses;
  std::uint64_t largest = 0;
  for (std::uint32_t s = 0; s < challenge.shapes.size(); ++s) {
    const Shape& shape = challenge.shapes[s];
    Addresses at{};
    const auto tensor = [&](const TensorSpec& spec, Role role) {
      TensorSpec strided = spec;
      strided.strides = contiguous_strides(spec.dims);
      const std::uint64_t size = static_cast<std::uint64_t>(size_bytes(spec));
      largest = std::max(largest, size);
      const std::uint64_t address = region(size, role);
      bundle.tensors.push_back({s, role, strided, address});
      return address;
    };
    at.in = tensor(shape.inputs[0].tensor, Role::input);
    if (inout) at.y = tensor(shape.inputs[1].tensor, Role::inout);
    TensorSpec out = shape.outputs[0].tensor;
    if (is_reference) out.dtype = shape.outputs[0].expected_dtype;
    // Not at the start of its region: what is around it is the region's too.
    const std::uint64_t out_size = static_cast<std::uint64_t>(size_bytes(out));
    largest = std::max(largest, out_size);
    at.out = region(out_size + 4096, Role::output) + 1024;
    out.strides = contiguous_strides(out.dims);
    bundle.tensors.push_back({s, Role::output, out, at.out});
    addresses.push_back(at);
  }
  const std::uint64_t state = region(largest + 4096 + code.unused_state, Role::state);

  for (std::size_t s = 0; s < challenge.shapes.size(); ++s) {
    const Shape& shape = challenge.shapes[s];
    const std::int64_t n = shape.inputs[0].tensor.dims[0];
    const std::uint64_t out_bytes = static_cast<std::uint64_t>(n) * (is_reference ? 8 : 4);
    CapturedShape captured;
    captured.name = code.changed == "shape" && s == 0 ? "unknown" : shape.name;
    for (const std::string& kernel : code.kernels) {
      if (kernel == "memset") {
        captured.graph.nodes.push_back(MemsetNode{state + 4096, 0, 0xff, 1, out_bytes, 1});
      } else if (kernel == "memcpy") {
        // The answer goes to state and back, with zeros over it meanwhile.
        captured.graph.nodes.push_back(MemcpyNode{state + 4096, addresses[s].out, out_bytes,
                                                  out_bytes, 1, 1, out_bytes, 1, 1});
        captured.graph.nodes.push_back(MemsetNode{addresses[s].out, 0, 0, 1, out_bytes, 1});
        captured.graph.nodes.emplace_back(std::in_place_type<EmptyNode>);
        captured.graph.nodes.push_back(MemcpyNode{addresses[s].out, state + 4096, out_bytes,
                                                  out_bytes, 1, 1, out_bytes, 1, 1});
      } else {
        KernelNode node;
        node.name = kernel;
        node.grid = {driver_.kind == DriverKind::host ? 4u : 128u, 1, 1};
        node.block = {driver_.kind == DriverKind::host ? 1u : 256u, 1, 1};
        append(node.arguments, addresses[s].out);
        append(node.arguments, code.changed == "input" ? addresses[s].out : addresses[s].in);
        append(node.arguments, n);
        node.argument_offsets = {0, 8, 16};
        node.argument_sizes = {8, 8, 8};
        if (code.extra != ArmCode::nothing) {
          append(node.arguments, code.extra == ArmCode::state   ? state
                                 : code.extra == ArmCode::inout ? addresses[s].y
                                                                : addresses[s == 0 ? 1 : 0].out);
          node.argument_offsets.push_back(24);
          node.argument_sizes.push_back(8);
        }
        if (code.changed == "parameters") {
          node.argument_offsets.pop_back();
          node.argument_sizes.pop_back();
        }
        if (code.changed == "registers") {
          Attribute registers;
          registers.id = CU_FUNC_ATTRIBUTE_NUM_REGS;
          const int value = 1234;
          std::memcpy(registers.value.data(), &value, sizeof value);
          node.observed_attributes.push_back(registers);
        }
        captured.graph.nodes.push_back(node);
      }
    }
    for (std::uint32_t i = 1; i < captured.graph.nodes.size(); ++i) {
      captured.graph.edges.push_back({i - 1, i, 0, 0, 0});
    }
    captured.output_hashes.assign(inout ? 2 : 1, 0);
    bundle.shapes.push_back(captured);
  }
  if (code.hashed && code.changed.empty() && !is_reference) {
    for (std::size_t s = 0; s < bundle.shapes.size(); ++s) {
      bundle.shapes[s].output_hashes = hashes(bundle, s);
    }
  }

  const auto path = folder_.path() / cat(++bundles_, ".kjb");
  BundleWriter writer(path);
  for (const Region& written : bundle.regions) {
    if (written.role != Role::state) continue;
    writer.add_memory(written, [](std::uint64_t, std::span<std::byte> out) {
      std::fill(out.begin(), out.end(), std::byte{0});
    });
  }
  writer.finish(bundle);
  return path;
}

// What the capturing process does last: its own replay on the made-up inputs.
std::vector<std::uint64_t> Contest::hashes(const Bundle& bundle, std::size_t index) {
  DeviceSide side(driver_, 0, 0);
  const Shape& shape = challenge.shapes[index];
  std::vector<DeviceMemory> memory;
  memory.reserve(bundle.regions.size());
  std::vector<SharedMemory> shared;
  for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
    const Region& region = bundle.regions[i];
    if (region.role == Role::output) continue;
    memory.push_back(DeviceMemory::create(driver_, 0, region.size));
    const Mapping mapping(driver_, 0, memory.back(), Access::read_write);
    KJ_DRIVER(driver_, cuMemsetD8Async(mapping.address(), 0, region.size, side.stream.get()));
    for (const Tensor& tensor : bundle.tensors) {
      if (tensor.shape != index || tensor.address != region.address) continue;
      const std::size_t input = tensor.spec.name == "x" ? 0 : 1;
      const Generator& generator = shape.regimes[0].generators[input];
      FillParams fill = fill_params(generator, tensor.spec);
      fill.address = mapping.address();
      fill.key = made_up_key(kSeed, shape.name, tensor.spec.name);
      side.kernels.fill(side.stream.get(), fill);
    }
    side.stream.synchronize();
    shared.push_back({i,
                      region.role == Role::input   ? Purpose::input
                      : region.role == Role::inout ? Purpose::inout_source
                                                   : Purpose::pristine,
                      &memory.back()});
  }
  Rebuild rebuild(side, bundle, shared);
  rebuild.select(index);
  rebuild.restore(index);
  rebuild.poison(index, 1);
  KJ_DRIVER(driver_, cuGraphLaunch(rebuild.exec(index), side.stream.get()));
  side.stream.synchronize();
  std::vector<std::uint64_t> hashes;
  for (const auto& output : rebuild.tensors(index).written) {
    Bytes bytes(output.size_bytes);
    KJ_DRIVER(driver_,
              cuMemcpyDtoH(bytes.data(), bundle.tensors[output.tensor].address, bytes.size()));
    hashes.push_back(XXH3_64bits(bytes.data(), bytes.size()));
  }
  return hashes;
}

Evaluation Contest::judge(const ArmCode& submission, const ArmCode& baseline,
                          const ArmCode& reference, const ReportProgress& progress) {
  return replay({make(reference, true), make(baseline), make(submission)}, progress);
}

Evaluation Contest::replay(const Bundles& bundles, const ReportProgress& progress) {
  const BundleReader reference(bundles.reference), baseline(bundles.baseline),
      submission(bundles.submission);
  Evaluation evaluation;
  measure(driver_, challenge, &reference, baseline, submission, options, progress, evaluation);
  return evaluation;
}

int children_of_ours() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    for (std::string pid; children >> pid;) ++count;
  }
  return count;
}

}  // namespace kjudge
