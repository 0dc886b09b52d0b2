// SPDX-License-Identifier: Apache-2.0
#include "record/cupti.h"

#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

#include "error.h"
#include "record/interpose.h"

namespace kjudge {

thread_local int RecorderCall::depth_ = 0;

namespace {

struct Seen {
  std::mutex mutex;
  std::vector<LoadedCubin> cubins;
  std::vector<std::string> past_the_hooks;
  std::string failure = "CUPTI was not started: CUDA_INJECTION64_PATH does not name the recorder";
};

// Never destroyed: see subscribe_to_driver.
Seen& seen() {
  static Seen* const kept = new Seen;
  return *kept;
}

// Calls during which the driver loads code lazily, and for which object. Every call that may is
// here: a cubin that arrives in another call has no owner and is found by its kernels' names alone.
constexpr std::array kLoadingCalls = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction,
    CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute,
    CUPTI_DRIVER_TRACE_CBID_cuKernelSetAttribute,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryGetGlobal,
    CUPTI_DRIVER_TRACE_CBID_cuFuncLoad,
};

// The loading call that this thread is in.
thread_local const void* owner_now = nullptr;
thread_local std::vector<std::size_t>* cubins_here = nullptr;

const void* owner_of(CUpti_CallbackId id, const void* params) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
      return static_cast<const cuLaunchKernel_params*>(params)->f;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      return static_cast<const cuLaunchKernel_ptsz_params*>(params)->f;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
      return static_cast<const cuLaunchKernelEx_params*>(params)->f;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
      return static_cast<const cuLaunchKernelEx_ptsz_params*>(params)->f;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
      return static_cast<const cuLaunchCooperativeKernel_params*>(params)->f;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      return static_cast<const cuLaunchCooperativeKernel_ptsz_params*>(params)->f;
    case CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction:
      return static_cast<const cuKernelGetFunction_params*>(params)->kernel;
    case CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute:
      return static_cast<const cuKernelGetAttribute_params*>(params)->kernel;
    case CUPTI_DRIVER_TRACE_CBID_cuKernelSetAttribute:
      return static_cast<const cuKernelSetAttribute_params*>(params)->kernel;
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule:
      return static_cast<const cuLibraryGetModule_params*>(params)->library;
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetGlobal:
      return static_cast<const cuLibraryGetGlobal_params*>(params)->library;
    case CUPTI_DRIVER_TRACE_CBID_cuFuncLoad:
      return static_cast<const cuFuncLoad_params*>(params)->function;
    default:
      return nullptr;
  }
}

// Every call that gives device memory, or host memory that a device reaches. The recorder itself
// makes some of them, within a RecorderCall; any other caller has gone round the hooks.
constexpr std::array kMemoryCalls = {
    CUPTI_DRIVER_TRACE_CBID_cuMemAlloc,
    CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocPitch_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocManaged,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocFromPoolAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMemMap,
    CUPTI_DRIVER_TRACE_CBID_cuMemAddressReserve,
    CUPTI_DRIVER_TRACE_CBID_cuMemImportFromShareableHandle,
    CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle,
    CUPTI_DRIVER_TRACE_CBID_cuIpcOpenMemHandle_v2,
    CUPTI_DRIVER_TRACE_CBID_cuImportExternalMemory,
    CUPTI_DRIVER_TRACE_CBID_cuMulticastCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMemPoolImportPointer,
    CUPTI_DRIVER_TRACE_CBID_cuArrayCreate,
    CUPTI_DRIVER_TRACE_CBID_cuArrayCreate_v2,
    CUPTI_DRIVER_TRACE_CBID_cuArray3DCreate,
    CUPTI_DRIVER_TRACE_CBID_cuArray3DCreate_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMipmappedArrayCreate,
    CUPTI_DRIVER_TRACE_CBID_cuTexObjectCreate,
    CUPTI_DRIVER_TRACE_CBID_cuSurfObjectCreate,
    CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc,
    CUPTI_DRIVER_TRACE_CBID_cuMemHostAlloc_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost,
    CUPTI_DRIVER_TRACE_CBID_cuMemAllocHost_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister,
    CUPTI_DRIVER_TRACE_CBID_cuMemHostRegister_v2,
};

