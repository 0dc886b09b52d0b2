// SPDX-License-Identifier: Apache-2.0
#include "record/graph_copy.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "elf_image.h"
#include "record/cupti.h"
#include "record/device_code.h"
#include "record/node_rules.h"
#include "record/rules.h"

namespace kjudge {
namespace {

static_assert(sizeof(CUlaunchAttributeValue) == sizeof(Attribute::value));

Attribute attribute_of(std::uint32_t id, const void* value, std::size_t size) {
  Attribute attribute{id, {}};
  std::memcpy(attribute.value.data(), value, size);
  return attribute;
}

// What the kernel of a node is, by each handle it may have.
struct NodeKernel {
  CUfunction function = nullptr;
  CUkernel kernel = nullptr;
  FunctionSettings settings;
};

NodeKernel resolve_kernel(const Watched& watched, const CUDA_KERNEL_NODE_PARAMS_v2& params) {
  const Driver& driver = watched.driver;
  NodeKernel found{params.func, params.kern, {}};
  if (found.function == nullptr && found.kernel != nullptr) {
    KJ_DRIVER(driver, cuKernelGetFunction(&found.function, found.kernel));
  }
  KJ_CHECK(found.function != nullptr);
  const RecordedModules& modules = watched.observed->modules;
  found.settings = modules.settings(found.function);
  if (found.kernel != nullptr) {
    FunctionSettings of_kernel = modules.settings(found.kernel);
    found.settings.attributes.merge(of_kernel.attributes);
    if (found.settings.cache_config < 0) found.settings.cache_config = of_kernel.cache_config;
  }
  return found;
}

// Handle of the library that a CUkernel (or a CUkernel handed out as CUfunction) belongs to.
const void* library_of(const Watched& watched, const void* kernel) {
  const auto get = reinterpret_cast<PFN_cuKernelGetLibrary_v12050>(
      watched.optional_entry("cuKernelGetLibrary", 12050));
  CUlibrary library = nullptr;
  const auto handle = reinterpret_cast<CUkernel>(const_cast<void*>(kernel));
  if (get == nullptr || kernel == nullptr || get(&library, handle) != CUDA_SUCCESS) return nullptr;
  return library;
}

// The cubin that a kernel of a lazily loaded library is in: the one that defines its name; where
// several do, the one that was loaded for this kernel or for its library. Null: not known.
const LoadedCubin* find_cubin(const Watched& watched, const std::vector<LoadedCubin>& cubins,
                              const NodeKernel& kernel, std::string_view name) {
  const std::string section = cat(".text.", name);
  std::vector<const LoadedCubin*> defining;
  for (const LoadedCubin& cubin : cubins) {
    const bool seen = std::any_of(defining.begin(), defining.end(), [&](const LoadedCubin* other) {
      return *other->image == *cubin.image;
    });
    if (!seen && Elf(*cubin.image).has_section(section)) defining.push_back(&cubin);
  }
  if (defining.size() > 1) {
    const void* library = library_of(watched, kernel.kernel);
    std::erase_if(defining, [&](const LoadedCubin* cubin) {
      return cubin->owner != kernel.kernel && cubin->owner != kernel.function &&
             (library == nullptr ||
              (cubin->owner != library && library_of(watched, cubin->owner) != library));
    });
  }
  return defining.size() == 1 ? defining.front() : nullptr;
}

std::size_t image_of(const Watched& watched, const NodeKernel& kernel, std::string_view name) {
  CUmodule module = nullptr;
  KJ_DRIVER(watched.driver, cuFuncGetModule(&module, kernel.function));
  RecordedModules& modules = watched.observed->modules;
  if (const auto image = modules.image_of(module)) return *image;
  const auto module_of = reinterpret_cast<PFN_cuLibraryGetModule_v12000>(
      watched.optional_entry("cuLibraryGetModule", 12000));
  for (const void* library : modules.libraries()) {
    CUmodule of_library = nullptr;
    const auto handle = reinterpret_cast<CUlibrary>(const_cast<void*>(library));
    const auto image = modules.image_of(library);
    if (image && module_of != nullptr && module_of(&of_library, handle) == CUDA_SUCCESS &&
        of_library == module) {
      return *image;
    }
  }
  if (watched.driver.kind == DriverKind::cuda) {
    const std::vector<LoadedCubin> cubins = loaded_cubins();
    if (const LoadedCubin* cubin = find_cubin(watched, cubins, kernel, name)) {
      const std::size_t image = modules.keep(*cubin->image);
      modules.loaded(module, image, false);
      return image;
    }
  }
  throw Refused(Rule::unknown_module, cat("the module of kernel ", name, " was not seen loading"));
}

// A driver that does not know an attribute has none set.
bool is_unknown(CUresult result) {
  return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED;
}

void copy_arguments(const Driver& driver, const CUDA_KERNEL_NODE_PARAMS_v2& params,
                    CUfunction function, KernelNode& node) {
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult result = driver.cuFuncGetParamInfo(function, i, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) break;
    check_driver(driver, result, "cuFuncGetParamInfo");
    node.argument_offsets.push_back(static_cast<std::uint32_t>(offset));
    node.argument_sizes.push_back(static_cast<std::uint32_t>(size));
  }
  const std::size_t count = node.argument_offsets.size();
  if (count == 0) return;
  node.arguments.resize(node.argument_offsets.back() + node.argument_sizes.back());
  if (params.kernelParams != nullptr) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(node.arguments.data() + node.argument_offsets[i], params.kernelParams[i],
                  node.argument_sizes[i]);
    }
    return;
  }
  // The parameter buffer as one piece, which is how cuBLAS launches.
  const void* buffer = nullptr;
  std::size_t buffer_bytes = 0;
  for (void** extra = params.extra; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      std::memcpy(&buffer_bytes, extra[1], sizeof(buffer_bytes));
    }
  }
  if (buffer == nullptr) {
    throw Refused(Rule::unknown_node,
                  cat("kernel ", readable_name(node.name), " has parameters but no arguments"));
  }
  std::memcpy(node.arguments.data(), buffer, std::min(buffer_bytes, node.arguments.size()));
}

