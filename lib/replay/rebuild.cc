// SPDX-License-Identifier: Apache-2.0
#include "replay/rebuild.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace kjudge {
namespace {

constexpr std::uint64_t kTransferAlignment = 256;
// What is left of a region around its tensors is overwritten too, or a kernel could keep notes
// there.
constexpr unsigned char kGapByte = 0xa5;

[[noreturn]] void differs(const std::string& what) {
  throw Error(Fault::malformed, cat(what,
                                    "; the bundle was not recorded on this machine's driver "
                                    "and device, or was changed"));
}

std::string label(const KernelNode& node) { return cat("kernel ", readable_name(node.name)); }

int int_of(const Attribute& attribute) {
  int value = 0;
  std::memcpy(&value, attribute.value.data(), sizeof value);
  return value;
}

// A parameter is copied by the sizes that the loaded function states, so those must be the recorded
// ones before the driver sees the buffer.
void check_parameters(const Driver& driver, CUfunction function, const KernelNode& node) {
  for (std::size_t i = 0; i <= node.argument_offsets.size(); ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult result = driver.cuFuncGetParamInfo(function, i, &offset, &size);
    const bool exists = result == CUDA_SUCCESS;
    if (!exists && result != CUDA_ERROR_INVALID_VALUE) {
      check_driver(driver, result, "cuFuncGetParamInfo");
    }
    if (i == node.argument_offsets.size()) {
      if (exists) differs(cat(label(node), ": has more parameters than the ", i, " recorded"));
      return;
    }
    if (!exists || offset != node.argument_offsets[i] || size != node.argument_sizes[i]) {
      differs(cat(label(node), ": parameter ", i, " is not as recorded"));
    }
    if (offset + size > node.arguments.size()) {
      differs(cat(label(node), ": parameter ", i, " lies outside the recorded arguments"));
    }
  }
}

void check_observed(const Driver& driver, CUfunction function, const KernelNode& node) {
  for (const Attribute& attribute : node.observed_attributes) {
    int value = 0;
    KJ_DRIVER(driver, cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(attribute.id),
                                         function));
    if (value != int_of(attribute)) {
      differs(cat(label(node), ": function attribute ", attribute.id, " is ", value,
                  ", recorded was ", int_of(attribute)));
    }
  }
}

CUcontext current_context(const Driver& driver) {
  CUcontext context = nullptr;
  KJ_DRIVER(driver, cuCtxGetCurrent(&context));
  return context;
}

CUgraphNode add_memset(const Driver& driver, CUgraph graph, const MemsetNode& node) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = node.address;
  params.pitch = node.pitch;
  params.value = node.value;
  params.elementSize = node.element_size;
  params.width = node.width;
  params.height = node.height;
  CUgraphNode added = nullptr;
  KJ_DRIVER(driver,
            cuGraphAddMemsetNode(&added, graph, nullptr, 0, &params, current_context(driver)));
  return added;
}

CUgraphNode add_memcpy(const Driver& driver, CUgraph graph, const MemcpyNode& node) {
  CUDA_MEMCPY3D params{};
  params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  params.srcDevice = node.source;
  params.srcPitch = node.source_pitch;
  params.srcHeight = node.source_height;
  params.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  params.dstDevice = node.destination;
  params.dstPitch = node.destination_pitch;
  params.dstHeight = node.destination_height;
  params.WidthInBytes = node.width_bytes;
  params.Height = node.height;
  params.Depth = node.depth;
  CUgraphNode added = nullptr;
  KJ_DRIVER(driver,
            cuGraphAddMemcpyNode(&added, graph, nullptr, 0, &params, current_context(driver)));
  return added;
}

}  // namespace

std::vector<ShapeTensors> tensors_by_shape(const Bundle& bundle) {
  std::vector<ShapeTensors> shapes(bundle.shapes.size());
  for (std::size_t i = 0; i < bundle.tensors.size(); ++i) {
    const Tensor& tensor = bundle.tensors[i];
    ShapeTensors& shape = shapes.at(tensor.shape);
    if (tensor.role != Role::output) shape.inputs.push_back(i);
    if (tensor.role == Role::input) continue;
    const auto size = static_cast<std::uint64_t>(size_bytes(tensor.spec));
    shape.written.push_back({i, shape.transfer_bytes, size});
    shape.transfer_bytes +=
        (size + kTransferAlignment - 1) / kTransferAlignment * kTransferAlignment;
  }
  return shapes;
}

