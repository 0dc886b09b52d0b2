// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include "driver/driver.h"
#include "record/watch.h"
#include "record/work_entries.h"

// The hooked entries of the driver: X(exported name, name for cuGetProcAddress, first CUDA version
// with this signature, per-thread default stream). Everything exported here is also found by code
// that links the driver directly, since the recorder is preloaded.
#define KJ_HOOKS(X)                                                                 \
  X(cuGetProcAddress, "cuGetProcAddress", 11030, false)                             \
  X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, false)                          \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, false)                                       \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, false)                             \
  X(cuMemFree_v2, "cuMemFree", 3020, false)                                         \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, false)                               \
  X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, true)                           \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, false)               \
  X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, true)           \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, false)                                 \
  X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, true)                             \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, false)                            \
  X(cuMemAddressReserve, "cuMemAddressReserve", 10020, false)                       \
  X(cuMemAddressFree, "cuMemAddressFree", 10020, false)                             \
  X(cuMemCreate, "cuMemCreate", 10020, false)                                       \
  X(cuMemRelease, "cuMemRelease", 10020, false)                                     \
  X(cuMemMap, "cuMemMap", 10020, false)                                             \
  X(cuMemUnmap, "cuMemUnmap", 10020, false)                                         \
  X(cuMemSetAccess, "cuMemSetAccess", 10020, false)                                 \
  X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle", 10020, false) \
  X(cuMemHostAlloc, "cuMemHostAlloc", 2020, false)                                  \
  X(cuMemAllocHost_v2, "cuMemAllocHost", 3020, false)                               \
  X(cuMemFreeHost, "cuMemFreeHost", 2000, false)                                    \
  X(cuMemHostRegister_v2, "cuMemHostRegister", 6050, false)                         \
  X(cuMemHostUnregister, "cuMemHostUnregister", 4000, false)                        \
  X(cuArrayCreate_v2, "cuArrayCreate", 3020, false)                                 \
  X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, false)                             \
  X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, false)                  \
  X(cuTexObjectCreate, "cuTexObjectCreate", 5000, false)                            \
  X(cuSurfObjectCreate, "cuSurfObjectCreate", 5000, false)                          \
  X(cuMemPoolImportPointer, "cuMemPoolImportPointer", 11020, false)                 \
  X(cuModuleLoad, "cuModuleLoad", 2000, false)                                      \
  X(cuModuleLoadData, "cuModuleLoadData", 2000, false)                              \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, false)                          \
  X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 2000, false)                    \
  X(cuModuleUnload, "cuModuleUnload", 2000, false)                                  \
  X(cuLibraryLoadData, "cuLibraryLoadData", 12000, false)                           \
  X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 12000, false)                   \
  X(cuLibraryUnload, "cuLibraryUnload", 12000, false)                               \
  X(cuModuleGetGlobal_v2, "cuModuleGetGlobal", 3020, false)                         \
  X(cuLibraryGetGlobal, "cuLibraryGetGlobal", 12000, false)                         \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, false)                          \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", 12000, false)                     \
  X(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", 3000, false)                      \
  X(cuKernelSetCacheConfig, "cuKernelSetCacheConfig", 12000, false)                 \
  X(cuCtxSetLimit, "cuCtxSetLimit", 3010, false)                                    \
  X(cuLaunchKernel, "cuLaunchKernel", 4000, false)                                  \
  X(cuLaunchKernel_ptsz, "cuLaunchKernel", 7000, true)                              \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, false)                             \
  X(cuLaunchKernelEx_ptsz, "cuLaunchKernelEx", 11060, true)                         \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 9000, false)            \
  X(cuLaunchCooperativeKernel_ptsz, "cuLaunchCooperativeKernel", 9000, true)        \
  X(cuGraphLaunch, "cuGraphLaunch", 10000, false)                                   \
  X(cuGraphLaunch_ptsz, "cuGraphLaunch", 10000, true)                               \
  X(cuStreamBeginCapture, "cuStreamBeginCapture", 10000, false)                     \
  X(cuStreamBeginCapture_ptsz, "cuStreamBeginCapture", 10000, true)                 \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, false)                  \
  X(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, true)              \
  X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, false)       \
  X(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, true)   \
  X(cuStreamEndCapture, "cuStreamEndCapture", 10000, false)                         \
  X(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, true)                     \
  KJ_WORK_HOOKS(X)

// What cuda.h declares under other settings only.
extern "C" {
#undef cuGetProcAddress
#undef cuStreamBeginCapture  // Driver's is the second version, as a member too
CUresult CUDAAPI cuStreamBeginCapture(CUstream);
CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream);
CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                  cuuint64_t flags);
CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr*, size_t, CUstream);
CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr*, size_t, CUmemoryPool, CUstream);
CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr, CUstream);
CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     unsigned, unsigned, CUstream, void**, void**);
CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig*, CUfunction, void**, void**);
CUresult CUDAAPI cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned,
                                                unsigned, unsigned, unsigned, CUstream, void**);
CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec, CUstream);
CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream, CUstreamCaptureMode);
CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream, CUgraph, const CUgraphNode*,
                                                  const CUgraphEdgeData*, size_t,
                                                  CUstreamCaptureMode);
CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream, CUgraph*);
}

namespace kjudge {

// The entries that hooks stand before; null where this driver has none.
struct HookedEntries {
#define KJ_HOOKED(entry, base, version, per_thread) decltype(&::entry) entry = nullptr;
  KJ_HOOKS(KJ_HOOKED)
#undef KJ_HOOKED
};

// The driver being watched, reached past the hooks.
struct Watched {
  Driver driver;
  HookedEntries entries;
  PFN_cuGetProcAddress_v12000 get_proc_address = nullptr;
  Observed* observed = nullptr;

  // An entry that the table does not hold, because the host driver need not have it; null: none.
  void* optional_entry(const char* name, int version) const;
};

// Opens the driver the first time. Null, and `why` says the reason, when KJUDGE_DRIVER_LIBRARY is
// unset or cannot be opened.
const Watched* watched(std::string* why = nullptr);

// Replaces what a lookup found by its hook. Null when `found` is not hooked.
void* hook_for(void* found);

}  // namespace kjudge
