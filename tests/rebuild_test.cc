// SPDX-License-Identifier: Apache-2.0
#include "replay/rebuild.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "error.h"
#include "replay/contest.h"

using namespace kjudge;

namespace {

using Attributes = std::map<std::uint32_t, CUlaunchAttributeValue>;  // by CUlaunchAttributeID

// What is set of a graph's nodes and edges when it is instantiated, and of functions before.
struct Built {
  std::vector<Attributes> kernels;
  std::vector<CUgraphEdgeData> edges;  // of the first graph
  std::vector<std::pair<CUfunction_attribute, int>> function_attributes;
  std::vector<CUfunc_cache> cache_configs;
  std::vector<CUlimit> limits;
};
Built built;
const Driver* real = nullptr;

CUresult CUDAAPI set_attribute(CUgraphNode node, CUkernelNodeAttrID id,
                               const CUkernelNodeAttrValue* value) {
  CUkernelNodeAttrValue before{}, after{};
  KJ_DRIVER(*real, cuGraphKernelNodeGetAttribute(node, id, &before));
  const CUresult result = real->cuGraphKernelNodeSetAttribute(node, id, value);
  KJ_DRIVER(*real, cuGraphKernelNodeGetAttribute(node, id, &after));
  CHECK(std::memcmp(&before, &after, sizeof(int)) != 0);  // else the test would show nothing
  built.kernels.back()[id] = after;
  return result;
}

CUresult CUDAAPI add_kernel(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  built.kernels.emplace_back();
  return real->cuGraphAddKernelNode(node, graph, dependencies, count, params);
}

CUresult CUDAAPI instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  if (!built.edges.empty()) return real->cuGraphInstantiateWithFlags(exec, graph, flags);
  size_t count = 0;
  KJ_DRIVER(*real, cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  std::vector<CUgraphNode> from(count), to(count);
  built.edges.resize(count);
  KJ_DRIVER(*real, cuGraphGetEdges(graph, from.data(), to.data(), built.edges.data(), &count));
  return real->cuGraphInstantiateWithFlags(exec, graph, flags);
}

CUresult CUDAAPI set_function_attribute(CUfunction function, CUfunction_attribute id, int value) {
  built.function_attributes.emplace_back(id, value);
  return real->cuFuncSetAttribute(function, id, value);
}

CUresult CUDAAPI set_cache_config(CUfunction function, CUfunc_cache config) {
  built.cache_configs.push_back(config);
  return real->cuFuncSetCacheConfig(function, config);
}

CUresult CUDAAPI set_limit(CUlimit limit, size_t value) {
  built.limits.push_back(limit);
  return real->cuCtxSetLimit(limit, value);
}

template <class Value>
Attribute attribute(std::uint32_t id, const Value& value) {
  Attribute made{id, {}};
  std::memcpy(made.value.data(), &value, sizeof value);
  return made;
}

// Rebuilds `bundle` where the calls above note what it sets.
void rebuild_watched(DriverKind kind, const Bundle& bundle) {
  real = &Driver::open(kind);
  built = {};
  Driver watched = *real;
  watched.cuGraphKernelNodeSetAttribute = set_attribute;
  watched.cuGraphAddKernelNode = add_kernel;
  watched.cuGraphInstantiateWithFlags = instantiate;
  watched.cuFuncSetAttribute = set_function_attribute;
  watched.cuFuncSetCacheConfig = set_cache_config;
  watched.cuCtxSetLimit = set_limit;
  DeviceSide side(watched, 0, 0);
  built = {};  // without what kjudge sets for its own kernels
  std::vector<DeviceMemory> memory;
  memory.reserve(bundle.regions.size());
  std::vector<SharedMemory> shared;
  for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
    if (bundle.regions[i].role == Role::output) continue;
    memory.push_back(DeviceMemory::create(*real, 0, bundle.regions[i].size));
    const bool state = bundle.regions[i].role == Role::state;
    shared.push_back({i, state ? Purpose::pristine : Purpose::input, &memory.back()});
  }
  const Rebuild rebuild(side, bundle, shared);
}

}  // namespace