std::size_t region_of(const Bundle& bundle, std::uint64_t address) {
  const auto after = std::upper_bound(
      bundle.regions.begin(), bundle.regions.end(), address,
      [](std::uint64_t value, const Region& region) { return value < region.address; });
  KJ_CHECK(after != bundle.regions.begin());
  const auto region = after - 1;
  KJ_CHECK(address - region->address < region->size);
  return static_cast<std::size_t>(region - bundle.regions.begin());
}

int arena_range(const Bundle& bundle) {
  if (bundle.regions.empty()) return 0;
  const std::uint32_t device = bundle.regions.front().device;
  for (const Region& region : bundle.regions) {
    if (region.device == device) continue;
    throw Error(Fault::malformed, cat("its memory is of devices ", device, " and ", region.device,
                                      "; only recordings of one device can be replayed"));
  }
  return static_cast<int>(device);
}

std::uint64_t poison_key(std::uint64_t poison, std::size_t output) {
  return poison + 0x9e3779b97f4a7c15u * (output + 1);
}

Rebuild::LoadedModule::LoadedModule(const Driver& driver, const Module& module) : driver_(&driver) {
  KJ_DRIVER(driver, cuModuleLoadData(&module_, module.image.data()));
}

Rebuild::LoadedModule::~LoadedModule() {
  if (module_ != nullptr) driver_->cuModuleUnload(module_);
}

Rebuild::Rebuild(DeviceSide& device, const Bundle& bundle, const std::vector<SharedMemory>& shared)
    : device_(device),
      driver_(device.driver),
      bundle_(bundle),
      stream_(device.stream.get()),
      tensors_(tensors_by_shape(bundle)) {
  if (bundle.provenance.driver != name(driver_.kind)) {
    throw Error(Fault::malformed, cat("the bundle was recorded with the ", bundle.provenance.driver,
                                      " driver, this is the ", name(driver_.kind), " driver"));
  }
  for (const Limit& limit : bundle.limits) {
    // What one context sets aside of the L2 cache the other arm would lack. Its only use, access
    // policy windows, is refused.
    if (limit.id == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) continue;
    KJ_DRIVER(driver_, cuCtxSetLimit(static_cast<CUlimit>(limit.id), limit.value));
  }
  map_memory(shared);
  load_modules();
  for (std::size_t i = 0; i < bundle.shapes.size(); ++i) {
    // What nobody replays lacks its inputs, and the driver takes no copy from nowhere.
    if (!has_inputs(i)) {
      execs_.emplace_back(driver_, nullptr);
      continue;
    }
    try {
      execs_.push_back(build(bundle.shapes[i].graph));
    } catch (Error& error) {
      error.context(cat("shape ", bundle.shapes[i].name));
      throw;
    }
  }
  KJ_DRIVER(driver_, cuStreamSynchronize(stream_));
  for (const std::size_t region : hidden_) {
    device_.arena.set_access(bundle_.regions[region].address, Access::read);
  }
}

bool Rebuild::has_inputs(std::size_t shape) const {
  return std::all_of(tensors_[shape].inputs.begin(), tensors_[shape].inputs.end(),
                     [&](std::size_t input) {
                       return given_.contains(region_of(bundle_, bundle_.tensors[input].address));
                     });
}

void Rebuild::map_memory(const std::vector<SharedMemory>& shared) {
  std::vector<const SharedMemory*> given(bundle_.regions.size());
  for (const SharedMemory& memory : shared) {
    KJ_CHECK(memory.region < given.size() && given[memory.region] == nullptr);
    KJ_CHECK(memory.memory->size() == bundle_.regions[memory.region].size);
    given[memory.region] = &memory;
    given_.insert(memory.region);
  }
  for (std::size_t i = 0; i < bundle_.regions.size(); ++i) {
    const Region& region = bundle_.regions[i];
    const DeviceMemory* theirs = given[i] == nullptr ? nullptr : given[i]->memory;
    if (region.role == Role::input) {
      KJ_CHECK(theirs == nullptr || given[i]->purpose == Purpose::input);
      if (theirs != nullptr) device_.arena.map(region.address, *theirs, Access::read);
      continue;
    }
    if (region.role == Role::inout && theirs == nullptr) continue;
    KJ_CHECK(region.role != Role::state || theirs != nullptr);
    own_.push_back(DeviceMemory::create(driver_, device_.number, region.size));
    device_.arena.map(region.address, own_.back(), Access::read_write);
    if (region.role != Role::state) hidden_.push_back(i);
    if (theirs != nullptr) {
      sources_.emplace(i, Mapping(driver_, device_.number, *theirs, Access::read));
    }
  }
}

