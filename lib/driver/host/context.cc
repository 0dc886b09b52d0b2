// SPDX-License-Identifier: Apache-2.0
#include "driver/host/context.h"

#include <algorithm>
#include <array>

#include "driver/host/capture.h"
#include "driver/host/guard.h"
#include "driver/host/memory.h"
#include "driver/host/module.h"
#include "driver/host/stream.h"

using namespace kjudge;

namespace {

std::atomic<unsigned long long> next_context_id{1};

// The calling thread's stack of current contexts; the last one is current.
thread_local std::vector<CUcontext> current_contexts;

// Of a device: one, made when first retained.
struct Primary {
  std::mutex mutex;
  std::shared_ptr<CUctx_st> context;
  unsigned references = 0;
  unsigned flags = 0;
};
Primary& primary(CUdevice device) {
  static auto& all = *new std::array<Primary, kMostDevices>;
  check_device(device);
  return all[static_cast<std::size_t>(device)];
}

std::shared_ptr<CUctx_st> make_context(int device, unsigned flags, bool is_primary) {
  install_fault_handlers();
  auto context = std::make_shared<CUctx_st>(device, flags, is_primary);
  context->legacy = std::make_shared<CUstream_st>(*context, CU_STREAM_DEFAULT, 0);
  context->streams.push_back(context->legacy);
  handles<CUctx_st>().add(context);
  return context;
}

CUcontext current() { return current_contexts.empty() ? nullptr : current_contexts.back(); }

std::shared_ptr<CUctx_st> live(CUcontext handle) {
  return handles<CUctx_st>().get(handle, CUDA_ERROR_INVALID_CONTEXT);
}

std::shared_ptr<CUctx_st> create_context(CUcontext* made, unsigned flags, CUdevice device) {
  require(made != nullptr);
  check_device(device);
  require((flags & ~CU_CTX_FLAGS_MASK) == 0);
  auto context = make_context(device, flags, false);
  current_contexts.push_back(context.get());
  *made = context.get();
  return context;
}

void synchronize_uncaptured(CUctx_st& context) {
  {
    const std::lock_guard lock(queue_mutex());
    for (const auto& stream : context.streams) refuse_capturing(*stream);
  }
  synchronize(context);
}

void check_limit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      return;
    default:
      fail(CUDA_ERROR_UNSUPPORTED_LIMIT);
  }
}

std::size_t default_limit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return 1u << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return 8u << 20;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    default:
      return 0;
  }
}

}  // namespace

CUctx_st::CUctx_st(int device_, unsigned flags_, bool primary_)
    : device(device_), flags(flags_), primary(primary_), id(next_context_id.fetch_add(1)) {}

