// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <filesystem>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

#include "error.h"

namespace kjudge {

// The CUDA driver API as kjudge uses it: each entry with the version it was written for, resolved
// at run time through cuGetProcAddress, so that one binary runs with NVIDIA's driver, with the host
// driver, and (for commands that need neither) with none. This list is the only one: the table, its
// resolution and the host driver's completeness test are generated from it.
#define KJ_DRIVER_ENTRIES(X)               \
  X(cuInit, 2000)                          \
  X(cuDriverGetVersion, 2020)              \
  X(cuGetErrorName, 6000)                  \
  X(cuGetErrorString, 6000)                \
  X(cuDeviceGet, 2000)                     \
  X(cuDeviceGetCount, 2000)                \
  X(cuDeviceGetName, 2000)                 \
  X(cuDeviceGetUuid, 11040)                \
  X(cuDeviceTotalMem, 3020)                \
  X(cuDeviceGetAttribute, 2000)            \
  X(cuDevicePrimaryCtxRetain, 7000)        \
  X(cuDevicePrimaryCtxRelease, 11000)      \
  X(cuCtxSetCurrent, 4000)                 \
  X(cuCtxGetCurrent, 4000)                 \
  X(cuCtxGetDevice, 2000)                  \
  X(cuCtxSynchronize, 2000)                \
  X(cuCtxSetLimit, 3010)                   \
  X(cuCtxGetLimit, 3010)                   \
  X(cuCtxResetPersistingL2Cache, 11000)    \
  X(cuMemGetInfo, 3020)                    \
  X(cuMemGetAllocationGranularity, 10020)  \
  X(cuMemAddressReserve, 10020)            \
  X(cuMemAddressFree, 10020)               \
  X(cuMemCreate, 10020)                    \
  X(cuMemRelease, 10020)                   \
  X(cuMemMap, 10020)                       \
  X(cuMemUnmap, 10020)                     \
  X(cuMemSetAccess, 10020)                 \
  X(cuMemExportToShareableHandle, 10020)   \
  X(cuMemImportFromShareableHandle, 10020) \
  X(cuMemAlloc, 3020)                      \
  X(cuMemFree, 3020)                       \
  X(cuMemHostAlloc, 2020)                  \
  X(cuMemFreeHost, 2000)                   \
  X(cuMemHostGetDevicePointer, 3020)       \
  X(cuPointerGetAttribute, 4000)           \
  X(cuMemcpyHtoD, 3020)                    \
  X(cuMemcpyDtoH, 3020)                    \
  X(cuMemcpyHtoDAsync, 3020)               \
  X(cuMemcpyDtoHAsync, 3020)               \
  X(cuMemcpyDtoDAsync, 3020)               \
  X(cuMemsetD8Async, 3020)                 \
  X(cuModuleLoadData, 2000)                \
  X(cuModuleUnload, 2000)                  \
  X(cuModuleGetFunction, 2000)             \
  X(cuModuleGetGlobal, 3020)               \
  X(cuFuncGetAttribute, 2020)              \
  X(cuFuncSetAttribute, 9000)              \
  X(cuFuncSetCacheConfig, 3000)            \
  X(cuFuncGetModule, 11000)                \
  X(cuFuncGetName, 12030)                  \
  X(cuFuncGetParamInfo, 12040)             \
  X(cuFuncLoad, 12040)                     \
  X(cuKernelGetFunction, 12000)            \
  X(cuLaunchKernel, 4000)                  \
  X(cuStreamCreateWithPriority, 5050)      \
  X(cuStreamDestroy, 4000)                 \
  X(cuStreamSynchronize, 2000)             \
  X(cuStreamQuery, 2000)                   \
  X(cuStreamWaitEvent, 3020)               \
  X(cuStreamBeginCapture, 10010)           \
  X(cuStreamEndCapture, 10000)             \
  X(cuStreamIsCapturing, 10000)            \
  X(cuStreamGetCaptureInfo, 12030)         \
  X(cuEventCreate, 2000)                   \
  X(cuEventDestroy, 4000)                  \
  X(cuEventRecord, 2000)                   \
  X(cuEventSynchronize, 2000)              \
  X(cuEventElapsedTime, 2000)              \
  X(cuGraphCreate, 10000)                  \
  X(cuGraphDestroy, 10000)                 \
  X(cuGraphAddKernelNode, 12000)           \
  X(cuGraphAddMemsetNode, 10000)           \
  X(cuGraphAddMemcpyNode, 10000)           \
  X(cuGraphAddEmptyNode, 10000)            \
  X(cuGraphAddDependencies, 12030)         \
  X(cuGraphGetNodes, 10000)                \
  X(cuGraphGetEdges, 12030)                \
  X(cuGraphNodeGetType, 10000)             \
  X(cuGraphKernelNodeGetParams, 12000)     \
  X(cuGraphKernelNodeGetAttribute, 11000)  \
  X(cuGraphKernelNodeSetAttribute, 11000)  \
  X(cuGraphMemsetNodeGetParams, 10000)     \
  X(cuGraphMemcpyNodeGetParams, 10000)     \
  X(cuGraphInstantiateWithFlags, 11040)    \
  X(cuGraphExecDestroy, 10000)             \
  X(cuGraphUpload, 11010)                  \
  X(cuGraphLaunch, 10000)

enum class DriverKind { cuda, host };
std::string_view name(DriverKind kind);  // "cuda", "host"

// The table. Members carry the API's own names (cuda.h's macros rename both sides alike).
struct Driver {
#define KJ_DRIVER_MEMBER(entry, version) PFN_##entry##_v##version entry = nullptr;
  KJ_DRIVER_ENTRIES(KJ_DRIVER_MEMBER)
#undef KJ_DRIVER_MEMBER