void Rebuild::load_modules() {
  for (const Module& module : bundle_.modules) {
    modules_.emplace_back(driver_, module);
    for (const ModuleVariable& variable : module.variables) {
      CUdeviceptr address = 0;
      std::size_t size = 0;
      KJ_DRIVER(driver_,
                cuModuleGetGlobal(&address, &size, modules_.back().get(), variable.name.c_str()));
      if (size != variable.size) {
        differs(cat("variable ", variable.name, ": has ", size, " bytes, recorded were ",
                    variable.size));
      }
      Variable saved{address, Bytes(size)};
      if (size > 0) KJ_DRIVER(driver_, cuMemcpyDtoH(saved.bytes.data(), address, size));
      variables_.push_back(std::move(saved));
    }
  }
}

// Loaded eagerly: lazy loading behind the block kernel would wait for it for ever.
CUfunction Rebuild::function(const KernelNode& node) {
  const auto key = std::make_pair(node.module, node.name);
  if (const auto known = functions_.find(key); known != functions_.end()) return known->second;
  CUfunction loaded = nullptr;
  KJ_DRIVER(driver_,
            cuModuleGetFunction(&loaded, modules_.at(node.module).get(), node.name.c_str()));
  KJ_DRIVER(driver_, cuFuncLoad(loaded));
  functions_.emplace(key, loaded);
  return loaded;
}

// Only what was set is set: a default that is set is not the same as one that is not (gpu-facts).
CUgraphNode Rebuild::add_kernel(CUgraph graph, const KernelNode& node) {
  const CUfunction kernel = function(node);
  check_parameters(driver_, kernel, node);
  check_observed(driver_, kernel, node);
  for (const Attribute& attribute : node.function_attributes) {
    int value = int_of(attribute);
    // One function in several nodes, set anew before each launch: what is recorded is the last
    // setting of all, and neither that nor this node's may be too small for another node.
    if (attribute.id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      int& most = dynamic_shared_[kernel];
      value = most = std::max({most, value, static_cast<int>(node.shared_bytes)});
    }
    KJ_DRIVER(driver_,
              cuFuncSetAttribute(kernel, static_cast<CUfunction_attribute>(attribute.id), value));
  }
  if (node.cache_config >= 0) {
    KJ_DRIVER(driver_, cuFuncSetCacheConfig(kernel, static_cast<CUfunc_cache>(node.cache_config)));
  }

  Bytes arguments = node.arguments;
  std::vector<void*> parameters;
  for (const std::uint32_t offset : node.argument_offsets) {
    parameters.push_back(arguments.data() + offset);
  }
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = kernel;
  params.gridDimX = node.grid.x;
  params.gridDimY = node.grid.y;
  params.gridDimZ = node.grid.z;
  params.blockDimX = node.block.x;
  params.blockDimY = node.block.y;
  params.blockDimZ = node.block.z;
  params.sharedMemBytes = node.shared_bytes;
  params.kernelParams = parameters.data();
  CUgraphNode added = nullptr;
  KJ_DRIVER(driver_, cuGraphAddKernelNode(&added, graph, nullptr, 0, &params));
  for (const Attribute& attribute : node.launch_attributes) {
    CUlaunchAttributeValue value{};
    static_assert(sizeof value <= sizeof attribute.value);
    std::memcpy(&value, attribute.value.data(), sizeof value);
    KJ_DRIVER(driver_, cuGraphKernelNodeSetAttribute(
                           added, static_cast<CUlaunchAttributeID>(attribute.id), &value));
  }
  return added;
}

GraphExec Rebuild::build(const Graph& recorded) {
  const GraphHandle graph(driver_);
  std::vector<CUgraphNode> nodes;
  bool prioritized = false;
  for (const Node& node : recorded.nodes) {
    if (const auto* kernel = std::get_if<KernelNode>(&node)) {
      try {
        nodes.push_back(add_kernel(graph.get(), *kernel));
      } catch (DriverError& error) {
        error.context(label(*kernel));
        throw;
      }
      for (const Attribute& attribute : kernel->launch_attributes) {
        prioritized = prioritized || attribute.id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
      }
    } else if (const auto* memset = std::get_if<MemsetNode>(&node)) {
      nodes.push_back(add_memset(driver_, graph.get(), *memset));
    } else if (const auto* copy = std::get_if<MemcpyNode>(&node)) {
      nodes.push_back(add_memcpy(driver_, graph.get(), *copy));
    } else {
      CUgraphNode added = nullptr;
      KJ_DRIVER(driver_, cuGraphAddEmptyNode(&added, graph.get(), nullptr, 0));
      nodes.push_back(added);
    }
  }
  for (const Edge& edge : recorded.edges) {
    CUgraphEdgeData data{};
    data.from_port = edge.from_port;
    data.to_port = edge.to_port;
    data.type = edge.type;
    KJ_DRIVER(driver_, cuGraphAddDependencies(graph.get(), &nodes.at(edge.from), &nodes.at(edge.to),
                                              &data, 1));
  }
  CUgraphExec exec = nullptr;
  KJ_DRIVER(driver_, cuGraphInstantiateWithFlags(
                         &exec, graph.get(),
                         prioritized ? CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY : 0));
  GraphExec built(driver_, exec);
  KJ_DRIVER(driver_, cuGraphUpload(exec, stream_));
  return built;
}

