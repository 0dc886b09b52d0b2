// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "driver/host/capture.h"
#include "driver/host/context.h"
#include "driver/host/stream.h"

using namespace kjudge;

namespace {

constexpr int kGreatestPriority = -5;

// Forgets destroyed streams whose threads have ended. Queue mutex held.
void reap(CUctx_st& context) {
  std::erase_if(context.streams, [](const std::shared_ptr<CUstream_st>& stream) {
    if (!stream->closing || (stream->thread.joinable() && !stream->exited.load())) return false;
    if (stream->thread.joinable()) stream->thread.join();
    return true;
  });
}

CUstream create(CUctx_st& context, unsigned flags, int priority) {
  require((flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
  auto stream =
      std::make_shared<CUstream_st>(context, flags, std::clamp(priority, kGreatestPriority, 0));
  {
    const std::lock_guard lock(queue_mutex());
    reap(context);
    context.streams.push_back(stream);
  }
  return handles<CUstream_st>().add(std::move(stream));
}

}  // namespace

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(stream != nullptr);
    *stream = create(context, flags, 0);
  });
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(stream != nullptr);
    *stream = create(context, flags, priority);
  });
}

// Work in the queue is still done.
CUresult CUDAAPI cuStreamDestroy(CUstream handle) {
  return context_call(__func__, [&] {
    const auto stream = handles<CUstream_st>().get(handle);
    const std::lock_guard lock(queue_mutex());
    forget_capturing(*stream);
    handles<CUstream_st>().remove(handle);
    stream->closing = true;
    stream->pending.store(true);
    stream->arrived.notify();
  });
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    const auto stream = stream_of(context, handle);
    Ticket ticket{stream, 0};
    {
      const std::lock_guard lock(queue_mutex());
      refuse_implicit_use(*stream);
      refuse_capturing(*stream);
      ticket.number = stream->submitted;
    }
    ticket.wait();
    stream->context.check();
  });
}

CUresult CUDAAPI cuStreamQuery(CUstream handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    refuse_implicit_use(*stream);
    refuse_capturing(*stream);
    if (stream->completed.load() < stream->submitted) return CUDA_ERROR_NOT_READY;
    stream->context.check();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetPriority(CUstream handle, int* priority) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(priority != nullptr);
    *priority = stream_of(context, handle)->priority;
  });
}

CUresult CUDAAPI cuStreamGetFlags(CUstream handle, unsigned* flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(flags != nullptr);
    *flags = stream_of(context, handle)->flags;
  });
}

CUresult CUDAAPI cuStreamGetId(CUstream handle, unsigned long long* id) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(id != nullptr);
    *id = stream_of(context, handle)->id;
  });
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext* owner) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(owner != nullptr);
    *owner = &stream_of(context, handle)->context;
  });
}

CUresult CUDAAPI cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(device != nullptr);
    *device = stream_of(context, handle)->context.device;
  });
}

CUresult CUDAAPI cuStreamGetAttribute(CUstream handle, CUstreamAttrID which,
                                      CUstreamAttrValue* value) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(value != nullptr);
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    const auto set = stream->attributes.find(which);
    *value = set == stream->attributes.end() ? CUstreamAttrValue{} : set->second;
    if (which == CU_LAUNCH_ATTRIBUTE_PRIORITY && set == stream->attributes.end()) {
      value->priority = stream->priority;
    }
  });
}

CUresult CUDAAPI cuStreamSetAttribute(CUstream handle, CUstreamAttrID which,
                                      const CUstreamAttrValue* value) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(value != nullptr);
    require(which == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
            which == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY ||
            which == CU_LAUNCH_ATTRIBUTE_PRIORITY || which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN ||
            which == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    stream->attributes[which] = *value;
  });
}

CUresult CUDAAPI cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* argument,
                                     unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(callback != nullptr && flags == 0);
    const auto stream = stream_of(context, handle);
    const std::lock_guard lock(queue_mutex());
    refuse_implicit_use(*stream);
    refuse_capturing(*stream);
    enqueue(*stream, CallbackWork{handle, callback, argument});
  });
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) == 0);
    const auto stream = stream_of(context, handle);
    const auto event = handles<CUevent_st>().get(event_handle);
    const std::lock_guard lock(queue_mutex());
    refuse_implicit_use(*stream);
    if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
      require(stream->capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
      add_captured(*stream, EventWaitWork{event});
      return;
    }
    if (wait_captured(*stream, *event)) return;
    if (event->record == nullptr || event->record->ticket.done()) return;
    enqueue(*stream, EmptyWork{}, {event->record->ticket});
  });
}
