// SPDX-License-Identifier: Apache-2.0
// What a CUDA C++ extension may do to a stream that is being captured, and what it may not. A shared
// library with a CUDA runtime of its own, linked statically. run() gives y = 2 x + 1 by each of the
// features; fault() launches a kernel that goes wrong in a replay.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 256;

__global__ void scale(const float *x, float *y, long n, float factor) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}

__global__ void plus(const float *x, float *y, long n, float term) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] + term;
}

// Every block counts itself; after the grid's barrier all see the whole count.
__global__ void cooperative(const float *x, float *y, long n, int *counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1);
  cg::this_grid().sync();
  const float whole = *static_cast<volatile int *>(counter) == static_cast<int>(gridDim.x) ? 1.f : 0.f;
  for (long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<long>(gridDim.x) * blockDim.x)
    y[i] = 2 * x[i] + whole;
}

// Every block of a cluster counts itself in the first one's shared memory.
__global__ void clustered(const float *x, float *y, long n) {
  __shared__ int counter;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) counter = 0;
  cluster.sync();
  int *const first = cluster.map_shared_rank(&counter, 0);
  if (threadIdx.x == 0) atomicAdd(first, 1);
  cluster.sync();
  const float whole = *first == 16 ? 1.f : 0.f;
  cluster.sync();  // the first block's shared memory lives until all have read it
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + whole;
}

__global__ void first_half(const float *x, float *t, long n) {
  asm volatile("griddepcontrol.launch_dependents;");
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) t[i] = 2 * x[i];
}

__global__ void second_half(const float *t, float *y, long n) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = t[i] + 1;
}

__global__ void through_shared(const float *x, float *y, long n) {
  extern __shared__ float stage[];
  const int at = threadIdx.x * 200;  // 200 KiB apart in all
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) stage[at] = x[i];
  __syncthreads();
  if (i < n) y[i] = 2 * stage[at] + 1;
}

__device__ float changed_variable = 1;
__global__ void reads_variable(const float *x, float *y, long n) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + changed_variable;
}

// Given the end of each array, and what lies before its first element.
__global__ void from_the_end(const float *x_end, float *y_end, long n) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y_end[-1 - i] = 2 * x_end[-1 - i] + 1;
}
__global__ void from_one(const float *x_before, float *y_before, long n) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y_before[i + 1] = 2 * x_before[i + 1] + 1;
}

// On any input but the first that it saw.
__global__ void goes_wrong(const float *x, float *y, long n, float *first, int how) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i != 0) return;
  if (*first == 0) *first = x[0];
  if (x[0] == *first) return;
  if (how == 0) *const_cast<volatile float *>(y + (1L << 38)) = 1;  // unmapped
  if (how == 1) for (volatile int forever = 1; forever;) {}
  if (how == 2) asm volatile("trap;");
}

int blocks(long n) { return static_cast<int>((n + kThreads - 1) / kThreads); }

cudaStream_t sides[2];
cudaEvent_t forked, joined[2];

}  // namespace

enum { kCooperative, kClusters, kProgrammatic, kPriorities, kSharedMemory, kCopies, kAttributes };

