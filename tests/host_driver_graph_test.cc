// SPDX-License-Identifier: Apache-2.0
// Streams, events, capture and graphs of the host driver.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "host_driver.h"

using namespace kjudge;

namespace {

class Stream {
 public:
  explicit Stream(unsigned flags = CU_STREAM_NON_BLOCKING, int priority = 0) {
    REQUIRE(CU(cuStreamCreateWithPriority)(&stream_, flags, priority) == CUDA_SUCCESS);
  }
  ~Stream() { CU(cuStreamDestroy)(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator CUstream() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = 0) { REQUIRE(CU(cuEventCreate)(&event_, flags) == CUDA_SUCCESS); }
  ~Event() { CU(cuEventDestroy)(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator CUevent() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

// Holds a stream until told to go on.
class Gate {
 public:
  Gate() {
    REQUIRE(CU(cuMemHostAlloc)(&flag_, 4, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
    *static_cast<volatile int*>(flag_) = 0;
  }
  ~Gate() {
    open();
    CU(cuMemFreeHost)(flag_);
  }
  void block(const HostModule& module, CUstream stream) const {
    module.launch_in(stream, "spin", {}, flag_);
  }
  void open() const { *static_cast<volatile int*>(flag_) = 1; }

 private:
  void* flag_ = nullptr;
};

struct Captured {
  CUgraph graph = nullptr;
  ~Captured() {
    if (graph != nullptr) CU(cuGraphDestroy)(graph);
  }
};

std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(CU(cuGraphGetNodes)(graph, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  if (count > 0) REQUIRE(CU(cuGraphGetNodes)(graph, nodes.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

struct Edges {
  std::vector<CUgraphNode> from, to;
  std::vector<CUgraphEdgeData> data;
};
Edges edges_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(CU(cuGraphGetEdges)(graph, nullptr, nullptr, nullptr, &count) == CUDA_SUCCESS);
  Edges edges{std::vector<CUgraphNode>(count), std::vector<CUgraphNode>(count),
              std::vector<CUgraphEdgeData>(count)};
  if (count > 0) {
    REQUIRE(CU(cuGraphGetEdges)(graph, edges.from.data(), edges.to.data(), edges.data.data(),
                                &count) == CUDA_SUCCESS);
  }
  return edges;
}

void launch_and_wait(CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(CU(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
}

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
  const Stream first(CU_STREAM_DEFAULT), second(CU_STREAM_DEFAULT), apart(CU_STREAM_NON_BLOCKING);
  Gate gate;
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
  const Stream stream(CU_STREAM_NON_BLOCKING, -3);
  int priority = 9, least = 9, greatest = 9;
  unsigned flags = 9;
  CUcontext owner = nullptr;
  unsigned long long id = 0, other = 0;
  CHECK(CU(cuStreamGetPriority)(stream, &priority) == CUDA_SUCCESS);
  CHECK(priority == -3);
  CHECK(CU(cuCtxGetStreamPriorityRange)(&least, &greatest) == CUDA_SUCCESS);
  CHECK(least == 0);
  CHECK(greatest == -5);
  const Stream extreme(0, -100);
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
  const Stream producer, consumer;
  const Event done, begin, end, untimed(CU_EVENT_DISABLE_TIMING);
  float milliseconds = -1;
  CHECK(CU(cuEventQuery)(done) == CUDA_SUCCESS);  // never recorded
  CHECK(CU(cuEventElapsedTime)(&milliseconds, begin, end) == CUDA_ERROR_INVALID_HANDLE);
  Gate gate;
  REQUIRE(CU(cuEventRecord)(begin, producer) == CUDA_SUCCESS);
  REQUIRE(CU(cuEventSynchronize)(begin) == CUDA_SUCCESS);
  gate.block(module, producer);
  module.launch_in(producer, "affine", {}, value.pointer(), std::int64_t{0}, std::int64_t{5});
  REQUIRE(CU(cuEventRecord)(done, producer) == CUDA_SUCCESS);
  REQUIRE(CU(cuStreamWaitEvent)(consumer, done, 0) == CUDA_SUCCESS);
  // Recorded again later: the wait was for the first.
  Gate second_gate;
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
  const Stream stream;
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
  const Stream stream;
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
  const Stream stream;
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  for (int i = 1; i <= 3; ++i) {
    module.launch_in(stream, "affine", {}, value.pointer(), std::int64_t{10}, std::int64_t{i});
  }
  Captured captured;
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
  const Stream origin, left, right;
  const Event fork, left_done, right_done;
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
  Captured captured;
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
  const Stream stream, other;
  const Event event, outside;
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
    const Stream blocking(CU_STREAM_DEFAULT);
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
  const Stream stream;
  const Event external;
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
  Captured captured;
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
  Captured outer;
  REQUIRE(CU(cuStreamEndCapture)(stream, &outer.graph) == CUDA_SUCCESS);
  CUgraphNodeType type{};
  CHECK(CU(cuGraphNodeGetType)(nodes_of(outer.graph).at(0), &type) == CUDA_SUCCESS);
  CHECK(type == CU_GRAPH_NODE_TYPE_GRAPH);
  launch_and_wait(outer.graph, stream);
  CHECK(host == 3);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
}

TEST_CASE("memory of a graph: freed by its own node, by AUTO_FREE_ON_LAUNCH, or launched once") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::int64_t> out(1);
  const Stream stream;
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
  const Stream stream(CU_STREAM_NON_BLOCKING, -2);
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
  Captured captured;
  REQUIRE(CU(cuStreamEndCapture)(stream, &captured.graph) == CUDA_SUCCESS);
  const Edges edges = edges_of(captured.graph);
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
  const Stream origin, side;
  const Event fork, join;
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
  Captured captured, rebuilt;
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
  Edges edges = edges_of(captured.graph);
  for (auto& node : edges.from) node = copies.at(node);
  for (auto& node : edges.to) node = copies.at(node);
  REQUIRE(CU(cuGraphAddDependencies)(rebuilt.graph, edges.from.data(), edges.to.data(),
                                     edges.data.data(), edges.from.size()) == CUDA_SUCCESS);
  value.fill(0xee);
  launch_and_wait(rebuilt.graph, origin);
  const auto got = value.read();
  CHECK(std::equal(got.begin(), got.begin() + 3, expected.begin()));
  Captured clone;
  REQUIRE(CU(cuGraphClone)(&clone.graph, rebuilt.graph) == CUDA_SUCCESS);
  value.fill(0xee);
  launch_and_wait(clone.graph, origin);
  CHECK(value.read()[2] == expected[2]);
}

TEST_CASE("edges are checked, cycles refused") {
  const HostContext context;
  const HostModule module("kernels");
  Captured a, b;
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
  Captured graph;
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
  const Stream stream;
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
  Captured child, parent;
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
  const Stream stream;
  REQUIRE(CU(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  module.launch_in(stream, "affine", {}, value.pointer(), std::int64_t{10}, std::int64_t{1});
  module.launch_in(stream, "affine", {}, value.pointer(), std::int64_t{10}, std::int64_t{2});
  Captured captured;
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
  const Stream stream;
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
  Captured captured, wide;
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
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}
