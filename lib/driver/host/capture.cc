// SPDX-License-Identifier: Apache-2.0
#include "driver/host/capture.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "driver/host/graph.h"
#include "driver/host/module.h"

using namespace kjudge;

namespace {

// All captures that are going on; their streams hold them too.
std::vector<std::shared_ptr<Capture>>& captures() {
  static auto& all = *new std::vector<std::shared_ptr<Capture>>;
  return all;
}

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

void leave(CUstream_st& stream) {
  stream.capture = nullptr;
  stream.dependencies.clear();
}

enum class Outcome { graph, nothing };

void end(const std::shared_ptr<Capture>& capture, Outcome outcome) {
  for (const auto& stream : capture->streams) leave(*stream);
  std::erase(captures(), capture);
  if (outcome == Outcome::nothing && capture->owns_graph) {
    handles<CUgraph_st>().remove(capture->graph.get());
  }
}

// Whether everything that the other streams did is before what the origin is at.
bool joined(const Capture& capture) {
  std::unordered_set<CUgraphNode> wanted;
  for (const auto& stream : capture.streams) {
    if (stream.get() == capture.origin) continue;
    const auto& nodes = stream->dependencies.nodes();
    wanted.insert(nodes.begin(), nodes.end());
  }
  std::unordered_set<CUgraphNode> seen;
  std::vector<CUgraphNode> open = capture.origin->dependencies.nodes();
  while (!open.empty() && !wanted.empty()) {
    const CUgraphNode node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    wanted.erase(node);
    for (const GraphEdge& edge : node->dependencies) open.push_back(edge.node);
  }
  return wanted.empty();
}

void begin(CUctx_st& context, CUstream handle, CUstreamCaptureMode mode,
           std::shared_ptr<CUgraph_st> graph, std::span<const CUgraphNode> dependencies,
           const CUgraphEdgeData* edge_data) {
  require(mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
          mode == CU_STREAM_CAPTURE_MODE_RELAXED);
  require(handle != nullptr && handle != CU_STREAM_LEGACY, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  static std::atomic<std::uint64_t> next_id{1};
  const auto stream = stream_of(context, handle);
  const std::lock_guard lock(queue_mutex());
  require(stream->capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
  auto capture = std::make_shared<Capture>();
  capture->id = next_id.fetch_add(1);
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->owns_graph = graph == nullptr;
  capture->graph = graph == nullptr ? std::make_shared<CUgraph_st>() : std::move(graph);
  capture->origin = stream.get();
  capture->streams.push_back(stream);
  for (std::size_t i = 0; i < dependencies.size(); ++i) {
    require(capture->graph->owns(dependencies[i]));
    stream->dependencies.add(dependencies[i],
                             edge_data == nullptr ? CUgraphEdgeData{} : edge_data[i]);
  }
  stream->capture = capture;
  // A handle from now on: cuStreamGetCaptureInfo gives it out, to add nodes of one's own.
  if (capture->owns_graph) handles<CUgraph_st>().add(capture->graph);
  captures().push_back(std::move(capture));
}

}  // namespace

namespace kjudge {

void CaptureDependencies::add(CUgraphNode node, const CUgraphEdgeData& data) {
  constexpr std::size_t kMany = 16;
  if (nodes_.size() < kMany) {
    if (std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end()) return;
  } else {
    if (known_.empty()) known_.insert(nodes_.begin(), nodes_.end());
    if (!known_.insert(node).second) return;
  }
  nodes_.push_back(node);
  edges_.push_back(data);
}

void CaptureDependencies::clear() {
  nodes_.clear();
  edges_.clear();
  // Not clear(), which takes as long as the set once was large.
  if (!known_.empty()) known_ = {};
}

void invalidate(Capture& capture) { capture.valid = false; }

CUgraphNode add_captured(CUstream_st& stream, Work work) {
  Capture& capture = *stream.capture;
  require(capture.valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  try {
    std::vector<CUgraphEdgeData> edges = stream.dependencies.edges();
    if (auto* kernel = std::get_if<KernelWork>(&work); kernel != nullptr) {
      // What a stream gives its launches becomes the node's own.
      if (stream.priority != 0) {
        kernel->attributes.try_emplace(CU_LAUNCH_ATTRIBUTE_PRIORITY).first->second.priority =
            stream.priority;
      }
      for (const auto& [id, value] : stream.attributes) {
        if (id != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
          kernel->attributes.try_emplace(id, value);
        }
      }
      // Programmatic launches are edges in a graph, not attributes of a node.
      const auto programmatic =
          kernel->attributes.find(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
      if (programmatic != kernel->attributes.end()) {
        if (programmatic->second.programmaticStreamSerializationAllowed != 0 && edges.size() == 1 &&
            std::holds_alternative<KernelWork>(stream.dependencies.nodes()[0]->work)) {
          edges[0].from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
          edges[0].type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        }
        kernel->attributes.erase(programmatic);
      }
    }
    const CUgraphNode node = capture.graph->add(std::move(work), &stream.context,
                                                stream.dependencies.nodes(), edges.data());
    stream.dependencies.clear();
    stream.dependencies.add(node, {});
    return node;
  } catch (...) {
    invalidate(capture);
    throw;
  }
}

void refuse_implicit_use(CUstream_st& stream) {
  if (&stream != stream.context.legacy.get()) return;
  bool refused = false;
  for (const auto& capture : captures()) {
    for (const auto& member : capture->streams) {
      if (member->blocking() && &member->context == &stream.context) {
        invalidate(*capture);
        refused = true;
      }
    }
  }
  require(!refused, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void refuse_capturing(CUstream_st& stream) {
  if (stream.capture == nullptr) return;
  invalidate(*stream.capture);
  fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void forget_capturing(CUstream_st& stream) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return;
  if (capture->origin == &stream) {
    end(capture, Outcome::nothing);
    return;
  }
  invalidate(*capture);
  std::erase_if(capture->streams, [&](const auto& member) { return member.get() == &stream; });
  leave(stream);
}

void record_captured(CUevent_st& event, CUstream_st& stream) {
  require(stream.capture->valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  event.captured = true;
  event.capture = stream.capture;
  event.capture_nodes = stream.dependencies.nodes();
  event.record = nullptr;
}

bool wait_captured(CUstream_st& stream, CUevent_st& event) {
  const std::shared_ptr<Capture> theirs = event.captured ? event.capture.lock() : nullptr;
  const bool live = theirs != nullptr &&
                    std::find(captures().begin(), captures().end(), theirs) != captures().end();
  if (stream.capture == nullptr) {
    if (!event.captured) return false;
    // An event of a capture that is over stands for nothing that will ever happen.
    require(live, CUDA_ERROR_INVALID_VALUE);
    require(theirs->valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (&stream == stream.context.legacy.get()) {
      invalidate(*theirs);
      fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    stream.capture = theirs;
    theirs->streams.push_back(stream.shared_from_this());
  } else {
    require(stream.capture->valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (!event.captured || !live) {
      // Nothing outside may be waited for but by CU_EVENT_WAIT_EXTERNAL; an event that was never
      // recorded is no dependency at all.
      if (!event.captured && event.record == nullptr) return true;
      invalidate(*stream.capture);
      fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (theirs != stream.capture) {
      invalidate(*theirs);
      invalidate(*stream.capture);
      fail(CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
  }
  for (const CUgraphNode node : event.capture_nodes) stream.dependencies.add(node, {});
  return true;
}

void refuse_captured(CUevent_st& event) {
  if (!event.captured) return;
  if (const auto capture = event.capture.lock()) invalidate(*capture);
  fail(CUDA_ERROR_CAPTURED_EVENT);
}

void forbid_during_capture() {
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  const std::lock_guard lock(queue_mutex());
  bool forbidden = false;
  for (const auto& capture : captures()) {
    const bool ours = capture->thread == std::this_thread::get_id() &&
                      capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool everyone = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                          thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!ours && !everyone) continue;
    invalidate(*capture);
    forbidden = true;
  }
  require(!forbidden, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

}  // namespace kjudge

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return context_call(
      __func__, [&](CUctx_st& context) { begin(context, stream, mode, nullptr, {}, nullptr); });
}

CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
                                             const CUgraphNode* dependencies,
                                             const CUgraphEdgeData* edge_data, size_t count,
                                             CUstreamCaptureMode mode) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(count == 0 || dependencies != nullptr);
    begin(context, stream, mode, handles<CUgraph_st>().get(graph, CUDA_ERROR_INVALID_VALUE),
          {dependencies, count}, edge_data);
  });
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return process_call(__func__, [&] {
    require(mode != nullptr);
    require(*mode == CU_STREAM_CAPTURE_MODE_GLOBAL || *mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
            *mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    std::swap(*mode, thread_mode);
  });
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(graph != nullptr);
    *graph = nullptr;
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    const std::shared_ptr<Capture> capture = stream->capture;
    require(capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    if (capture->origin != stream.get()) {
      invalidate(*capture);
      fail(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    require(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
                capture->thread == std::this_thread::get_id(),
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    const bool whole = joined(*capture);
    end(capture, capture->valid && whole ? Outcome::graph : Outcome::nothing);
    require(capture->valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    require(whole, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    *graph = capture->graph.get();
  });
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(status != nullptr);
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    refuse_implicit_use(*stream);
    *status = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->capture->valid   ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                         : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  });
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status,
                                        cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** dependencies,
                                        const CUgraphEdgeData** edge_data, size_t* count) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(status != nullptr);
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    refuse_implicit_use(*stream);
    if (stream->capture == nullptr) {
      *status = CU_STREAM_CAPTURE_STATUS_NONE;
      return;
    }
    const Capture& capture = *stream->capture;
    *status =
        capture.valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    if (!capture.valid) return;
    const auto& nodes = stream->dependencies.nodes();
    const auto& edges = stream->dependencies.edges();
    const bool special = std::any_of(edges.begin(), edges.end(),
                                     [](const CUgraphEdgeData& data) { return !is_default(data); });
    require(dependencies == nullptr || edge_data != nullptr || !special, CUDA_ERROR_LOSSY_QUERY);
    if (id != nullptr) *id = capture.id;
    if (graph != nullptr) *graph = capture.graph.get();
    if (dependencies != nullptr) *dependencies = nodes.data();
    if (edge_data != nullptr) *edge_data = edges.data();
    if (count != nullptr) *count = nodes.size();
  });
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* dependencies,
                                                   const CUgraphEdgeData* edge_data, size_t count,
                                                   unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES ||
            flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    require(count == 0 || dependencies != nullptr);
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    require(stream->capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    require(stream->capture->valid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    for (std::size_t i = 0; i < count; ++i) {
      require(stream->capture->graph->owns(dependencies[i]));
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) stream->dependencies.clear();
    for (std::size_t i = 0; i < count; ++i) {
      stream->dependencies.add(dependencies[i],
                               edge_data == nullptr ? CUgraphEdgeData{} : edge_data[i]);
    }
  });
}