extern "C" int prepare() {
  int low = 0, high = 0;
  cudaDeviceGetStreamPriorityRange(&low, &high);
  cudaStreamCreateWithPriority(&sides[0], cudaStreamNonBlocking, low);
  cudaStreamCreateWithPriority(&sides[1], cudaStreamNonBlocking, high);
  for (cudaEvent_t *event : {&forked, &joined[0], &joined[1]})
    cudaEventCreateWithFlags(event, cudaEventDisableTiming);
  cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10);
  cudaFuncSetAttribute(through_shared, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
  cudaFuncSetAttribute(clustered, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  return cudaGetLastError();
}

// `scratch`: n floats and a counter.
extern "C" int run(int feature, const float *x, float *y, long n, float *scratch, cudaStream_t stream) {
  int *counter = reinterpret_cast<int *>(scratch + n);
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = blocks(n);
  config.blockDim = kThreads;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  switch (feature) {
    case kCooperative: {
      cudaMemsetAsync(counter, 0, sizeof *counter, stream);
      void *arguments[] = {&x, &y, &n, &counter};
      return cudaLaunchCooperativeKernel(cooperative, 132, kThreads, arguments, 0, stream);
    }
    case kClusters:
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {16, 1, 1};
      config.gridDim = (blocks(n) + 15) / 16 * 16;
      return cudaLaunchKernelEx(&config, clustered, x, y, n);
    case kProgrammatic:
      first_half<<<blocks(n), kThreads, 0, stream>>>(x, scratch, n);
      attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attribute.val.programmaticStreamSerializationAllowed = 1;
      return cudaLaunchKernelEx(&config, second_half, static_cast<const float *>(scratch), y, n);
    case kPriorities: {
      const long half = n / 2;
      cudaEventRecord(forked, stream);
      for (int side = 0; side < 2; ++side) {
        cudaStreamWaitEvent(sides[side], forked);
        const long begin = side * half, count = side == 0 ? half : n - half;
        scale<<<blocks(count), kThreads, 0, sides[side]>>>(x + begin, scratch + begin, count, 2);
        cudaEventRecord(joined[side], sides[side]);
        cudaStreamWaitEvent(stream, joined[side]);
      }
      plus<<<blocks(n), kThreads, 0, stream>>>(scratch, y, n, 1);
      return cudaGetLastError();
    }
    case kSharedMemory:
      through_shared<<<blocks(n), kThreads, 200 << 10, stream>>>(x, y, n);
      return cudaGetLastError();
    case kCopies: {
      const long width = 4 * 128, rows = n / 128;  // n is a multiple of 128
      cudaMemset2DAsync(scratch, width, 0, width / 2, rows, stream);
      cudaMemcpy2DAsync(scratch, width, x, width, width, rows, cudaMemcpyDeviceToDevice, stream);
      scale<<<blocks(n), kThreads, 0, stream>>>(scratch, y, n, 2);
      cudaMemcpyAsync(scratch, y, 4 * n, cudaMemcpyDeviceToDevice, stream);
      plus<<<blocks(n), kThreads, 0, stream>>>(scratch, y, n, 1);
      return cudaGetLastError();
    }
    case kAttributes: {
      cudaLaunchAttribute attributes[5]{};
      attributes[0].id = cudaLaunchAttributeClusterDimension;
      attributes[0].val.clusterDim = {2, 1, 1};
      attributes[1].id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
      attributes[1].val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicyLoadBalancing;
      attributes[2].id = cudaLaunchAttributeMemSyncDomainMap;
      attributes[2].val.memSyncDomainMap = {1, 2};
      attributes[3].id = cudaLaunchAttributeMemSyncDomain;
      attributes[3].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
      attributes[4].id = cudaLaunchAttributePreferredSharedMemoryCarveout;
      attributes[4].val.sharedMemCarveout = 50;
      config.attrs = attributes;
      config.numAttrs = 5;
      config.gridDim = (blocks(n) + 1) / 2 * 2;
      const cudaError_t result = cudaLaunchKernelEx(&config, scale, x, scratch, n, 2.f);
      if (result != cudaSuccess) return result;
      plus<<<blocks(n), kThreads, 0, stream>>>(scratch, y, n, 1);
      return cudaGetLastError();
    }
    default:
      return cudaErrorInvalidValue;
  }
}

extern "C" int fault(int how, const float *x, float *y, long n, float *first, cudaStream_t stream) {
  goes_wrong<<<blocks(n), kThreads, 0, stream>>>(x, y, n, first, how);
  return cudaGetLastError();
}

extern "C" int one_off(const float *x, float *y, long n, cudaStream_t stream) {
  const long half = n / 2;
  from_one<<<blocks(half), kThreads, 0, stream>>>(x - 1, y - 1, half);
  from_the_end<<<blocks(n - half), kThreads, 0, stream>>>(x + n, y + n, n - half);
  return cudaGetLastError();
}

// As libraries do it: before each launch as much as that one needs.
extern "C" int shrinking_shared(const float *x, float *y, long n, cudaStream_t stream) {
  const long half = n / 2;
  cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10);
  through_shared<<<blocks(half), kThreads, 200 << 10, stream>>>(x, y, half);
  cudaFuncSetAttribute(through_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);
  through_shared<<<blocks(2 * (n - half)), kThreads / 2, 100 << 10, stream>>>(x + half, y + half,
                                                                              n - half);
  return cudaGetLastError();
}

