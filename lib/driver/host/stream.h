// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include "driver/host/context.h"
#include "driver/host/pool.h"
#include "driver/host/work.h"

namespace kjudge {

struct Capture;

// A place in a stream's queue: everything up to and with it.
struct Ticket {
  std::shared_ptr<CUstream_st> stream;
  std::uint64_t number = 0;

  bool done() const;
  void wait() const;
};

// One recording of an event outside graphs and captures.
struct EventRecord {
  Ticket ticket;                          // its stream is null when a graph recorded it
  std::atomic<std::int64_t> time_ns{-1};  // of CLOCK_MONOTONIC, once it happened
};

// What the next captured node of a stream will depend on, with the data of those edges. Each node
// is in it once.
class CaptureDependencies {
 public:
  const std::vector<CUgraphNode>& nodes() const { return nodes_; }
  const std::vector<CUgraphEdgeData>& edges() const { return edges_; }

  // No effect for a node that is in it.
  void add(CUgraphNode node, const CUgraphEdgeData& data);
  void clear();

 private:
  std::vector<CUgraphNode> nodes_;
  std::vector<CUgraphEdgeData> edges_;
  std::unordered_set<CUgraphNode> known_;  // the nodes, once they are many
};

std::int64_t now_ns();

}  // namespace kjudge

// A queue and the thread that works it off, which starts with the first work.
struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
  struct Entry {
    kjudge::Work work;
    std::vector<kjudge::Ticket> after;
    std::uint64_t number = 0;
  };

  CUstream_st(CUctx_st& context, unsigned flags, int priority);
  ~CUstream_st();

  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }

  CUctx_st& context;
  const unsigned flags;
  const int priority;
  const unsigned long long id;

  // Guarded by queue_mutex().
  std::deque<Entry> queue;
  std::uint64_t submitted = 0;
  bool closing = false;
  std::thread thread;
  std::shared_ptr<kjudge::Capture> capture;  // while it captures
  kjudge::CaptureDependencies dependencies;  // of the next node
  std::map<CUstreamAttrID, CUstreamAttrValue> attributes;

  std::atomic<bool> pending{false};  // the thread has something to look at
  std::atomic<std::uint64_t> completed{0};
  std::atomic<bool> exited{false};
  std::atomic<std::int64_t> running_since_ns{0};  // 0: nothing that a time limit is for
  kjudge::Signal arrived, progress;
};

struct CUevent_st {
  explicit CUevent_st(CUctx_st& context_, unsigned flags_)
      : context(context_.shared_from_this()), flags(flags_) {}

  const std::shared_ptr<CUctx_st> context;
  const unsigned flags;

  // Guarded by queue_mutex(). An event was last recorded in a capture, or in a queue, or never.
  std::shared_ptr<kjudge::EventRecord> record;
  std::weak_ptr<kjudge::Capture> capture;
  bool captured = false;
  std::vector<CUgraphNode> capture_nodes;
};

namespace kjudge {

// The stream of a handle in this context: NULL and the two special handles too.
std::shared_ptr<CUstream_st> stream_of(CUctx_st& context, CUstream handle);

// Gives `work` to the stream: a node of its graph while it captures, an entry of its queue
// otherwise. The ticket's stream is null when it was captured.
Ticket submit(const std::shared_ptr<CUstream_st>& stream, Work work,
              std::vector<Ticket> after = {});
// The same with queue_mutex() held, for what is not captured.
Ticket enqueue(CUstream_st& stream, Work work, std::vector<Ticket> after = {});

// Submits to the legacy stream and waits: the synchronous calls.
void submit_and_wait(CUctx_st& context, Work work);

// Lets the streams' threads end when their queues are empty, and waits for them.
void join_streams(CUctx_st& context);

// Launch time limit of KJUDGE_HOST_LAUNCH_TIMEOUT_MS; 0: none.
std::int64_t launch_time_limit_ns();

}  // namespace kjudge