// Calls that give a stream work, but for copies and fills, and old ones that have no hook. Each
// that did not come through a hook is counted as if it had.
#define KJ_LAUNCHES(X)              \
  X(cuLaunchKernel)                 \
  X(cuLaunchKernel_ptsz)            \
  X(cuLaunchCooperativeKernel)      \
  X(cuLaunchCooperativeKernel_ptsz) \
  X(cuGraphLaunch)                  \
  X(cuGraphLaunch_ptsz)             \
  X(cuLaunch)                       \
  X(cuLaunchGrid)                   \
  X(cuLaunchGridAsync)              \
  X(cuMemcpyBatchAsync)             \
  X(cuMemcpyBatchAsync_ptsz)        \
  X(cuMemcpy3DBatchAsync)           \
  X(cuMemcpy3DBatchAsync_ptsz)      \
  X(cuMemPrefetchAsync)             \
  X(cuMemPrefetchAsync_ptsz)        \
  X(cuStreamWriteValue32)           \
  X(cuStreamWriteValue32_ptsz)      \
  X(cuStreamWriteValue64)           \
  X(cuStreamWriteValue64_ptsz)      \
  X(cuStreamBatchMemOp)             \
  X(cuStreamBatchMemOp_ptsz)

template <class Params>
CUstream stream_member(const void* params) {
  const auto* given = static_cast<const Params*>(params);
  if constexpr (requires { given->hStream; }) {
    return given->hStream;
  } else if constexpr (requires { given->stream; }) {
    return given->stream;
  } else {
    return nullptr;  // the default stream
  }
}

constexpr bool ends_in(std::string_view name, std::string_view end) {
  return name.size() > end.size() && name.substr(name.size() - end.size()) == end;
}

struct WorkCall {
  CUpti_CallbackId id;
  CUstream (*stream)(const void* params);
  bool per_thread;
};

template <class Params>
CUstream stream_of_config(const void* params) {
  const CUlaunchConfig* config = static_cast<const Params*>(params)->config;
  return config != nullptr ? config->hStream : nullptr;
}

constexpr WorkCall kWorkCalls[] = {
#define KJ_CALL(entry)                                              \
  {CUPTI_DRIVER_TRACE_CBID_##entry, &stream_member<entry##_params>, \
   ends_in(#entry, "_ptsz") || ends_in(#entry, "_ptds")},
#define KJ_HOOKED_CALL(entry, base, version, per_thread) KJ_CALL(entry)
    KJ_LAUNCHES(KJ_CALL) KJ_WORK_HOOKS(KJ_HOOKED_CALL)
#undef KJ_HOOKED_CALL
#undef KJ_CALL
        {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &stream_of_config<cuLaunchKernelEx_params>,
         false},
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, &stream_of_config<cuLaunchKernelEx_ptsz_params>,
     true},
};

void keep_cubin(const CUpti_ModuleResourceData& module) {
  const auto* bytes = reinterpret_cast<const std::byte*>(module.pCubin);
  auto image = std::make_shared<const Bytes>(bytes, bytes + module.cubinSize);
  if (cubins_here == nullptr) cubins_here = new std::vector<std::size_t>;
  const std::lock_guard lock(seen().mutex);
  cubins_here->push_back(seen().cubins.size());
  seen().cubins.push_back({std::move(image), owner_now});
}

void driver_call(CUpti_CallbackId id, const CUpti_CallbackData& call) {
  const void* owner = owner_of(id, call.functionParams);
  if (owner != nullptr) owner_now = call.callbackSite == CUPTI_API_ENTER ? owner : nullptr;
  if (call.callbackSite != CUPTI_API_ENTER || RecorderCall::active()) return;
  for (const WorkCall& work : kWorkCalls) {
    if (work.id != id) continue;
    const Watched* watched = kjudge::watched();
    if (watched == nullptr) return;
    CUstream stream = work.stream(call.functionParams);
    if (stream == nullptr && work.per_thread) stream = CU_STREAM_PER_THREAD;
    watched->observed->watch.outside(stream, [&] { return std::string(call.functionName); });
    return;
  }
  if (owner != nullptr) return;
  const std::lock_guard lock(seen().mutex);
  if (seen().past_the_hooks.size() < 100) seen().past_the_hooks.emplace_back(call.functionName);
}

void CUPTIAPI called_back(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* payload) {
  try {
    if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
      const auto* resource = static_cast<const CUpti_ResourceData*>(payload);
      keep_cubin(*static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor));
    } else if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
      driver_call(id, *static_cast<const CUpti_CallbackData*>(payload));
    }
  } catch (...) {
    // Out of memory while noting something: the recording would miss it, so it must not be trusted.
    const std::lock_guard lock(seen().mutex);
    seen().failure = "out of memory in a CUPTI callback";
  }
}