// What kjudge refuses.
extern "C" int far_pointer(const float *x, float *y, cudaStream_t stream) {
  plus<<<1, kThreads, 0, stream>>>(x, y + (1L << 32), 0, 1);  // 16 GiB on, and not followed
  return cudaGetLastError();
}
extern "C" int change_variable() {
  const float value = 3;
  return cudaMemcpyToSymbol(changed_variable, &value, sizeof value);
}
extern "C" int read_variable(const float *x, float *y, long n, cudaStream_t stream) {
  reads_variable<<<blocks(n), kThreads, 0, stream>>>(x, y, n);
  return cudaGetLastError();
}
extern "C" int plus_one(const float *x, float *y, long n, cudaStream_t stream) {
  plus<<<blocks(n), kThreads, 0, stream>>>(x, y, n, 1);
  return cudaGetLastError();
}
extern "C" int host_function(cudaStream_t stream) {
  return cudaLaunchHostFunc(stream, [](void *) {}, nullptr);
}
extern "C" void *variable_address() {
  void *address = nullptr;
  cudaGetSymbolAddress(&address, changed_variable);
  return address;
}
extern "C" int external_event(cudaStream_t stream) {
  return cudaEventRecordWithFlags(forked, stream, cudaEventRecordExternal);
}
extern "C" int persisting_window(const float *x, float *y, long n, cudaStream_t stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeAccessPolicyWindow;
  attribute.val.accessPolicyWindow.base_ptr = y;
  attribute.val.accessPolicyWindow.num_bytes = 4096;
  attribute.val.accessPolicyWindow.hitRatio = 1;
  attribute.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  attribute.val.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks(n);
  config.blockDim = kThreads;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, plus, x, y, n, 1.f);
}
extern "C" void *managed(long n) {
  void *address = nullptr;
  cudaMallocManaged(&address, 4 * n);
  return address;
}
// Adds a node to the graph that is being captured on `stream`, after all that is there.
namespace {
template <class Add>
int add_captured(cudaStream_t stream, Add add) {
  cudaStreamCaptureStatus status;
  unsigned long long id;
  cudaGraph_t graph;
  const cudaGraphNode_t *before;
  const cudaGraphEdgeData *edges;
  size_t count = 0;
  cudaError_t result =
      cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &before, &edges, &count);
  if (result != cudaSuccess || status != cudaStreamCaptureStatusActive) return result;
  cudaGraphNode_t node;
  result = add(&node, graph, before, count);
  if (result != cudaSuccess) return result;
  return cudaStreamUpdateCaptureDependencies(stream, &node, nullptr, 1,
                                             cudaStreamSetCaptureDependencies);
}
}  // namespace

extern "C" int memory_node(cudaStream_t stream) {
  return add_captured(stream, [](cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *before, size_t count) {
    cudaMemAllocNodeParams params{};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = 1024;
    return cudaGraphAddMemAllocNode(node, graph, before, count, &params);
  });
}
extern "C" int conditional_node(cudaStream_t stream) {
  return add_captured(stream, [](cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *before, size_t count) {
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault);
    cudaGraphNodeParams params{};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
    return cudaGraphAddNode(node, graph, before, nullptr, count, &params);
  });
}
extern "C" int child_graph(float *y, long n, cudaStream_t stream) {
  return add_captured(stream, [&](cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *before, size_t count) {
    cudaGraph_t child;
    cudaGraphNode_t inner;
    cudaMemsetParams zero{};
    zero.dst = y;
    zero.elementSize = 4;
    zero.width = n;
    zero.height = 1;
    cudaGraphCreate(&child, 0);
    cudaGraphAddMemsetNode(&inner, child, nullptr, 0, &zero);
    return cudaGraphAddChildGraphNode(node, graph, before, count, child);
  });
}
extern "C" int device_updatable(const float *x, float *y, long n, cudaStream_t stream) {
  return add_captured(stream, [&](cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *before, size_t count) {
    float term = 1;
    void *arguments[] = {&x, &y, &n, &term};
    cudaKernelNodeParams params{};
    params.func = reinterpret_cast<void *>(plus);
    params.gridDim = blocks(n);
    params.blockDim = kThreads;
    params.kernelParams = arguments;
    cudaError_t result = cudaGraphAddKernelNode(node, graph, before, count, &params);
    if (result != cudaSuccess) return result;
    cudaLaunchAttributeValue updatable{};
    updatable.deviceUpdatableKernelNode.deviceUpdatable = 1;
    return cudaGraphKernelNodeSetAttribute(*node, cudaLaunchAttributeDeviceUpdatableKernelNode,
                                           &updatable);
  });
}