void Rebuild::select(std::size_t shape) {
  if (shape == selected_) return;
  KJ_DRIVER(driver_, cuStreamSynchronize(stream_));
  std::set<std::size_t> used;
  for (const ShapeTensors::Written& output : tensors_[shape].written) {
    used.insert(region_of(bundle_, bundle_.tensors[output.tensor].address));
  }
  for (const std::size_t input : tensors_[shape].inputs) {
    used.insert(region_of(bundle_, bundle_.tensors[input].address));
  }
  for (const std::size_t region : hidden_) {
    device_.arena.set_access(bundle_.regions[region].address,
                             used.contains(region) ? Access::read_write : Access::read);
  }
  selected_ = shape;
}

void Rebuild::restore(std::size_t shape) {
  KJ_CHECK(shape == selected_);
  for (const auto& [region, source] : sources_) {
    const Region& to = bundle_.regions[region];
    if (to.role == Role::inout) continue;
    KJ_DRIVER(driver_, cuMemcpyDtoDAsync(to.address, source.address(), to.size, stream_));
  }
  for (const std::size_t input : tensors_[shape].inputs) {
    if (bundle_.tensors[input].role != Role::inout) continue;
    const std::size_t region = region_of(bundle_, bundle_.tensors[input].address);
    const Region& to = bundle_.regions[region];
    KJ_DRIVER(driver_,
              cuMemcpyDtoDAsync(to.address, sources_.at(region).address(), to.size, stream_));
  }
  for (const Variable& variable : variables_) {
    if (variable.bytes.empty()) continue;
    KJ_DRIVER(driver_, cuMemcpyHtoDAsync(variable.address, variable.bytes.data(),
                                         variable.bytes.size(), stream_));
  }
}

void Rebuild::poison(std::size_t shape, std::uint64_t poison) {
  KJ_CHECK(shape == selected_);
  struct Span {
    std::uint64_t begin, end;
  };
  std::map<std::size_t, std::vector<Span>> written;
  const auto& tensors = tensors_[shape].written;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = bundle_.tensors[tensors[i].tensor];
    if (tensor.role != Role::output) continue;
    FillParams fill{};
    fill.address = tensor.address;
    fill.count = tensors[i].size_bytes;
    fill.key = poison_key(poison, i);
    fill.kind = fill_bits;
    device_.kernels.fill(stream_, fill);
    const std::size_t region = region_of(bundle_, tensor.address);
    if (bundle_.regions[region].role == Role::state) continue;  // what surrounds it was restored
    written[region].push_back({tensor.address, tensor.address + tensors[i].size_bytes});
  }
  for (auto& [index, spans] : written) {
    const Region& region = bundle_.regions[index];
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
    spans.push_back({region.address + region.size, region.address + region.size});
    std::uint64_t at = region.address;
    for (const Span& span : spans) {
      if (span.begin > at) {
        KJ_DRIVER(driver_, cuMemsetD8Async(at, kGapByte, span.begin - at, stream_));
      }
      at = std::max(at, span.end);
    }
  }
}

void Rebuild::read_memory(std::size_t shape, std::uint64_t sink) {
  const auto read = [&](const Region& region) {
    device_.kernels.evict(stream_, EvictParams{region.address, region.size, sink});
  };
  for (const Region& region : bundle_.regions) {
    if (region.role == Role::state) read(region);
  }
  for (const std::size_t input : tensors_[shape].inputs) {
    read(bundle_.regions[region_of(bundle_, bundle_.tensors[input].address)]);
  }
}

void Rebuild::copy_written(std::size_t shape, std::uint64_t to) {
  for (const ShapeTensors::Written& output : tensors_[shape].written) {
    if (output.size_bytes == 0) continue;
    KJ_DRIVER(driver_, cuMemcpyDtoDAsync(to + output.offset, bundle_.tensors[output.tensor].address,
                                         output.size_bytes, stream_));
  }
}

}  // namespace kjudge
