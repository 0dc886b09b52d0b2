// SPDX-License-Identifier: Apache-2.0
// Every entry by name and the CUDA version it is of; cuGetProcAddress.
#include "driver/host/api.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "driver/host/entry.h"
#include "driver/host/old_versions.h"
#include "driver/host/per_thread_api.h"

using namespace kjudge;

namespace {

struct Row {
  const char* name;
  int version;
  void* function;
};

// cuda.h's macros rename the function (cuMemAlloc_v2), not the text.
#define ROW(name, version) \
  { #name, version, reinterpret_cast < void*>(name) }

const Row kRows[] = {
    ROW(cuMemGetInfo, 3020),
    ROW(cuMemAlloc, 3020),
    ROW(cuMemAllocPitch, 3020),
    ROW(cuMemAllocManaged, 6000),
    ROW(cuMemFree, 3020),
    ROW(cuMemAllocAsync, 11020),
    ROW(cuMemFreeAsync, 11020),
    ROW(cuMemHostAlloc, 2020),
    ROW(cuMemAllocHost, 3020),
    ROW(cuMemFreeHost, 2000),
    ROW(cuMemHostRegister, 6050),
    ROW(cuMemHostUnregister, 4000),
    ROW(cuMemHostGetDevicePointer, 3020),
    ROW(cuMemHostGetFlags, 2030),
    ROW(cuMemGetAddressRange, 3020),
    ROW(cuPointerGetAttribute, 4000),
    ROW(cuArrayCreate, 3020),
    ROW(cuArray3DCreate, 3020),
    ROW(cuMipmappedArrayCreate, 5000),
    ROW(cuTexObjectCreate, 5000),
    ROW(cuSurfObjectCreate, 5000),
    ROW(cuMemPoolImportPointer, 11020),
    ROW(cuPointerGetAttributes, 7000),
    ROW(cuStreamBeginCapture, 10010),
    ROW(cuStreamBeginCaptureToGraph, 12030),
    ROW(cuThreadExchangeStreamCaptureMode, 10010),
    ROW(cuStreamEndCapture, 10000),
    ROW(cuStreamIsCapturing, 10000),
    ROW(cuStreamGetCaptureInfo, 12030),
    ROW(cuStreamUpdateCaptureDependencies, 12030),
    ROW(cuDevicePrimaryCtxRetain, 7000),
    ROW(cuDevicePrimaryCtxRelease, 11000),
    ROW(cuDevicePrimaryCtxReset, 11000),
    ROW(cuDevicePrimaryCtxSetFlags, 11000),
    ROW(cuDevicePrimaryCtxGetState, 7000),
    ROW(cuCtxCreate, 12050),
    ROW(cuCtxDestroy, 4000),
    ROW(cuCtxPushCurrent, 4000),
    ROW(cuCtxPopCurrent, 4000),
    ROW(cuCtxSetCurrent, 4000),
    ROW(cuCtxGetCurrent, 4000),
    ROW(cuCtxGetDevice, 2000),
    ROW(cuCtxGetFlags, 7000),
    ROW(cuCtxGetId, 12000),
    ROW(cuCtxGetApiVersion, 3020),
    ROW(cuCtxSynchronize, 2000),
    ROW(cuCtxSetLimit, 3010),
    ROW(cuCtxGetLimit, 3010),
    ROW(cuCtxGetCacheConfig, 3020),
    ROW(cuCtxSetCacheConfig, 3020),
    ROW(cuCtxResetPersistingL2Cache, 11000),
    ROW(cuCtxGetStreamPriorityRange, 5050),
    ROW(cuMemcpy, 4000),
    ROW(cuMemcpyAsync, 4000),
    ROW(cuMemcpyHtoD, 3020),
    ROW(cuMemcpyHtoDAsync, 3020),
    ROW(cuMemcpyDtoH, 3020),
    ROW(cuMemcpyDtoHAsync, 3020),
    ROW(cuMemcpyDtoD, 3020),
    ROW(cuMemcpyDtoDAsync, 3020),
    ROW(cuMemcpy2D, 3020),
    ROW(cuMemcpy2DAsync, 3020),
    ROW(cuMemcpy3D, 3020),
    ROW(cuMemcpy3DAsync, 3020),
    ROW(cuMemsetD8, 3020),
    ROW(cuMemsetD8Async, 3020),
    ROW(cuMemsetD16, 3020),
    ROW(cuMemsetD16Async, 3020),
    ROW(cuMemsetD32, 3020),
    ROW(cuMemsetD32Async, 3020),
    ROW(cuMemsetD2D8, 3020),
    ROW(cuMemsetD2D8Async, 3020),
    ROW(cuMemsetD2D16, 3020),
    ROW(cuMemsetD2D16Async, 3020),
    ROW(cuMemsetD2D32, 3020),
    ROW(cuMemsetD2D32Async, 3020),
    ROW(cuMemcpy2DUnaligned, 3020),
    ROW(cuInit, 2000),
    ROW(cuDriverGetVersion, 2020),
    ROW(cuDeviceGet, 2000),
    ROW(cuDeviceGetCount, 2000),
    ROW(cuDeviceGetName, 2000),
    ROW(cuDeviceGetUuid, 11040),
    ROW(cuDeviceTotalMem, 3020),
    ROW(cuDeviceGetAttribute, 2000),
    ROW(cuDeviceCanAccessPeer, 4000),
    ROW(cuGetErrorName, 6000),
    ROW(cuGetErrorString, 6000),
    ROW(cuEventCreate, 2000),
    ROW(cuEventDestroy, 4000),
    ROW(cuEventRecord, 2000),
    ROW(cuEventRecordWithFlags, 11010),
    ROW(cuEventQuery, 2000),
    ROW(cuEventSynchronize, 2000),
    ROW(cuEventElapsedTime, 12080),
    ROW(cuGraphCreate, 10000),
    ROW(cuGraphDestroy, 10000),
    ROW(cuGraphClone, 10000),
    ROW(cuGraphNodeFindInClone, 10000),
    ROW(cuGraphGetNodes, 10000),
    ROW(cuGraphGetRootNodes, 10000),
    ROW(cuGraphGetEdges, 12030),
    ROW(cuGraphNodeGetType, 10000),
    ROW(cuGraphNodeGetDependencies, 12030),
    ROW(cuGraphNodeGetDependentNodes, 12030),
    ROW(cuGraphAddDependencies, 12030),
    ROW(cuGraphRemoveDependencies, 12030),
    ROW(cuGraphDestroyNode, 10000),
    ROW(cuGraphInstantiateWithFlags, 11040),
    ROW(cuGraphInstantiateWithParams, 12000),
    ROW(cuGraphExecDestroy, 10000),
    ROW(cuGraphExecGetFlags, 12000),
    ROW(cuGraphUpload, 11010),
    ROW(cuGraphLaunch, 10000),
    ROW(cuGraphExecKernelNodeSetParams, 12000),
    ROW(cuGraphExecMemcpyNodeSetParams, 10020),
    ROW(cuGraphExecMemsetNodeSetParams, 10020),
    ROW(cuGraphNodeSetEnabled, 11060),
    ROW(cuGraphNodeGetEnabled, 11060),
    ROW(cuGraphAddKernelNode, 12000),
    ROW(cuGraphKernelNodeGetParams, 12000),
    ROW(cuGraphKernelNodeSetParams, 12000),
    ROW(cuGraphKernelNodeGetAttribute, 11000),
    ROW(cuGraphKernelNodeSetAttribute, 11000),
    ROW(cuGraphKernelNodeCopyAttributes, 11000),
    ROW(cuGraphAddMemsetNode, 10000),
    ROW(cuGraphMemsetNodeGetParams, 10000),
    ROW(cuGraphMemsetNodeSetParams, 10000),
    ROW(cuGraphAddMemcpyNode, 10000),
    ROW(cuGraphMemcpyNodeGetParams, 10000),
    ROW(cuGraphMemcpyNodeSetParams, 10000),
    ROW(cuGraphAddHostNode, 10000),
    ROW(cuGraphHostNodeGetParams, 10000),
    ROW(cuGraphAddEmptyNode, 10000),
    ROW(cuGraphAddChildGraphNode, 10000),
    ROW(cuGraphChildGraphNodeGetGraph, 10000),
    ROW(cuGraphAddEventRecordNode, 11010),
    ROW(cuGraphEventRecordNodeGetEvent, 11010),
    ROW(cuGraphAddEventWaitNode, 11010),
    ROW(cuGraphEventWaitNodeGetEvent, 11010),
    ROW(cuGraphAddMemAllocNode, 11040),
    ROW(cuGraphMemAllocNodeGetParams, 11040),
    ROW(cuGraphAddMemFreeNode, 11040),
    ROW(cuGraphMemFreeNodeGetParams, 11040),
    ROW(cuGraphConditionalHandleCreate, 12030),
    ROW(cuGraphAddNode, 12030),
    ROW(cuLaunchKernel, 4000),
    ROW(cuLaunchKernelEx, 11060),
    ROW(cuLaunchCooperativeKernel, 9000),
    ROW(cuLaunchHostFunc, 10000),
    ROW(cuLibraryLoadData, 12000),
    ROW(cuLibraryLoadFromFile, 12000),
    ROW(cuLibraryUnload, 12000),
    ROW(cuLibraryGetKernel, 12000),
    ROW(cuLibraryGetKernelCount, 12040),
    ROW(cuLibraryEnumerateKernels, 12040),
    ROW(cuLibraryGetModule, 12000),
    ROW(cuLibraryGetGlobal, 12000),
    ROW(cuLibraryGetManaged, 12000),
    ROW(cuKernelGetFunction, 12000),
    ROW(cuKernelGetLibrary, 12050),
    ROW(cuKernelGetName, 12030),
    ROW(cuKernelGetParamInfo, 12040),
    ROW(cuKernelGetAttribute, 12000),
    ROW(cuKernelSetAttribute, 12000),
    ROW(cuKernelSetCacheConfig, 12000),
    ROW(cuMemGetAllocationGranularity, 10020),
    ROW(cuMemAddressReserve, 10020),
    ROW(cuMemAddressFree, 10020),
    ROW(cuMemCreate, 10020),
    ROW(cuMemRelease, 10020),
    ROW(cuMemMap, 10020),
    ROW(cuMemUnmap, 10020),
    ROW(cuMemSetAccess, 10020),
    ROW(cuMemGetAccess, 10020),
    ROW(cuMemExportToShareableHandle, 10020),
    ROW(cuMemImportFromShareableHandle, 10020),
    ROW(cuMemRetainAllocationHandle, 11000),
    ROW(cuMemGetAllocationPropertiesFromHandle, 10020),
    ROW(cuModuleLoadData, 2000),
    ROW(cuModuleLoadDataEx, 2010),
    ROW(cuModuleLoadFatBinary, 2000),
    ROW(cuModuleLoad, 2000),
    ROW(cuModuleUnload, 2000),
    ROW(cuModuleGetLoadingMode, 11070),
    ROW(cuModuleGetFunction, 2000),
    ROW(cuModuleGetFunctionCount, 12040),
    ROW(cuModuleEnumerateFunctions, 12040),
    ROW(cuModuleGetGlobal, 3020),
    ROW(cuFuncGetAttribute, 2020),
    ROW(cuFuncSetAttribute, 9000),
    ROW(cuFuncSetCacheConfig, 3000),
    ROW(cuFuncGetModule, 11000),
    ROW(cuFuncGetName, 12030),
    ROW(cuFuncGetParamInfo, 12040),
    ROW(cuFuncLoad, 12040),
    ROW(cuFuncIsLoaded, 12040),
    ROW(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050),
    ROW(cuStreamCreate, 2000),
    ROW(cuStreamCreateWithPriority, 5050),
    ROW(cuStreamDestroy, 4000),
    ROW(cuStreamSynchronize, 2000),
    ROW(cuStreamQuery, 2000),
    ROW(cuStreamGetPriority, 5050),
    ROW(cuStreamGetFlags, 5050),
    ROW(cuStreamGetId, 12000),
    ROW(cuStreamGetCtx, 9020),
    ROW(cuStreamGetDevice, 12080),
    ROW(cuStreamGetAttribute, 11000),
    ROW(cuStreamSetAttribute, 11000),
    ROW(cuStreamAddCallback, 5000),
    ROW(cuStreamWaitEvent, 3020),
    ROW(cuGetProcAddress, 12000),
    {"cuCtxGetDevice", 13000, reinterpret_cast<void*>(cuCtxGetDevice_v2)},
    {"cuCtxSynchronize", 13000, reinterpret_cast<void*>(cuCtxSynchronize_v2)},
};

#undef ROW

const Row* best(const char* name, int version, bool& known) {
  const Row* found = nullptr;
  known = false;
  const auto consider = [&](const Row& row) {
    if (std::strcmp(row.name, name) != 0) return;
    known = true;
    if (row.version <= version && (found == nullptr || row.version > found->version)) found = &row;
  };
  for (const Row& row : kRows) consider(row);
  static const Row* const old_rows = [] {
    Row* rows = new Row[kOldEntryCount];
    for (std::size_t i = 0; i < kOldEntryCount; ++i) {
      rows[i] = {kOldEntries[i].name, kOldEntries[i].version, kOldEntries[i].function};
    }
    return rows;
  }();
  for (std::size_t i = 0; i < kOldEntryCount; ++i) consider(old_rows[i]);
  return found;
}

// Null: this call has no stream, or none of that version.
void* best_per_thread(const char* name, int version) {
  for (std::size_t i = 0; i < kPerThreadEntryCount; ++i) {
    const PerThreadEntry& entry = kPerThreadEntries[i];
    if (std::strcmp(entry.name, name) == 0 && entry.version <= version) return entry.function;
  }
  return nullptr;
}

}  // namespace

namespace kjudge {

bool is_entry(const std::string& call) {
  bool known = false;
  best(call.c_str(), 13000, known);
  return known;
}

}  // namespace kjudge

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  return process_call(__func__, [&] {
    require(symbol != nullptr && function != nullptr);
    require(version <= 13000);
    require((flags & ~cuuint64_t{CU_GET_PROC_ADDRESS_LEGACY_STREAM |
                                 CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM}) == 0);
    bool known = false;
    const Row* row = best(symbol, version, known);
    *function = row == nullptr ? nullptr : row->function;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
      if (void* per_thread = best_per_thread(symbol, version)) *function = per_thread;
    }
    if (status == nullptr) return;
    *status = row != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known        ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                             : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  });
}
