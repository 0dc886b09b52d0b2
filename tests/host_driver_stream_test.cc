// SPDX-License-Identifier: Apache-2.0
// Streams, events and capture of the host driver.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "host_driver.h"

using namespace kjudge;

namespace {

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CHECK(CU(cuStreamIsCapturing)(stream, &status) == CUDA_SUCCESS);
  return status;
}

}  // namespace

TEST_CASE(
    "streams run in order, beside each other, and the legacy stream between the blocking ones") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(3);
  value.fill(0);
  const HostStream first(CU_STREAM_DEFAULT), second(CU_STREAM_DEFAULT),
      apart(CU_STREAM_NON_BLOCKING);
  HostGate gate;
  gate.block(module, first);
  for (int i = 1; i <= 5; ++i) {
    module.launch_in(first, "affine", {}, value.at(0), std::int64_t{10}, std::int64_t{i});
  }
  // The legacy stream waits for `first`, `second` for the legacy stream, `apart` for nobody.
  module.launch_in(nullptr, "affine", {}, value.at(0), std::int64_t{1}, std::int64_t{1});
  module.launch_in(second, "affine", {}, value.at(0), std::int64_t{2}, std::int64_t{0});
  module.launch_in(apart, "affine", {}, value.at(1), std::int64_t{1}, std::int64_t{7});
  CHECK(CU(cuStreamSynchronize)(apart) == CUDA_SUCCESS);
  CHECK(CU(cuStreamQuery)(first) == CUDA_ERROR_NOT_READY);
  CHECK(CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY);
  CHECK(CU(cuStreamQuery)(second) == CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK(CU(cuStreamSynchronize)(second) == CUDA_SUCCESS);
  CHECK(value.read() == std::vector<std::int64_t>{2 * (12345 + 1), 7, 0});
}

TEST_CASE("streams tell their flags, priorities and contexts; default streams have handles") {
  const HostContext context;
  const HostStream stream(CU_STREAM_NON_BLOCKING, -3);
  int priority = 9, least = 9, greatest = 9;
  unsigned flags = 9;
  CUcontext owner = nullptr;
  unsigned long long id = 0, other = 0;
  CHECK(CU(cuStreamGetPriority)(stream, &priority) == CUDA_SUCCESS);
  CHECK(priority == -3);
  CHECK(CU(cuCtxGetStreamPriorityRange)(&least, &greatest) == CUDA_SUCCESS);
  CHECK(least == 0);
  CHECK(greatest == -5);
  const HostStream extreme(0, -100);
  CHECK(CU(cuStreamGetPriority)(extreme, &priority) == CUDA_SUCCESS);
  CHECK(priority == greatest);
  CHECK(CU(cuStreamGetFlags)(stream, &flags) == CUDA_SUCCESS);
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  CHECK(CU(cuStreamGetCtx)(stream, &owner) == CUDA_SUCCESS);
  CHECK(owner == context.handle());
  CHECK(CU(cuStreamGetId)(nullptr, &id) == CUDA_SUCCESS);
  CHECK(CU(cuStreamGetId)(CU_STREAM_LEGACY, &other) == CUDA_SUCCESS);
  CHECK(id == other);
  CHECK(CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &other) == CUDA_SUCCESS);
  CHECK(id != other);
  unsigned long long elsewhere = 0;
  std::thread([&] {
    CHECK(CU(cuCtxSetCurrent)(context.handle()) == CUDA_SUCCESS);
    CHECK(CU(cuStreamGetId)(CU_STREAM_PER_THREAD, &elsewhere) == CUDA_SUCCESS);
  }).join();
  CHECK(other != elsewhere);
  CHECK(CU(cuStreamDestroy)(reinterpret_cast<CUstream>(0x1000)) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("events order streams and tell time") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(1);
  value.fill(0);
  const HostStream producer, consumer;
  const HostEvent done, begin, end, untimed(CU_EVENT_DISABLE_TIMING);
  float milliseconds = -1;
  CHECK(CU(cuEventQuery)(done) == CUDA_SUCCESS);  // never recorded
  CHECK(CU(cuEventElapsedTime)(&milliseconds, begin, end) == CUDA_ERROR_INVALID_HANDLE);
  HostGate gate;
  REQUIRE(CU(cuEventRecord)(begin, producer) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventSynchronize)(begin) == CUDA_SUCCESS);
  gate.block(module, producer);
  module.launch_in(producer, "affine", {}, value.pointer(), std::int64_t{0}, std::int64_t{5});
  REQUIRE(CU(cuEventRecord)(done, producer) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(consumer, done, 0) == CUDA_SUCCESS);
  // Recorded again later: the wait was for the first.
  HostGate second_gate;
  second_gate.block(module, producer);
  REQUIRE(CU(cuEventRecord)(done, producer) == CUDA_SUCCESS);
  module.launch_in(consumer, "affine", {}, value.pointer(), std::int64_t{10}, std::int64_t{1});
  REQUIRE(CU(cuEventRecord)(end, consumer) == CUDA_SUCCESS);
  CHECK(CU(cuEventQuery)(end) == CUDA_ERROR_NOT_READY);
  CHECK(CU(cuEventElapsedTime)(&milliseconds, begin, end) == CUDA_ERROR_NOT_READY);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  gate.open();
  CHECK(CU(cuEventSynchronize)(end) == CUDA_SUCCESS);
  CHECK(CU(cuEventQuery)(done) == CUDA_ERROR_NOT_READY);
  second_gate.open();
  CHECK(CU(cuEventElapsedTime)(&milliseconds, begin, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= 20);
  CHECK(milliseconds < 5000);
  // The old entry of the same name is the same clock.
  float old = 0;
  auto* elapsed =
      reinterpret_cast<CUresult (*)(float*, CUevent, CUevent)>(host_symbol("cuEventElapsedTime"));
  CHECK(elapsed(&old, begin, end) == CUDA_SUCCESS);
  CHECK(old == milliseconds);
  REQUIRE(CU(cuEventRecord)(untimed, consumer) == CUDA_SUCCESS);
  CHECK(CU(cuEventElapsedTime)(&old, begin, untimed) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(value.read()[0] == 51);
}

TEST_CASE("host functions and callbacks run in stream order") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(1);
  const HostStream stream;
  static std::atomic<int> calls;
  calls = 0;
  module.launch_in(stream, "nothing", {4, 1, 1});
  REQUIRE(CU(cuLaunchHostFunc)(
              stream, [](void* out) { *static_cast<int*>(out) = ++calls; }, &calls) ==
          CUDA_SUCCESS);
  static CUresult told;
  told = CUDA_ERROR_UNKNOWN;
  REQUIRE(CU(cuStreamAddCallback)(
              stream, [](CUstream, CUresult result, void*) { told = result; }, nullptr, 0) ==
          CUDA_SUCCESS);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(told == CUDA_SUCCESS);
  // After an error callbacks hear of it, host functions are not called.
  calls = 0;
  module.launch_in(stream, "trap", {}, 0);
  CU(cuLaunchHostFunc)
  (
      stream, [](void*) { ++calls; }, nullptr);
  CU(cuStreamAddCallback)
  (
      stream, [](CUstream, CUresult result, void*) { told = result; }, nullptr, 0);
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  CHECK(calls == 0);
}