TEST_CASE("what a kernel was recorded with is set in a replay, and nothing that was not") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind, {1000});
    Bundle bundle = BundleReader(contest.make({{"right", "right", "right"}})).bundle();
    auto& nodes = bundle.shapes[0].graph.nodes;
    auto& plain = std::get<KernelNode>(nodes[0]);
    auto& changed = std::get<KernelNode>(nodes[1]);
    const std::array<std::uint32_t, 3> cluster{2, 1, 1};
    const CUlaunchMemSyncDomainMap map{1, 2};
    changed.launch_attributes = {
        attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, cluster),
        attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                  CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING),
        attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, -3),
        attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, map),
        attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE),
        attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50)};
    if (kind == DriverKind::host) {  // an H200 has neither
      changed.launch_attributes.push_back(
          attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, cluster));
      changed.launch_attributes.push_back(
          attribute(CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, 1));
    }
    changed.function_attributes = {
        attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 40'000),
        attribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 25)};
    changed.cache_config = CU_FUNC_CACHE_PREFER_L1;
    bundle.shapes[0].graph.edges[1].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    bundle.shapes[0].graph.edges[1].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    REQUIRE(plain.launch_attributes.empty());

    rebuild_watched(kind, bundle);
    REQUIRE(built.kernels.size() == 3 * bundle.shapes.size());
    for (std::size_t i = 0; i < built.kernels.size(); ++i) {
      if (i != 1) CHECK(built.kernels[i].empty());
    }
    REQUIRE(built.kernels[1].size() == changed.launch_attributes.size());
    for (const Attribute& recorded : changed.launch_attributes) {
      INFO(recorded.id);
      CHECK(std::memcmp(&built.kernels[1][recorded.id], recorded.value.data(), sizeof(int)) == 0);
    }
    using FunctionAttributes = std::vector<std::pair<CUfunction_attribute, int>>;
    CHECK(built.function_attributes ==
          FunctionAttributes{{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 40'000},
                             {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 25}});
    CHECK(built.cache_configs == std::vector<CUfunc_cache>{CU_FUNC_CACHE_PREFER_L1});
    REQUIRE(built.edges.size() == 2);
    const bool swapped = built.edges[0].type != 0;
    CHECK(built.edges[swapped ? 1 : 0].type == 0);
    CHECK(built.edges[swapped ? 0 : 1].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    CHECK(built.edges[swapped ? 0 : 1].from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  });
}

// A kernel that is launched with 60 KB and then with 20 KB, its limit set before each launch, is
// recorded with the limit of the second.
TEST_CASE("shared memory that a kernel was launched with is allowed, whatever was set later") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind, {1000});
    Bundle bundle = BundleReader(contest.make({{"right", "right", "right"}})).bundle();
    auto& nodes = bundle.shapes[0].graph.nodes;
    const std::array<std::uint32_t, 3> launched{60'000, 20'000, 50'000};
    for (std::size_t i = 0; i < 3; ++i) {
      auto& kernel = std::get<KernelNode>(nodes[i]);
      kernel.name = std::get<KernelNode>(nodes[0]).name;
      kernel.shared_bytes = launched[i];
      kernel.function_attributes = {
          attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, i < 2 ? 20'000 : 50'000)};
    }
    rebuild_watched(kind, bundle);
    using FunctionAttributes = std::vector<std::pair<CUfunction_attribute, int>>;
    constexpr auto kMost = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CHECK(built.function_attributes ==
          FunctionAttributes{{kMost, 60'000}, {kMost, 60'000}, {kMost, 60'000}});
  });
}

TEST_CASE("a recording sets aside no part of the L2 cache, which the other arm would lack") {
  on_each_driver([](DriverKind kind) {
    Contest contest(kind, {1000});
    Bundle bundle = BundleReader(contest.make({{"right", "right", "right"}})).bundle();
    bundle.limits = {{CU_LIMIT_STACK_SIZE, 2048}, {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 20}};
    rebuild_watched(kind, bundle);
    CHECK(built.limits == std::vector<CUlimit>{CU_LIMIT_STACK_SIZE});
  });
}

TEST_CASE("the arena of a recording is that of the one device its memory is of") {
  Bundle bundle;
  CHECK(arena_range(bundle) == 0);
  bundle.regions.resize(2);
  CHECK(arena_range(bundle) == 0);
  bundle.regions[0].device = 3;
  try {
    arena_range(bundle);
    FAIL("two devices");
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::malformed);
    CHECK(std::string(error.what()) ==
          "its memory is of devices 3 and 0; only recordings of one device can be replayed");
  }
  bundle.regions[1].device = 3;
  CHECK(arena_range(bundle) == 3);
}
