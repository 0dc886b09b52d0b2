// SPDX-License-Identifier: Apache-2.0
// With this, cuda.h declares every version under its own name and renames nothing.
#define __CUDA_API_VERSION_INTERNAL
#include "driver/host/api.h"

#include <cstring>
#include <iterator>

#include "driver/host/entry.h"
#include "driver/host/old_versions.h"

using namespace kjudge;

extern "C" {

CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                  cuuint64_t flags) {
  CUdriverProcAddressQueryResult status;
  const CUresult result = cuGetProcAddress_v2(symbol, function, version, flags, &status);
  if (result != CUDA_SUCCESS) return result;
  return status == CU_GET_PROC_ADDRESS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status,
                                        cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status,
                                           cuuint64_t* id, CUgraph* graph,
                                           const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies,
                                                   size_t count, unsigned flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v4(context, nullptr, flags, device);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int affinity_count,
                                unsigned flags, CUdevice device) {
  if (affinity_count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return cuCtxCreate_v4(context, nullptr, flags, device);
}

CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, out, nullptr, count);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, out, nullptr, count);
}

CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from,
                                        const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from,
                                           const CUgraphNode* to, size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(node, graph, dependencies, nullptr, count, params);
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph,
                                      const CUgraphNode* dependencies, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS_v2 longer{};
  if (params != nullptr) std::memcpy(&longer, params, sizeof(*params));
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count,
                                 params == nullptr ? nullptr : &longer);
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS_v2 longer{};
  const CUresult result =
      cuGraphKernelNodeGetParams_v2(node, params == nullptr ? nullptr : &longer);
  if (result == CUDA_SUCCESS) std::memcpy(params, &longer, sizeof(*params));
  return result;
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS_v2 longer{};
  if (params != nullptr) std::memcpy(&longer, params, sizeof(*params));
  return cuGraphKernelNodeSetParams_v2(node, params == nullptr ? nullptr : &longer);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS_v2 longer{};
  if (params != nullptr) std::memcpy(&longer, params, sizeof(*params));
  return cuGraphExecKernelNodeSetParams_v2(exec, node, params == nullptr ? nullptr : &longer);
}

}  // extern "C"

namespace kjudge {

#define OLD(name, version) \
  { #name, version, reinterpret_cast < void*>(name) }

const OldEntry kOldEntries[] = {
    OLD(cuGetProcAddress, 11030),
    OLD(cuEventElapsedTime, 2000),
    OLD(cuStreamBeginCapture, 10000),
    OLD(cuStreamGetCaptureInfo, 10010),
    {"cuStreamGetCaptureInfo", 11030, reinterpret_cast<void*>(cuStreamGetCaptureInfo_v2)},
    OLD(cuStreamUpdateCaptureDependencies, 11030),
    OLD(cuDevicePrimaryCtxRelease, 7000),
    OLD(cuDevicePrimaryCtxReset, 7000),
    OLD(cuDevicePrimaryCtxSetFlags, 7000),
    {"cuCtxCreate", 3020, reinterpret_cast<void*>(cuCtxCreate_v2)},
    {"cuCtxCreate", 11040, reinterpret_cast<void*>(cuCtxCreate_v3)},
    OLD(cuDeviceGetUuid, 9020),
    OLD(cuGraphGetEdges, 10000),
    OLD(cuGraphNodeGetDependencies, 10000),
    OLD(cuGraphNodeGetDependentNodes, 10000),
    OLD(cuGraphAddDependencies, 10000),
    OLD(cuGraphRemoveDependencies, 10000),
    OLD(cuGraphAddNode, 12020),
    OLD(cuGraphAddKernelNode, 10000),
    OLD(cuGraphKernelNodeGetParams, 10000),
    OLD(cuGraphKernelNodeSetParams, 10000),
    OLD(cuGraphExecKernelNodeSetParams, 10010),
};
const std::size_t kOldEntryCount = std::size(kOldEntries);

}  // namespace kjudge