TEST_CASE("allocation in stream order") {
  const HostContext context;
  const HostModule module("kernels");
  const HostStream stream;
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(CU(cuMemGetInfo)(&before, &total) == CUDA_SUCCESS);
  CUdeviceptr pointer = 0;
  REQUIRE(CU(cuMemAllocAsync)(&pointer, 4096, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemsetD32Async)(pointer, 3, 1024, stream) == CUDA_SUCCESS);
  std::uint32_t last = 0;
  REQUIRE(CU(cuMemcpyDtoHAsync)(&last, pointer + 4092, 4, stream) == CUDA_SUCCESS);
  CHECK(last == 3);
  REQUIRE(CU(cuMemFreeAsync)(pointer, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemGetInfo)(&after, &total) == CUDA_SUCCESS);
  CHECK(after == before);
}

TEST_CASE("a capture records and does not run; its graph runs as often as it is launched") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(1);
  value.write({1});
  const HostStream stream;
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  for (int i = 1; i <= 3; ++i) {
    module.launch_in(stream, "affine", {}, value.pointer(), std::int64_t{10}, std::int64_t{i});
  }
  HostGraph captured;
  REQUIRE(CU(cuStreamEndCapture)(stream, &captured.graph) == CUDA_SUCCESS);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(value.read()[0] == 1);
  CHECK(nodes_of(captured.graph).size() == 3);
  CHECK(edges_of(captured.graph).from.size() == 2);
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, captured.graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphUpload)(exec, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphDestroy)(captured.graph) == CUDA_SUCCESS);  // the exec does not need it
  captured.graph = nullptr;
  REQUIRE(CU(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS);
  REQUIRE(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);  // while it may still run
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(value.read()[0] == 1123123);
}

