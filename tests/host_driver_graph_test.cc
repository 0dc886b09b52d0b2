// SPDX-License-Identifier: Apache-2.0
// Graphs of the host driver.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "host_driver.h"

using namespace kjudge;

TEST_CASE("memory of a graph: freed by its own node, by AUTO_FREE_ON_LAUNCH, or launched once") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> out(1);
  const HostStream stream;
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(CU(cuMemGetInfo)(&before, &total) == CUDA_SUCCESS);
  const auto capture = [&](bool freed) {
    CUdeviceptr pointer = 0;
    CUgraph graph = nullptr;
    REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemAllocAsync)(&pointer, 1 << 20, stream) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemsetD8Async)(pointer, 0, 1 << 20, stream) == CUDA_SUCCESS);
    module.launch_in(stream, "affine", {}, pointer, std::int64_t{1}, std::int64_t{6});
    REQUIRE(CU(cuMemcpyDtoDAsync)(out.pointer(), pointer, 8, stream) == CUDA_SUCCESS);
    if (freed) REQUIRE(CU(cuMemFreeAsync)(pointer, stream) == CUDA_SUCCESS);
    REQUIRE(CU(cuStreamEndCapture)(stream, &graph) == CUDA_SUCCESS);
    return graph;
  };
  const auto run_twice = [&](bool freed, unsigned long long flags) {
    const CUgraph graph = capture(freed);
    CUgraphExec exec = nullptr;
    REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, flags) == CUDA_SUCCESS);
    CHECK(CU(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS);
    const CUresult second = CU(cuGraphLaunch)(exec, stream);
    CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
    CHECK(out.read()[0] == 6);
    CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
    CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    return second;
  };
  CHECK(run_twice(true, 0) == CUDA_SUCCESS);
  CHECK(run_twice(false, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) == CUDA_SUCCESS);
  CHECK(run_twice(false, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemGetInfo)(&after, &total) == CUDA_SUCCESS);
  CHECK(after == before);
}

