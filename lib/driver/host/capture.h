// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "driver/host/stream.h"

namespace kjudge {

// A capture from cuStreamBeginCapture to cuStreamEndCapture: the streams that take part, by fork
// and join through events, and the graph their work goes to. Guarded by queue_mutex().
struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  std::shared_ptr<CUgraph_st> graph;
  bool owns_graph = true;  // false: cuStreamBeginCaptureToGraph
  bool valid = true;
  CUstream_st* origin = nullptr;
  std::vector<std::shared_ptr<CUstream_st>> streams;  // origin first
};

// All of these with queue_mutex() held.

// Ends what an error ended: the capture's streams learn of it at their next call.
void invalidate(Capture& capture);
// Adds `work` as a node behind the stream's present dependencies, and makes it the only one.
// STREAM_CAPTURE_INVALIDATED when the capture is over; a work that cannot be captured invalidates.
CUgraphNode add_captured(CUstream_st& stream, Work work);
// STREAM_CAPTURE_IMPLICIT when `stream` is the legacy stream and a blocking stream of its context
// captures.
void refuse_implicit_use(CUstream_st& stream);
// STREAM_CAPTURE_UNSUPPORTED when the stream captures; invalidates.
void refuse_capturing(CUstream_st& stream);
// Takes a stream out of its capture when it is destroyed.
void forget_capturing(CUstream_st& stream);
// cuEventRecord and cuStreamWaitEvent where one side is captured. The latter is false when nothing
// here was: an ordinary wait.
void record_captured(CUevent_st& event, CUstream_st& stream);
bool wait_captured(CUstream_st& stream, CUevent_st& event);
// CAPTURED_EVENT when the event was last recorded in a capture; invalidates that.
void refuse_captured(CUevent_st& event);

}  // namespace kjudge
