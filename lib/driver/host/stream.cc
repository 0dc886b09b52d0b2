// SPDX-License-Identifier: Apache-2.0
#include "driver/host/stream.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "driver/host/capture.h"
#include "driver/host/guard.h"

namespace kjudge {
namespace {

std::atomic<unsigned long long> next_stream_id{1};

// Host functions may take as long as they like.
bool is_timed(const Work& work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<GraphWork>(work);
}

void work_off(const std::shared_ptr<CUstream_st>& stream) {
  block_other_signals();
  const KernelThread self;
  CUctx_st& context = stream->context;
  for (bool last = false; !last;) {
    stream->arrived.wait([&] { return stream->pending.load(); });
    std::deque<CUstream_st::Entry> batch;
    {
      const std::lock_guard lock(queue_mutex());
      stream->pending.store(false);
      batch.swap(stream->queue);
      last = stream->closing;  // nothing comes after
    }
    for (CUstream_st::Entry& entry : batch) {
      for (const Ticket& ticket : entry.after) ticket.wait();
      if (is_timed(entry.work)) stream->running_since_ns.store(now_ns());
      const CUresult result = execute(entry.work, context);
      stream->running_since_ns.store(0);
      if (result != CUDA_SUCCESS) stop_with(context.error, result);
      // What the work held goes before anyone learns that it is done.
      const std::uint64_t number = entry.number;
      entry.work = EmptyWork{};
      stream->completed.store(number);
      stream->progress.notify();
    }
  }
  stream->exited.store(true);
  stream->progress.notify();
}

// Stops launches over the time limit, of every context.
void watch() {
  block_other_signals();
  const std::int64_t limit = launch_time_limit_ns();
  const auto period =
      std::chrono::nanoseconds(std::clamp<std::int64_t>(limit / 8, 1'000'000, 100'000'000));
  for (;;) {
    std::this_thread::sleep_for(period);
    for (const auto& context : handles<CUctx_st>().all()) {
      std::vector<std::shared_ptr<CUstream_st>> streams;
      {
        const std::lock_guard lock(queue_mutex());
        streams = context->streams;
      }
      for (const auto& stream : streams) {
        const std::int64_t since = stream->running_since_ns.load();
        if (since != 0 && now_ns() - since > limit) {
          stop_with(context->error, CUDA_ERROR_LAUNCH_TIMEOUT);
        }
      }
    }
  }
}

}  // namespace

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

std::int64_t launch_time_limit_ns() {
  static const std::int64_t limit = [] {
    const char* text = std::getenv("KJUDGE_HOST_LAUNCH_TIMEOUT_MS");
    if (text == nullptr) return std::int64_t{0};
    char* end = nullptr;
    const long long milliseconds = std::strtoll(text, &end, 10);
    if (end == text || *end != '\0' || milliseconds <= 0 || milliseconds > 86'400'000) {
      log_line(std::string("KJUDGE_HOST_LAUNCH_TIMEOUT_MS=") + text +
               ": expected milliseconds, 1 to 86400000; ignored");
      return std::int64_t{0};
    }
    return std::int64_t{milliseconds} * 1'000'000;
  }();
  return limit;
}

bool Ticket::done() const { return stream == nullptr || stream->completed.load() >= number; }

void Ticket::wait() const {
  if (!done()) stream->progress.wait([&] { return done(); });
}

std::shared_ptr<CUstream_st> stream_of(CUctx_st& context, CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    const std::lock_guard lock(queue_mutex());
    return context.legacy;
  }
  if (handle == CU_STREAM_PER_THREAD) {
    const std::lock_guard lock(queue_mutex());
    auto& stream = context.per_thread[std::this_thread::get_id()];
    if (stream == nullptr) {
      stream = std::make_shared<CUstream_st>(context, CU_STREAM_DEFAULT, 0);
      context.streams.push_back(stream);
    }
    return stream;
  }
  auto stream = handles<CUstream_st>().get(handle);
  // The stream's context is the one that work runs in, whatever is current.
  stream->context.check();
  return stream;
}

Ticket enqueue(CUstream_st& stream, Work work, std::vector<Ticket> after) {
  CUctx_st& context = stream.context;
  const auto wait_for = [&](const std::shared_ptr<CUstream_st>& other) {
    if (other.get() != &stream && other->completed.load() < other->submitted) {
      after.push_back({other, other->submitted});
    }
  };
  // The legacy stream waits for all blocking streams, and they for it.
  if (&stream == context.legacy.get()) {
    for (const auto& other : context.streams) {
      if (other->blocking()) wait_for(other);
    }
  } else if (stream.blocking()) {
    wait_for(context.legacy);
  }
  if (!stream.thread.joinable()) {
    stream.thread = std::thread([self = stream.shared_from_this()] { work_off(self); });
    if (launch_time_limit_ns() > 0) {
      static std::once_flag once;
      std::call_once(once, [] { std::thread(watch).detach(); });
    }
  }
  const std::uint64_t number = ++stream.submitted;
  stream.queue.push_back({std::move(work), std::move(after), number});
  stream.pending.store(true);
  stream.arrived.notify();
  return {stream.shared_from_this(), number};
}

Ticket submit(const std::shared_ptr<CUstream_st>& stream, Work work, std::vector<Ticket> after) {
  const std::lock_guard lock(queue_mutex());
  refuse_implicit_use(*stream);
  if (stream->capture != nullptr) {
    add_captured(*stream, std::move(work));
    return {};
  }
  return enqueue(*stream, std::move(work), std::move(after));
}

void submit_and_wait(CUctx_st& context, Work work) {
  forbid_during_capture();
  submit(stream_of(context, nullptr), std::move(work)).wait();
  context.check();
}

void join_streams(CUctx_st& context) {
  std::vector<std::shared_ptr<CUstream_st>> streams;
  {
    const std::lock_guard lock(queue_mutex());
    streams.swap(context.streams);
    context.per_thread.clear();
    for (const auto& stream : streams) {
      stream->closing = true;
      stream->pending.store(true);
      stream->arrived.notify();
    }
  }
  for (const auto& stream : streams) {
    if (!stream->thread.joinable()) continue;
    // A kernel that blocks signals cannot be stopped; its thread is then left behind.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (!stream->exited.load() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (stream->exited.load()) {
      stream->thread.join();
    } else {
      log_line("a kernel does not stop; its thread is left behind");
      stream->thread.detach();
      new std::shared_ptr<CUctx_st>(context.shared_from_this());  // which that thread still uses
    }
  }
}

}  // namespace kjudge

CUstream_st::CUstream_st(CUctx_st& context_, unsigned flags_, int priority_)
    : context(context_),
      flags(flags_),
      priority(priority_),
      id(kjudge::next_stream_id.fetch_add(1)) {}

CUstream_st::~CUstream_st() {
  // The thread holds a reference until it ends, so it has ended, or is the one running this.
  if (thread.joinable()) thread.detach();
}