  DriverKind kind = DriverKind::host;
  std::filesystem::path library;

  // Loads the library, resolves every entry, calls cuInit. Fault::device, saying what is missing
  // and what to do, when there is no such driver or it is too old. Safe to call more than once.
  static const Driver& open(DriverKind kind);
  // Resolves the table from a library already loaded, through its cuGetProcAddress; for the
  // recorder, which must not go through its own hooks. Does not call cuInit.
  static Driver resolve(DriverKind kind, PFN_cuGetProcAddress_v12000 get_proc_address);
};

// True where a CUDA driver can be opened and has at least one device.
bool cuda_available();

// Which release of NVIDIA's driver the kernel runs, "580.159.04": the version that the API tells,
// 13.0, is that of many. Empty for the host driver, and where /proc does not show it.
std::string driver_release(DriverKind kind);
// The same of the text of /proc/driver/nvidia/version.
std::string driver_release_in(std::string_view text);

// "GPU-7f1c9a52-...": how NVIDIA's tools name a GPU.
std::string gpu_uuid(const Driver& driver, int device);

// A failed driver call. `result` stays available so that callers can tell a submission's fault
// (illegal address, time-out) from the machine's.
class DriverError : public Error {
 public:
  DriverError(CUresult result, const std::string& message, std::source_location where)
      : Error(Fault::device, message, where), result_(result) {}
  CUresult result() const { return result_; }

 private:
  CUresult result_;
};

// Whether it says that a kernel went wrong or ran too long, and not that a call could not be done.
bool is_kernel_fault(CUresult result);

// Throws DriverError (Fault::device): "cuMemMap: CUDA_ERROR_INVALID_VALUE (invalid argument)".
void check_driver(const Driver& driver, CUresult result, std::string_view call,
                  std::source_location where = std::source_location::current());

}  // namespace kjudge

// KJ_DRIVER(driver, cuMemMap(address, size, 0, handle, 0)): call an entry, throw if it fails.
#define KJ_DRIVER(driver, call)                   \
  ::kjudge::check_driver((driver), (driver).call, \
                         std::string_view(#call).substr(0, std::string_view(#call).find('(')))