// Whether `value` is what an unset attribute reads; nullopt where a launch can set that value, too,
// and it then is not the same as leaving it.
std::optional<bool> reads_unset(CUlaunchAttributeID id, const CUlaunchAttributeValue& value) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return value.accessPolicyWindow.num_bytes == 0;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      return value.cooperative == 0;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      return value.clusterDim.x == 0;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      // Reads "spread" when unset (H200).
      if (value.clusterSchedulingPolicyPreference == CU_CLUSTER_SCHEDULING_POLICY_SPREAD) {
        return std::nullopt;
      }
      return value.clusterSchedulingPolicyPreference == CU_CLUSTER_SCHEDULING_POLICY_DEFAULT;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      return value.priority == 0;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      return value.memSyncDomainMap.default_ == 0 && value.memSyncDomainMap.remote <= 1;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      return value.preferredClusterDim.x == 0;
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
      return value.deviceUpdatableKernelNode.deviceUpdatable == 0;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      // Reads 0 when unset, though the default is -1: setting that 0 cost up to 3.1x on an H200.
      if (value.sharedMemCarveout == 0) return std::nullopt;
      return false;
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
      return value.nvlinkUtilCentricScheduling == 0;
    default:
      return true;
  }
}

void copy_launch_attributes(const Watched& watched, CUgraphNode from, KernelNode& node) {
  const Driver& driver = watched.driver;
  for (const int number : {1, 2, 4, 5, 8, 9, 10, 11, 13, 14, 16}) {
    const auto id = static_cast<CUlaunchAttributeID>(number);
    CUlaunchAttributeValue value{};
    const CUresult result = driver.cuGraphKernelNodeGetAttribute(from, id, &value);
    if (is_unknown(result)) continue;
    check_driver(driver, result, "cuGraphKernelNodeGetAttribute");
    const std::optional<bool> unset = reads_unset(id, value);
    if (unset ? *unset : !watched.observed->watch.was_given(from, id)) continue;
    if (id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) {
      throw Refused(Rule::access_policy_window, cat("kernel ", readable_name(node.name),
                                                    " is launched with an access policy window of ",
                                                    value.accessPolicyWindow.num_bytes, " bytes"));
    }
    if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
      throw Refused(Rule::device_updatable, cat("kernel ", readable_name(node.name),
                                                " is a node that device code may change"));
    }
    node.launch_attributes.push_back(
        attribute_of(static_cast<std::uint32_t>(number), &value, sizeof(value)));
  }
}