// Torch brings its own CUPTI; two versions in one process break its profiler, so what is loaded
// wins.
void* open_cupti() {
  if (void* loaded = ::dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD)) return loaded;
  if (const char* named = std::getenv("KJUDGE_CUPTI")) {
    if (void* library = ::dlopen(named, RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  for (const char* name : {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                           "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"}) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  return nullptr;
}

template <class Function>
Function* symbol(void* library, const char* name) {
  auto* found = reinterpret_cast<Function*>(::dlsym(library, name));
  if (found == nullptr) throw Error(Fault::device, cat("libcupti has no ", name));
  return found;
}

void subscribe() {
  void* library = open_cupti();
  if (library == nullptr) {
    throw Error(
        Fault::device,
        "libcupti.so.13 was not found; install CUPTI (it comes with the CUDA Toolkit and with "
        "torch), or name it in KJUDGE_CUPTI");
  }
  auto* text_of = symbol<decltype(cuptiGetResultString)>(library, "cuptiGetResultString");
  const auto check = [&](CUptiResult result, const char* call) {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    text_of(result, &text);
    throw Error(Fault::device, cat(call, ": ", text ? text : "unknown error"));
  };
  CUpti_SubscriberHandle subscriber = nullptr;
  check(symbol<decltype(cuptiSubscribe)>(library, "cuptiSubscribe")(&subscriber, called_back,
                                                                    nullptr),
        "cuptiSubscribe");
  auto* enable = symbol<decltype(cuptiEnableCallback)>(library, "cuptiEnableCallback");
  check(enable(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED),
        "cuptiEnableCallback");
  for (const CUpti_CallbackId id : kLoadingCalls) {
    check(enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id), "cuptiEnableCallback");
  }
  for (const WorkCall& work : kWorkCalls) {
    check(enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, work.id), "cuptiEnableCallback");
  }
  for (const CUpti_CallbackId id : kMemoryCalls) {
    check(enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id), "cuptiEnableCallback");
  }
}

}  // namespace

void subscribe_to_driver() {
  std::string failure;
  try {
    subscribe();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const std::lock_guard lock(seen().mutex);
  seen().failure = failure;
}

std::string cupti_failure() {
  const std::lock_guard lock(seen().mutex);
  return seen().failure;
}

std::vector<LoadedCubin> loaded_cubins() {
  const std::lock_guard lock(seen().mutex);
  return seen().cubins;
}

std::size_t cubins_loaded_by_this_thread() { return cubins_here ? cubins_here->size() : 0; }

std::vector<LoadedCubin> last_cubins_of_this_thread(std::size_t count) {
  std::vector<LoadedCubin> last;
  if (cubins_here == nullptr) return last;
  const std::lock_guard lock(seen().mutex);
  for (std::size_t i = cubins_here->size() - std::min(count, cubins_here->size());
       i < cubins_here->size(); ++i) {
    last.push_back(seen().cubins[(*cubins_here)[i]]);
  }
  return last;
}

std::vector<std::string> calls_past_the_hooks() {
  const std::lock_guard lock(seen().mutex);
  return seen().past_the_hooks;
}

}  // namespace kjudge

// The driver looks for this name in the library that CUDA_INJECTION64_PATH names, at cuInit.
extern "C" __attribute__((visibility("default"))) int InitializeInjection(void) {
  kjudge::subscribe_to_driver();
  return 1;
}