TEST_CASE("fork and join by events, and the edges they make") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(3);
  value.fill(0);
  const HostStream origin, left, right;
  const HostEvent fork, left_done, right_done;
  const auto affine = [&](CUstream stream, std::size_t cell, std::int64_t a, std::int64_t b) {
    module.launch_in(stream, "affine", {}, value.at(cell), a, b);
  };
  REQUIRE(CU(cuStreamBeginCapture)(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
  affine(origin, 0, 0, 1);
  REQUIRE(CU(cuEventRecord)(fork, origin) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(left, fork, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(right, fork, 0) == CUDA_SUCCESS);
  CHECK(status_of(left) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  affine(left, 1, 0, 2);
  affine(left, 1, 10, 3);
  affine(right, 2, 0, 4);
  REQUIRE(CU(cuEventRecord)(left_done, left) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventRecord)(right_done, right) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(origin, left_done, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(origin, right_done, 0) == CUDA_SUCCESS);
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0, id_of_left = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  const CUgraphEdgeData* data = nullptr;
  std::size_t count = 0;
  REQUIRE(CU(cuStreamGetCaptureInfo)(origin, &status, &id, &graph, &dependencies, &data, &count) ==
          CUDA_SUCCESS);
  CHECK(count == 3);  // its own last, and both that it waits for
  REQUIRE(CU(cuStreamGetCaptureInfo)(left, &status, &id_of_left, nullptr, nullptr, nullptr,
                                     nullptr) == CUDA_SUCCESS);
  CHECK(id == id_of_left);
  affine(origin, 0, 10, 5);
  HostGraph captured;
  REQUIRE(CU(cuStreamEndCapture)(origin, &captured.graph) == CUDA_SUCCESS);
  CHECK(captured.graph == graph);
  CHECK(status_of(right) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(nodes_of(captured.graph).size() == 5);
  CHECK(edges_of(captured.graph).from.size() == 6);
  std::size_t roots = 0;
  CHECK(CU(cuGraphGetRootNodes)(captured.graph, nullptr, &roots) == CUDA_SUCCESS);
  CHECK(roots == 1);
  launch_and_wait(captured.graph, origin);
  CHECK(value.read() == std::vector<std::int64_t>{15, 23, 4});
}

TEST_CASE("what a capture forbids, and what each mistake is called") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(1);
  value.fill(0);
  const HostStream stream, other;
  const HostEvent event, outside;
  REQUIRE(CU(cuEventRecord)(outside, other) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  const auto begin = [&](CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    REQUIRE(CU(cuStreamBeginCapture)(stream, mode) == CUDA_SUCCESS);
  };
  const auto end = [&] {
    graph = reinterpret_cast<CUgraph>(1);
    const CUresult result = CU(cuStreamEndCapture)(stream, &graph);
    if (result != CUDA_SUCCESS) {
      CHECK(graph == nullptr);
    } else {
      CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    }
    return result;
  };
  SUBCASE("unjoined work") {
    begin();
    CHECK(CU(cuEventRecord)(event, stream) == CUDA_SUCCESS);
    CHECK(CU(cuStreamWaitEvent)(other, event, 0) == CUDA_SUCCESS);
    module.launch_in(other, "nothing", {});
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CHECK(status_of(other) == CU_STREAM_CAPTURE_STATUS_NONE);
  }
  SUBCASE("a fork without work needs no join") {
    begin();
    module.launch_in(stream, "nothing", {});
    CHECK(CU(cuEventRecord)(event, stream) == CUDA_SUCCESS);
    CHECK(CU(cuStreamWaitEvent)(other, event, 0) == CUDA_SUCCESS);
    CHECK(end() == CUDA_SUCCESS);
  }
  SUBCASE("waiting for what is outside") {
    begin();
    CHECK(CU(cuStreamWaitEvent)(stream, outside, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(module.try_launch("nothing", {}, {}, {stream, 0}) ==
          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("synchronizing the stream") {
    begin();
    CHECK(CU(cuStreamSynchronize)(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("querying the stream") {
    begin();
    CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("synchronizing the context") {
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("an event that was captured") {
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CHECK(CU(cuEventRecord)(event, stream) == CUDA_SUCCESS);
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CHECK(CU(cuThreadExchangeStreamCaptureMode)(&relaxed) == CUDA_SUCCESS);
    CHECK(CU(cuEventQuery)(event) == CUDA_ERROR_CAPTURED_EVENT);
    CHECK(CU(cuThreadExchangeStreamCaptureMode)(&relaxed) == CUDA_SUCCESS);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("allocation in mode global, thread-local and relaxed") {
    CUdeviceptr pointer = 0;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(CU(cuMemAlloc)(&pointer, 4) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    std::thread([&] {
      CHECK(CU(cuCtxSetCurrent)(context.handle()) == CUDA_SUCCESS);
      CHECK(CU(cuMemAlloc)(&pointer, 4) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }).join();
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    std::thread([&] {
      CHECK(CU(cuCtxSetCurrent)(context.handle()) == CUDA_SUCCESS);
      CHECK(CU(cuMemAlloc)(&pointer, 4) == CUDA_SUCCESS);
    }).join();
    CHECK(CU(cuMemcpyHtoD)(pointer, &pointer, 4) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    CUdeviceptr another = 0;
    CHECK(CU(cuMemAlloc)(&another, 4) == CUDA_SUCCESS);
    CHECK(end() == CUDA_SUCCESS);
  }
  SUBCASE("the legacy stream") {
    CHECK(CU(cuStreamBeginCapture)(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    const HostStream blocking(CU_STREAM_DEFAULT);
    REQUIRE(CU(cuStreamBeginCapture)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    CHECK(module.try_launch("nothing", {}, {}, {}) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(CU(cuStreamEndCapture)(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);  // a stream that does not block has no such tie
    CHECK(module.try_launch("nothing", {}, {}, {}) == CUDA_SUCCESS);
    CHECK(end() == CUDA_SUCCESS);
  }
  SUBCASE("ending where nothing began, elsewhere, and on another thread") {
    CHECK(CU(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_ILLEGAL_STATE);
    begin();
    CHECK(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          CUDA_ERROR_ILLEGAL_STATE);
    std::thread([&] {
      CHECK(CU(cuCtxSetCurrent)(context.handle()) == CUDA_SUCCESS);
      CHECK(CU(cuStreamEndCapture)(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    CHECK(CU(cuEventRecord)(event, stream) == CUDA_SUCCESS);
    CHECK(CU(cuStreamWaitEvent)(other, event, 0) == CUDA_SUCCESS);
    CHECK(CU(cuStreamEndCapture)(other, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("two captures do not merge") {
    begin();
    REQUIRE(CU(cuStreamBeginCapture)(other, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    CHECK(CU(cuEventRecord)(event, stream) == CUDA_SUCCESS);
    CHECK(CU(cuStreamWaitEvent)(other, event, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
    CHECK(CU(cuStreamEndCapture)(other, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  // All over: ordinary work goes on.
  module.launch_in(stream, "affine", {}, value.pointer(), std::int64_t{0}, std::int64_t{9});
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(value.read()[0] == 9);
}

TEST_CASE("every kind of work is captured as its node") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> value(2);
  const HostStream stream;
  const HostEvent external;
  int host = 0;
  CUdeviceptr temporary = 0;
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD8Async)(value.pointer(), 0, 16, stream) == CUDA_SUCCESS);
  CHECK(CU(cuMemAllocAsync)(&temporary, 100, stream) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD8Async)(value.pointer(), 0, 16, stream) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyDtoDAsync)(value.at(1), value.pointer(), 8, stream) == CUDA_SUCCESS);
  CHECK(CU(cuLaunchHostFunc)(
            stream, [](void* out) { ++*static_cast<int*>(out); }, &host) == CUDA_SUCCESS);
  CHECK(CU(cuEventRecordWithFlags)(external, stream, CU_EVENT_RECORD_EXTERNAL) == CUDA_SUCCESS);
  CHECK(CU(cuStreamWaitEvent)(stream, external, CU_EVENT_WAIT_EXTERNAL) == CUDA_SUCCESS);
  CHECK(CU(cuMemFreeAsync)(temporary, stream) == CUDA_SUCCESS);
  module.launch_in(stream, "nothing", {});
  HostGraph captured;
  REQUIRE(CU(cuStreamEndCapture)(stream, &captured.graph) == CUDA_SUCCESS);
  std::vector<CUgraphNodeType> types;
  for (const CUgraphNode node : nodes_of(captured.graph)) {
    CUgraphNodeType type{};
    REQUIRE(CU(cuGraphNodeGetType)(node, &type) == CUDA_SUCCESS);
    types.push_back(type);
  }
  CHECK(types == std::vector<CUgraphNodeType>{
                     CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                     CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_HOST,
                     CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                     CU_GRAPH_NODE_TYPE_MEM_FREE, CU_GRAPH_NODE_TYPE_KERNEL});
  launch_and_wait(captured.graph, stream);
  launch_and_wait(captured.graph, stream);
  CHECK(host == 2);
  CHECK(CU(cuEventQuery)(external) == CUDA_SUCCESS);
  // A graph launched into a capture is a child graph.
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, captured.graph, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  CHECK(CU(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS);
  HostGraph outer;
  REQUIRE(CU(cuStreamEndCapture)(stream, &outer.graph) == CUDA_SUCCESS);
  CUgraphNodeType type{};
  CHECK(CU(cuGraphNodeGetType)(nodes_of(outer.graph).at(0), &type) == CUDA_SUCCESS);
  CHECK(type == CU_GRAPH_NODE_TYPE_GRAPH);
  launch_and_wait(outer.graph, stream);
  CHECK(host == 3);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
}