struct NamedKernel {
  CUDA_KERNEL_NODE_PARAMS_v2 params{};
  NodeKernel kernel;
  const char* name = nullptr;
};

NamedKernel kernel_of(const Watched& watched, CUgraphNode node) {
  NamedKernel named;
  KJ_DRIVER(watched.driver, cuGraphKernelNodeGetParams(node, &named.params));
  named.kernel = resolve_kernel(watched, named.params);
  KJ_DRIVER(watched.driver, cuFuncGetName(&named.name, named.kernel.function));
  return named;
}

// What NCCL's kernel is refused with.
Refused nccl_refusal(const char* kernel) {
  return Refused(Rule::nccl, cat("kernel ", kernel, " of NCCL"));
}

// What holds for kernels that set nothing themselves; -1: nor does the context.
std::int32_t context_cache_config(const Watched& watched) {
  const auto get = reinterpret_cast<PFN_cuCtxGetCacheConfig_v3020>(
      watched.optional_entry("cuCtxGetCacheConfig", 3020));
  CUfunc_cache config = CU_FUNC_CACHE_PREFER_NONE;
  if (get != nullptr) check_driver(watched.driver, get(&config), "cuCtxGetCacheConfig");
  return config == CU_FUNC_CACHE_PREFER_NONE ? -1 : static_cast<std::int32_t>(config);
}

KernelNode copy_kernel(const Watched& watched, CUgraphNode from) {
  const Driver& driver = watched.driver;
  const auto [params, kernel, name] = kernel_of(watched, from);
  if (is_nccl_kernel(name)) throw nccl_refusal(name);

  KernelNode node;
  node.name = name;
  node.module = static_cast<std::uint32_t>(image_of(watched, kernel, node.name));
  node.grid = {params.gridDimX, params.gridDimY, params.gridDimZ};
  node.block = {params.blockDimX, params.blockDimY, params.blockDimZ};
  node.shared_bytes = params.sharedMemBytes;
  copy_arguments(driver, params, kernel.function, node);
  copy_launch_attributes(watched, from, node);
  for (const auto& [id, value] : kernel.settings.attributes) {
    node.function_attributes.push_back(
        attribute_of(static_cast<std::uint32_t>(id), &value, sizeof(value)));
  }
  // Properties of the code alone: max threads, shared, constant and local bytes, registers,
  // versions.
  for (const std::uint32_t id : {0u, 1u, 2u, 3u, 4u, 5u, 6u}) {
    int value = 0;
    const CUresult result =
        driver.cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(id), kernel.function);
    if (is_unknown(result)) continue;
    check_driver(driver, result, "cuFuncGetAttribute");
    node.observed_attributes.push_back(attribute_of(id, &value, sizeof(value)));
  }
  node.cache_config = kernel.settings.cache_config;
  if (node.cache_config < 0) node.cache_config = context_cache_config(watched);
  return node;
}

MemsetNode copy_memset(const Driver& driver, CUgraphNode from) {
  CUDA_MEMSET_NODE_PARAMS params{};
  KJ_DRIVER(driver, cuGraphMemsetNodeGetParams(from, &params));
  MemsetNode node;
  node.address = params.dst;
  node.height = std::max<std::uint64_t>(params.height, 1);
  node.pitch = node.height > 1 ? params.pitch : 0;
  node.element_size = params.elementSize;
  node.value =
      params.elementSize >= 4 ? params.value : params.value & ((1u << 8 * params.elementSize) - 1);
  node.width = params.width;
  return node;
}

std::uint64_t copy_end(CUmemorytype type, CUdeviceptr device, const void* host, std::size_t x,
                       std::size_t y, std::size_t z, std::size_t pitch, std::size_t height) {
  require_linear(type);
  // Of the memory type only "host" says which member counts; unified addresses are in `device`.
  const std::uint64_t start =
      type == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(host) : device;
  return start + (z * height + y) * pitch + x;
}

