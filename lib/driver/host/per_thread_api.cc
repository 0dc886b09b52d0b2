// SPDX-License-Identifier: Apache-2.0
// The entries of programs built with a default stream per thread: the others', with that stream
// where none is named. They differ in nothing else, so one template is all of them; what is
// exported under each one's name is a jump there.
#include "driver/host/per_thread_api.h"

#include <iterator>
#include <type_traits>

#include "driver/host/api.h"

namespace kjudge {
namespace {

inline CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

template <class Signature>
struct PerThread;

template <class... Arguments>
struct PerThread<CUresult(Arguments...)> {
  template <CUresult (*Entry)(Arguments...)>
  static CUresult CUDAAPI call(Arguments... arguments) {
    return Entry(own(arguments)...);
  }

  static CUstream own(CUstream stream) { return per_thread(stream); }
  template <class Argument>
  static Argument own(Argument argument) {
    return argument;
  }
};

CUresult CUDAAPI launch_with_config(const CUlaunchConfig* config, CUfunction function,
                                    void** params, void** extra) {
  if (config == nullptr) return cuLaunchKernelEx(config, function, params, extra);
  CUlaunchConfig own = *config;
  own.hStream = per_thread(own.hStream);
  return cuLaunchKernelEx(&own, function, params, extra);
}

}  // namespace
}  // namespace kjudge

// X(exported name, name for cuGetProcAddress, first CUDA version)
#define KJ_PER_THREAD(X)                                               \
  X(cuMemcpyAsync, "cuMemcpyAsync", 7000)                              \
  X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 7000)                   \
  X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 7000)                   \
  X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 7000)                   \
  X(cuMemcpy2DAsync_v2, "cuMemcpy2DAsync", 7000)                       \
  X(cuMemcpy3DAsync_v2, "cuMemcpy3DAsync", 7000)                       \
  X(cuMemsetD8Async, "cuMemsetD8Async", 7000)                          \
  X(cuMemsetD16Async, "cuMemsetD16Async", 7000)                        \
  X(cuMemsetD32Async, "cuMemsetD32Async", 7000)                        \
  X(cuMemsetD2D8Async, "cuMemsetD2D8Async", 7000)                      \
  X(cuMemsetD2D16Async, "cuMemsetD2D16Async", 7000)                    \
  X(cuMemsetD2D32Async, "cuMemsetD2D32Async", 7000)                    \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020)                         \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020)                           \
  X(cuLaunchKernel, "cuLaunchKernel", 7000)                            \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000)      \
  X(cuLaunchHostFunc, "cuLaunchHostFunc", 10000)                       \
  X(cuStreamAddCallback, "cuStreamAddCallback", 7000)                  \
  X(cuGraphLaunch, "cuGraphLaunch", 10000)                             \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010)            \
  X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030) \
  X(cuStreamEndCapture, "cuStreamEndCapture", 10000)                   \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", 10000)                 \
  X(cuStreamSynchronize, "cuStreamSynchronize", 7000)                  \
  X(cuStreamQuery, "cuStreamQuery", 7000)                              \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", 7000)                      \
  X(cuEventRecord, "cuEventRecord", 7000)                              \
  X(cuEventRecordWithFlags, "cuEventRecordWithFlags", 11010)

#define KJ_JUMP(entry, hook)                                                                   \
  extern "C" {                                                                                 \
  __attribute__((visibility("default"))) extern decltype(::entry) entry##_ptsz;                \
  __attribute__((used, visibility("hidden"))) decltype(&::entry) kjudge_##entry##_ptsz = hook; \
  }                                                                                            \
  asm("       .text\n        .globl " #entry "_ptsz\n        .type " #entry                    \
      "_ptsz, @function\n" #entry "_ptsz:\n        endbr64\n        jmp *kjudge_" #entry       \
      "_ptsz(%rip)\n        .size " #entry "_ptsz, .-" #entry "_ptsz\n");
#define KJ_JUMP_TO_TEMPLATE(entry, name, version) \
  KJ_JUMP(entry, &kjudge::PerThread<decltype(::entry)>::call<&::entry>)
KJ_PER_THREAD(KJ_JUMP_TO_TEMPLATE)
KJ_JUMP(cuLaunchKernelEx, &kjudge::launch_with_config)

namespace kjudge {

#define KJ_ROW(entry, name, version) {name, version, reinterpret_cast<void*>(&::entry##_ptsz)},
const PerThreadEntry kPerThreadEntries[] = {
    KJ_PER_THREAD(KJ_ROW) KJ_ROW(cuLaunchKernelEx, "cuLaunchKernelEx", 11060)};
const std::size_t kPerThreadEntryCount = std::size(kPerThreadEntries);

}  // namespace kjudge