namespace kjudge {

std::mutex& queue_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

std::shared_ptr<CUctx_st> usable_context() {
  const CUcontext handle = current();
  require(handle != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  auto context = handles<CUctx_st>().get(handle, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  context->check();
  return context;
}

void synchronize(CUctx_st& context) {
  std::vector<Ticket> tickets;
  {
    const std::lock_guard lock(queue_mutex());
    for (const auto& stream : context.streams) tickets.push_back({stream, stream->submitted});
  }
  for (const Ticket& ticket : tickets) ticket.wait();
  context.check();
}

void destroy_context(const std::shared_ptr<CUctx_st>& context) {
  stop_with(context->error, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  {
    // Captures of its streams end without a graph.
    const std::lock_guard lock(queue_mutex());
    for (const auto& stream : context->streams) forget_capturing(*stream);
  }
  for (const auto& stream : handles<CUstream_st>().all()) {
    if (&stream->context == context.get()) handles<CUstream_st>().remove(stream.get());
  }
  for (const auto& event : handles<CUevent_st>().all()) {
    if (event->context == context) handles<CUevent_st>().remove(event.get());
  }
  join_streams(*context);
  unload_all_of(*context);
  Memory::get().free_all_of(context.get());
  handles<CUctx_st>().remove(context.get());
}

}  // namespace kjudge

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return device_call(__func__, [&] {
    require(context != nullptr);
    Primary& own = primary(device);
    const std::lock_guard lock(own.mutex);
    if (own.context == nullptr) own.context = make_context(device, own.flags, true);
    ++own.references;
    *context = own.context.get();
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return device_call(__func__, [&] {
    Primary& own = primary(device);
    const std::lock_guard lock(own.mutex);
    require(own.references > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--own.references > 0) return;
    destroy_context(own.context);
    own.context = nullptr;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return device_call(__func__, [&] {
    Primary& own = primary(device);
    const std::lock_guard lock(own.mutex);
    if (own.context == nullptr) return;
    destroy_context(own.context);
    own.context = nullptr;
    own.references = 0;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return device_call(__func__, [&] {
    Primary& own = primary(device);
    require((flags & ~CU_CTX_FLAGS_MASK) == 0);
    const std::lock_guard lock(own.mutex);
    own.flags = flags;
    if (own.context != nullptr) own.context->flags = flags;
  });
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return device_call(__func__, [&] {
    require(flags != nullptr && active != nullptr);
    Primary& own = primary(device);
    const std::lock_guard lock(own.mutex);
    *flags = own.flags;
    *active = own.context != nullptr ? 1 : 0;
  });
}

CUresult CUDAAPI cuCtxCreate(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                             CUdevice device) {
  return device_call(__func__, [&] {
    require(
        params == nullptr || (params->numExecAffinityParams == 0 && params->cigParams == nullptr),
        CUDA_ERROR_NOT_SUPPORTED);
    create_context(context, flags, device);
  });
}

CUresult CUDAAPI cuCtxDestroy(CUcontext handle) {
  return device_call(__func__, [&] {
    const auto context = live(handle);
    require(!context->primary, CUDA_ERROR_INVALID_CONTEXT);
    destroy_context(context);
    if (current() == handle) current_contexts.pop_back();
  });
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext handle) {
  return device_call(__func__, [&] {
    live(handle);
    current_contexts.push_back(handle);
  });
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext* popped) {
  return device_call(__func__, [&] {
    require(current() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    if (popped != nullptr) *popped = current();
    current_contexts.pop_back();
  });
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext handle) {
  return device_call(__func__, [&] {
    if (handle != nullptr) live(handle);
    if (!current_contexts.empty()) current_contexts.pop_back();
    if (handle != nullptr) current_contexts.push_back(handle);
  });
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  return device_call(__func__, [&] {
    require(context != nullptr);
    *context = current();
  });
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(device != nullptr);
    *device = context.device;
  });
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  return device_call(__func__, [&] {
    require(device != nullptr);
    *device = (handle == nullptr ? usable_context() : live(handle))->device;
  });
}

CUresult CUDAAPI cuCtxGetFlags(unsigned* flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(flags != nullptr);
    *flags = context.flags;
  });
}

CUresult CUDAAPI cuCtxGetId(CUcontext handle, unsigned long long* id) {
  return device_call(__func__, [&] {
    require(id != nullptr);
    *id = (handle == nullptr ? usable_context() : live(handle))->id;
  });
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  return device_call(__func__, [&] {
    require(version != nullptr);
    if (handle == nullptr) {
      usable_context();
    } else {
      live(handle);
    }
    *version = 3020;
  });
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  return context_call(__func__, [&](CUctx_st& context) { synchronize_uncaptured(context); });
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext handle) {
  return device_call(__func__, [&] {
    const auto context = handle == nullptr ? usable_context() : live(handle);
    context->check();
    synchronize_uncaptured(*context);
  });
}

CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  return context_call(__func__, [&](CUctx_st& context) {
    check_limit(limit);
    const std::lock_guard lock(context.settings_mutex);
    context.limits[limit] = value;
  });
}

CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(value != nullptr);
    check_limit(limit);
    const std::lock_guard lock(context.settings_mutex);
    const auto set = context.limits.find(limit);
    *value = set == context.limits.end() ? default_limit(limit) : set->second;
  });
}

CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(config != nullptr);
    const std::lock_guard lock(context.settings_mutex);
    *config = context.cache_config;
  });
}

CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    const std::lock_guard lock(context.settings_mutex);
    context.cache_config = config;
  });
}

CUresult CUDAAPI cuCtxResetPersistingL2Cache(void) {
  return context_call(__func__, [] {});  // a processor's cache has no such lines
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return context_call(__func__, [&] {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
  });
}