MemcpyNode copy_memcpy(const Driver& driver, CUgraphNode from) {
  CUDA_MEMCPY3D params{};
  KJ_DRIVER(driver, cuGraphMemcpyNodeGetParams(from, &params));
  MemcpyNode node;
  node.destination =
      copy_end(params.dstMemoryType, params.dstDevice, params.dstHost, params.dstXInBytes,
               params.dstY, params.dstZ, params.dstPitch, params.dstHeight);
  node.source = copy_end(params.srcMemoryType, params.srcDevice, params.srcHost, params.srcXInBytes,
                         params.srcY, params.srcZ, params.srcPitch, params.srcHeight);
  node.width_bytes = params.WidthInBytes;
  node.height = std::max<std::uint64_t>(params.Height, 1);
  node.depth = std::max<std::uint64_t>(params.Depth, 1);
  node.destination_pitch = params.dstPitch;
  node.source_pitch = params.srcPitch;
  node.destination_height = params.dstHeight;
  node.source_height = params.srcHeight;
  return node;
}

Node copy_node(const Watched& watched, CUgraphNode from) {
  CUgraphNodeType type{};
  KJ_DRIVER(watched.driver, cuGraphNodeGetType(from, &type));
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return copy_kernel(watched, from);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return copy_memset(watched.driver, from);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_memcpy(watched.driver, from);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return EmptyNode{};
    default:
      const auto [rule, what] = refused_kind(type);
      throw Refused(rule, what);
  }
}

// NCCL puts events and host functions beside its kernels: of a graph that cannot be recorded, it is
// the cause.
void refuse_nccl_first(const Watched& watched, const std::vector<CUgraphNode>& nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CUgraphNodeType type{};
    KJ_DRIVER(watched.driver, cuGraphNodeGetType(nodes[i], &type));
    if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    const char* name = kernel_of(watched, nodes[i]).name;
    if (!is_nccl_kernel(name)) continue;
    Refused refusal = nccl_refusal(name);
    refusal.context(cat("node ", i));
    throw refusal;
  }
}

}  // namespace

std::string describe_node(const Graph& graph, std::size_t index) {
  const Node& node = graph.nodes[index];
  if (const auto* kernel = std::get_if<KernelNode>(&node)) {
    return cat("node ", index, ", kernel ", readable_name(kernel->name));
  }
  if (std::holds_alternative<MemsetNode>(node)) return cat("node ", index, ", memset");
  if (std::holds_alternative<MemcpyNode>(node)) return cat("node ", index, ", copy");
  return cat("node ", index);
}

Graph copy_graph(const Watched& watched, CUgraph graph) {
  const Driver& driver = watched.driver;
  std::size_t count = 0;
  KJ_DRIVER(driver, cuGraphGetNodes(graph, nullptr, &count));
  std::vector<CUgraphNode> nodes(count);
  if (count != 0) KJ_DRIVER(driver, cuGraphGetNodes(graph, nodes.data(), &count));

  Graph copied;
  std::map<CUgraphNode, std::uint32_t> index;
  for (std::size_t i = 0; i < count; ++i) {
    index[nodes[i]] = static_cast<std::uint32_t>(i);
    try {
      copied.nodes.push_back(copy_node(watched, nodes[i]));
    } catch (Error& error) {
      refuse_nccl_first(watched, nodes);
      error.context(cat("node ", i));
      throw;
    }
  }

  std::size_t edge_count = 0;
  KJ_DRIVER(driver, cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edge_count));
  std::vector<CUgraphNode> from(edge_count), to(edge_count);
  std::vector<CUgraphEdgeData> edges(edge_count);
  if (edge_count != 0) {
    KJ_DRIVER(driver, cuGraphGetEdges(graph, from.data(), to.data(), edges.data(), &edge_count));
  }
  for (std::size_t i = 0; i < edge_count; ++i) {
    copied.edges.push_back(
        {index.at(from[i]), index.at(to[i]), edges[i].from_port, edges[i].to_port, edges[i].type});
  }
  return copied;
}

}  // namespace kjudge