TEST_CASE("programmatic launches are edges with data, which no query may drop") {
  const HostContext context;
  const HostModule module("kernels");
  const HostStream stream(CU_STREAM_NON_BLOCKING, -2);
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {2, 1, 1};
  CUlaunchConfig config{4, 1, 1, 1, 1, 1, 0, stream, attributes, 2};
  const CUfunction nothing = module.function("nothing");
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(CU(cuLaunchKernelEx)(&config, nothing, nullptr, nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuLaunchKernelEx)(&config, nothing, nullptr, nullptr) == CUDA_SUCCESS);
  HostGraph captured;
  REQUIRE(CU(cuStreamEndCapture)(stream, &captured.graph) == CUDA_SUCCESS);
  const HostEdges edges = edges_of(captured.graph);
  REQUIRE(edges.data.size() == 1);
  CHECK(edges.data[0].from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  CHECK(edges.data[0].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  CUgraphNode from = nullptr, to = nullptr;
  std::size_t count = 1;
  CHECK(CU(cuGraphGetEdges)(captured.graph, &from, &to, nullptr, &count) == CUDA_ERROR_LOSSY_QUERY);
  count = 1;
  CHECK(CU(cuGraphNodeGetDependencies)(edges.to[0], &from, nullptr, &count) ==
        CUDA_ERROR_LOSSY_QUERY);
  CUgraphEdgeData data{};
  count = 1;
  CHECK(CU(cuGraphNodeGetDependencies)(edges.to[0], &from, &data, &count) == CUDA_SUCCESS);
  CHECK(from == edges.from[0]);
  auto* old = reinterpret_cast<CUresult (*)(CUgraph, CUgraphNode*, CUgraphNode*, std::size_t*)>(
      host_symbol("cuGraphGetEdges"));
  CHECK(old(captured.graph, &from, &to, &count) == CUDA_ERROR_LOSSY_QUERY);
  // What was set is there, what was not reads as zero.
  CUkernelNodeAttrValue value{};
  CHECK(CU(cuGraphKernelNodeGetAttribute)(edges.from[0], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                          &value) == CUDA_SUCCESS);
  CHECK(value.clusterDim.x == 2);
  CHECK(CU(cuGraphKernelNodeGetAttribute)(edges.from[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) ==
        CUDA_SUCCESS);
  CHECK(value.priority == -2);
  std::memset(&value, 0xff, sizeof(value));
  CHECK(CU(cuGraphKernelNodeGetAttribute)(edges.from[0],
                                          CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                          &value) == CUDA_SUCCESS);
  CHECK(value.sharedMemCarveout == 0);
  config.attrs[1].value.clusterDim = {3, 1, 1};
  CHECK(CU(cuLaunchKernelEx)(&config, nothing, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST_CASE("a graph rebuilt from what can be read of it gives the same results") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(4);
  const HostStream origin, side;
  const HostEvent fork, join;
  REQUIRE(CU(cuStreamBeginCapture)(origin, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemsetD32Async)(value.pointer(), 1, 8, origin) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventRecord)(fork, origin) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(side, fork, 0) == CUDA_SUCCESS);
  module.launch_in(origin, "affine", {}, value.at(0), std::int64_t{3}, std::int64_t{1});
  // Through a parameter buffer on the side.
  struct {
    CUdeviceptr value;
    std::int64_t factor, term;
  } buffer{value.at(1), 5, 2};
  std::size_t size = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  REQUIRE(CU(cuLaunchKernel)(module.function("affine"), 1, 1, 1, 1, 1, 1, 0, side, nullptr,
                             extra) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemcpyDtoDAsync)(value.at(2), value.at(1), 8, side) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventRecord)(join, side) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(origin, join, 0) == CUDA_SUCCESS);
  module.launch_in(origin, "affine", {}, value.at(2), std::int64_t{7}, std::int64_t{3});
  HostGraph captured, rebuilt;
  REQUIRE(CU(cuStreamEndCapture)(origin, &captured.graph) == CUDA_SUCCESS);
  launch_and_wait(captured.graph, origin);
  const auto expected = value.read();

  REQUIRE(CU(cuGraphCreate)(&rebuilt.graph, 0) == CUDA_SUCCESS);
  std::map<CUgraphNode, CUgraphNode> copies;
  for (const CUgraphNode node : nodes_of(captured.graph)) {
    CUgraphNodeType type{};
    REQUIRE(CU(cuGraphNodeGetType)(node, &type) == CUDA_SUCCESS);
    CUgraphNode& copy = copies[node];
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
      CUDA_KERNEL_NODE_PARAMS params{};
      REQUIRE(CU(cuGraphKernelNodeGetParams)(node, &params) == CUDA_SUCCESS);
      CHECK((params.kernelParams == nullptr) != (params.extra == nullptr));
      CUmodule owner = nullptr;
      CHECK(CU(cuFuncGetModule)(&owner, params.func) == CUDA_SUCCESS);
      CHECK(owner == module.handle());
      REQUIRE(CU(cuGraphAddKernelNode)(&copy, rebuilt.graph, nullptr, 0, &params) == CUDA_SUCCESS);
    } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
      CUDA_MEMSET_NODE_PARAMS params{};
      REQUIRE(CU(cuGraphMemsetNodeGetParams)(node, &params) == CUDA_SUCCESS);
      CHECK(params.elementSize == 4);
      REQUIRE(CU(cuGraphAddMemsetNode)(&copy, rebuilt.graph, nullptr, 0, &params,
                                       context.handle()) == CUDA_SUCCESS);
    } else {
      REQUIRE(type == CU_GRAPH_NODE_TYPE_MEMCPY);
      CUDA_MEMCPY3D params{};
      REQUIRE(CU(cuGraphMemcpyNodeGetParams)(node, &params) == CUDA_SUCCESS);
      CHECK(params.WidthInBytes == 8);
      REQUIRE(CU(cuGraphAddMemcpyNode)(&copy, rebuilt.graph, nullptr, 0, &params,
                                       context.handle()) == CUDA_SUCCESS);
    }
  }
  HostEdges edges = edges_of(captured.graph);
  for (auto& node : edges.from) node = copies.at(node);
  for (auto& node : edges.to) node = copies.at(node);
  REQUIRE(CU(cuGraphAddDependencies)(rebuilt.graph, edges.from.data(), edges.to.data(),
                                     edges.data.data(), edges.from.size()) == CUDA_SUCCESS);
  value.fill(0xee);
  launch_and_wait(rebuilt.graph, origin);
  const auto got = value.read();
  CHECK(std::equal(got.begin(), got.begin() + 3, expected.begin()));
  HostGraph clone;
  REQUIRE(CU(cuGraphClone)(&clone.graph, rebuilt.graph) == CUDA_SUCCESS);
  value.fill(0xee);
  launch_and_wait(clone.graph, origin);
  CHECK(value.read()[2] == expected[2]);
}

