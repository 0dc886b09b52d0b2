// SPDX-License-Identifier: Apache-2.0
#include "driver/host/capture.h"
#include "driver/host/context.h"
#include "driver/host/stream.h"

using namespace kjudge;

namespace {

void record(CUctx_st& context, CUevent event_handle, CUstream handle, unsigned flags) {
  require((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) == 0);
  const auto event = handles<CUevent_st>().get(event_handle);
  const auto stream = stream_of(context, handle);
  require(event->context.get() == &stream->context, CUDA_ERROR_INVALID_HANDLE);
  const std::lock_guard lock(queue_mutex());
  refuse_implicit_use(*stream);
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) {
    require(stream->capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
    add_captured(*stream, EventRecordWork{event, nullptr});
    return;
  }
  if (stream->capture != nullptr) {
    record_captured(*event, *stream);
    return;
  }
  auto made = std::make_shared<EventRecord>();
  made->ticket = enqueue(*stream, EventRecordWork{event, made});
  event->record = std::move(made);
  event->captured = false;
  event->capture.reset();
}

// The event's last record outside captures; null when there is none.
std::shared_ptr<EventRecord> last_record(CUevent_st& event) {
  const std::lock_guard lock(queue_mutex());
  refuse_captured(event);
  return event.record;
}

}  // namespace

CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(event != nullptr);
    require((flags & ~unsigned{CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING |
                               CU_EVENT_INTERPROCESS}) == 0);
    require((flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_NOT_SUPPORTED);
    *event = handles<CUevent_st>().add(std::make_shared<CUevent_st>(context, flags));
  });
}

CUresult CUDAAPI cuEventDestroy(CUevent handle) {
  return context_call(__func__, [&] { handles<CUevent_st>().remove(handle); });
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return context_call(__func__, [&](CUctx_st& context) { record(context, event, stream, 0); });
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) { record(context, event, stream, flags); });
}

CUresult CUDAAPI cuEventQuery(CUevent handle) {
  return context_call(__func__, [&] {
    const auto event = handles<CUevent_st>().get(handle);
    forbid_during_capture();
    const auto last = last_record(*event);
    if (last != nullptr && !last->ticket.done()) return CUDA_ERROR_NOT_READY;
    event->context->check();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventSynchronize(CUevent handle) {
  return context_call(__func__, [&] {
    const auto event = handles<CUevent_st>().get(handle);
    forbid_during_capture();
    if (const auto last = last_record(*event)) last->ticket.wait();
    event->context->check();
  });
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return context_call(__func__, [&] {
    require(milliseconds != nullptr);
    const auto first = handles<CUevent_st>().get(start), last = handles<CUevent_st>().get(end);
    require(((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) == 0,
            CUDA_ERROR_INVALID_HANDLE);
    const auto from = last_record(*first), to = last_record(*last);
    require(from != nullptr && to != nullptr, CUDA_ERROR_INVALID_HANDLE);
    if (!from->ticket.done() || !to->ticket.done()) return CUDA_ERROR_NOT_READY;
    *milliseconds =
        static_cast<float>(static_cast<double>(to->time_ns.load() - from->time_ns.load()) / 1e6);
    return CUDA_SUCCESS;
  });
}