TEST_CASE("edges are checked, cycles refused") {
  const HostContext context;
  const HostModule module("kernels");
  HostGraph a, b;
  REQUIRE(CU(cuGraphCreate)(&a.graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphCreate)(&b.graph, 0) == CUDA_SUCCESS);
  CUgraphNode nodes[3]{}, foreign = nullptr, refused = nullptr;
  for (auto& node : nodes) {
    REQUIRE(CU(cuGraphAddEmptyNode)(&node, a.graph, nullptr, 0) == CUDA_SUCCESS);
  }
  REQUIRE(CU(cuGraphAddEmptyNode)(&foreign, b.graph, nullptr, 0) == CUDA_SUCCESS);
  const auto connect = [&](CUgraphNode from, CUgraphNode to, CUgraphEdgeData data = {}) {
    return CU(cuGraphAddDependencies)(a.graph, &from, &to, &data, 1);
  };
  CHECK(connect(nodes[0], nodes[1]) == CUDA_SUCCESS);
  CHECK(connect(nodes[0], nodes[1]) == CUDA_ERROR_INVALID_VALUE);
  CHECK(connect(nodes[0], nodes[0]) == CUDA_ERROR_INVALID_VALUE);
  CHECK(connect(nodes[0], foreign) == CUDA_ERROR_INVALID_VALUE);
  CHECK(connect(nodes[0], nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUgraphEdgeData programmatic{};
  programmatic.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  programmatic.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  CHECK(connect(nodes[1], nodes[2], programmatic) == CUDA_ERROR_INVALID_VALUE);  // no kernel
  CUgraphEdgeData reserved{};
  reserved.reserved[2] = 1;
  CHECK(connect(nodes[1], nodes[2], reserved) == CUDA_ERROR_INVALID_VALUE);
  // All of a list or nothing of it.
  const CUgraphNode from[] = {nodes[1], nodes[0]}, to[] = {nodes[2], nodes[1]};
  CHECK(CU(cuGraphAddDependencies)(a.graph, from, to, nullptr, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(edges_of(a.graph).from.size() == 1);
  CHECK(CU(cuGraphAddEmptyNode)(&refused, a.graph, &foreign, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(nodes_of(a.graph).size() == 3);
  CHECK(connect(nodes[1], nodes[2]) == CUDA_SUCCESS);
  CHECK(connect(nodes[2], nodes[0]) == CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  CHECK(CU(cuGraphInstantiateWithFlags)(&exec, a.graph, 0) == CUDA_ERROR_INVALID_VALUE);
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  CHECK(CU(cuGraphInstantiateWithParams)(&exec, a.graph, &params) == CUDA_ERROR_INVALID_VALUE);
  CHECK(params.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  CHECK(CU(cuGraphRemoveDependencies)(a.graph, &nodes[2], &nodes[0], nullptr, 1) == CUDA_SUCCESS);
  CHECK(CU(cuGraphInstantiateWithFlags)(&exec, a.graph, 0) == CUDA_SUCCESS);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroyNode)(nodes[1]) == CUDA_SUCCESS);
  CHECK(CU(cuGraphDestroyNode)(nodes[1]) == CUDA_ERROR_INVALID_VALUE);
  CHECK(edges_of(a.graph).from.empty());
  CHECK(nodes_of(a.graph).size() == 2);
}

TEST_CASE("a conditional node can be described, and is refused when instantiated") {
  const HostContext context;
  HostGraph graph;
  REQUIRE(CU(cuGraphCreate)(&graph.graph, 0) == CUDA_SUCCESS);
  CUgraphConditionalHandle handle = 0;
  REQUIRE(CU(cuGraphConditionalHandleCreate)(&handle, graph.graph, context.handle(), 1, 0) ==
          CUDA_SUCCESS);
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = handle;
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx = context.handle();
  CUgraphNode node = nullptr, inside = nullptr;
  REQUIRE(CU(cuGraphAddNode)(&node, graph.graph, nullptr, nullptr, 0, &params) == CUDA_SUCCESS);
  REQUIRE(params.conditional.phGraph_out != nullptr);
  CHECK(CU(cuGraphAddEmptyNode)(&inside, params.conditional.phGraph_out[0], nullptr, 0) ==
        CUDA_SUCCESS);
  CUgraphNodeType type{};
  CHECK(CU(cuGraphNodeGetType)(node, &type) == CUDA_SUCCESS);
  CHECK(type == CU_GRAPH_NODE_TYPE_CONDITIONAL);
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  CHECK(CU(cuGraphInstantiateWithParams)(&exec, graph.graph, &how) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(how.hErrNode_out == node);
}

TEST_CASE("a child graph is a copy, and runs in its place") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(1);
  value.fill(0);
  const HostStream stream;
  const auto affine = [&](CUgraph graph, std::vector<CUgraphNode> after, std::int64_t a,
                          std::int64_t b) {
    CUdeviceptr at = value.pointer();
    void* parameters[] = {&at, &a, &b};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = module.function("affine");
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphAddKernelNode)(&node, graph, after.data(), after.size(), &params) ==
            CUDA_SUCCESS);
    return node;
  };
  HostGraph child, parent;
  REQUIRE(CU(cuGraphCreate)(&child.graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphCreate)(&parent.graph, 0) == CUDA_SUCCESS);
  affine(child.graph, {}, 10, 2);
  const CUgraphNode first = affine(parent.graph, {}, 0, 1);
  CUgraphNode middle = nullptr;
  REQUIRE(CU(cuGraphAddChildGraphNode)(&middle, parent.graph, &first, 1, child.graph) ==
          CUDA_SUCCESS);
  affine(parent.graph, {middle}, 10, 3);
  affine(child.graph, {}, 0, 99);  // too late for the copy
  CUgraph embedded = nullptr;
  REQUIRE(CU(cuGraphChildGraphNodeGetGraph)(middle, &embedded) == CUDA_SUCCESS);
  CHECK(embedded != child.graph);
  CHECK(nodes_of(embedded).size() == 1);
  CHECK(CU(cuGraphDestroy)(embedded) == CUDA_ERROR_INVALID_VALUE);
  launch_and_wait(parent.graph, stream);
  CHECK(value.read()[0] == 123);
}

TEST_CASE("an instantiated graph's nodes can be changed and switched off") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(1);
  value.write({1});
  const HostStream stream;
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  module.launch_in(stream, "affine", {}, value.pointer(), std::int64_t{10}, std::int64_t{1});
  module.launch_in(stream, "affine", {}, value.pointer(), std::int64_t{10}, std::int64_t{2});
  HostGraph captured;
  REQUIRE(CU(cuStreamEndCapture)(stream, &captured.graph) == CUDA_SUCCESS);
  const auto nodes = nodes_of(captured.graph);
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, captured.graph, 0) == CUDA_SUCCESS);
  CUDA_KERNEL_NODE_PARAMS params{};
  REQUIRE(CU(cuGraphKernelNodeGetParams)(nodes[0], &params) == CUDA_SUCCESS);
  CUdeviceptr at = value.pointer();
  std::int64_t factor = 100, term = 7;
  void* parameters[] = {&at, &factor, &term};
  params.kernelParams = parameters;
  CHECK(CU(cuGraphExecKernelNodeSetParams)(exec, nodes[0], &params) == CUDA_SUCCESS);
  CHECK(CU(cuGraphNodeSetEnabled)(exec, nodes[1], 0) == CUDA_SUCCESS);
  CHECK(CU(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(value.read()[0] == 107);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
}

TEST_CASE("a graph of 100,000 nodes is captured, read, built and run in seconds") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(1);
  value.fill(0);
  const HostStream stream;
  const int n = 100'000;
  auto& launch = CU(cuLaunchKernel);
  auto& add_empty = CU(cuGraphAddEmptyNode);
  auto& connect = CU(cuGraphAddDependencies);
  const auto begin = std::chrono::steady_clock::now();
  const CUfunction affine = module.function("affine");
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CUdeviceptr at = value.pointer();
  std::int64_t one = 1;
  void* parameters[] = {&at, &one, &one};
  for (int i = 0; i < n; ++i) {
    launch(affine, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  HostGraph captured, wide;
  REQUIRE(CU(cuStreamEndCapture)(stream, &captured.graph) == CUDA_SUCCESS);
  CHECK(edges_of(captured.graph).from.size() == n - 1);
  launch_and_wait(captured.graph, stream);
  CHECK(value.read()[0] == n);
  // One node that all others depend on, edge by edge.
  REQUIRE(CU(cuGraphCreate)(&wide.graph, 0) == CUDA_SUCCESS);
  CUgraphNode root = nullptr;
  REQUIRE(CU(cuGraphAddEmptyNode)(&root, wide.graph, nullptr, 0) == CUDA_SUCCESS);
  for (int i = 0; i < n; ++i) {
    CUgraphNode leaf = nullptr;
    add_empty(&leaf, wide.graph, nullptr, 0);
    connect(wide.graph, &root, &leaf, nullptr, 1);
  }
  CHECK(edges_of(wide.graph).from.size() == n);
  launch_and_wait(wide.graph, stream);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::minutes(2));
}
