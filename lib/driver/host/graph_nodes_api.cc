// SPDX-License-Identifier: Apache-2.0
// Nodes of each kind: made, read, changed.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "driver/host/context.h"
#include "driver/host/graph.h"
#include "driver/host/module.h"

using namespace kjudge;

namespace {

std::shared_ptr<CUctx_st> context_or_current(CUcontext handle) {
  if (handle == nullptr) return usable_context();
  auto context = handles<CUctx_st>().get(handle, CUDA_ERROR_INVALID_CONTEXT);
  context->check();
  return context;
}

// What all Add calls share: where the node goes.
struct Place {
  CUgraphNode* node;
  CUgraph graph;
  const CUgraphNode* dependencies;
  size_t count;
  const CUgraphEdgeData* edge_data = nullptr;
};

void add(const Place& place, CUcontext context, Work work) {
  require(place.node != nullptr && (place.count == 0 || place.dependencies != nullptr));
  *place.node =
      graph_of(place.graph)
          ->add(std::move(work), context, {place.dependencies, place.count}, place.edge_data);
}

template <class Kind>
Kind& work_of(CUgraphNode handle) {
  Kind* work = std::get_if<Kind>(&node_of(handle).work);
  require(work != nullptr);
  return *work;
}

// What NVIDIA's driver reads of an attribute that nobody set (H200): all zeros, with one exception.
CUkernelNodeAttrValue unset_attribute(CUkernelNodeAttrID which) {
  CUkernelNodeAttrValue value{};
  if (which == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) {
    value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  }
  return value;
}

LaunchDescription description(const CUDA_KERNEL_NODE_PARAMS& p) {
  return {p.func,
          p.func == nullptr ? p.kern : nullptr,
          {p.gridDimX, p.gridDimY, p.gridDimZ},
          {p.blockDimX, p.blockDimY, p.blockDimZ},
          p.sharedMemBytes,
          p.kernelParams,
          p.extra,
          {}};
}

void add_kernel(const Place& place, const CUDA_KERNEL_NODE_PARAMS& params) {
  const auto context = context_or_current(params.ctx);
  add(place, context.get(), checked_launch(*context, description(params)));
}

// Pointers in the answer belong to the node.
void kernel_params(CUgraphNode_st& node, CUDA_KERNEL_NODE_PARAMS& p) {
  KernelWork* work = std::get_if<KernelWork>(&node.work);
  require(work != nullptr);
  p = {};
  p.func = work->function.get();
  p.kern = work->kernel;
  p.ctx = node.context;
  p.gridDimX = work->grid[0];
  p.gridDimY = work->grid[1];
  p.gridDimZ = work->grid[2];
  p.blockDimX = work->block[0];
  p.blockDimY = work->block[1];
  p.blockDimZ = work->block[2];
  p.sharedMemBytes = work->shared_bytes;
  if (work->as_buffer) {
    node.buffer_size = work->arguments.size();
    node.buffer_options = {CU_LAUNCH_PARAM_BUFFER_POINTER, work->arguments.data(),
                           CU_LAUNCH_PARAM_BUFFER_SIZE, &node.buffer_size, CU_LAUNCH_PARAM_END};
    p.extra = node.buffer_options.data();
  } else {
    node.parameter_pointers.clear();
    for (const Parameter& parameter : work->function->parameters) {
      node.parameter_pointers.push_back(work->arguments.data() + parameter.offset);
    }
    p.kernelParams = node.parameter_pointers.data();
  }
}

void add_memset(const Place& place, const CUDA_MEMSET_NODE_PARAMS& params, CUcontext handle) {
  const auto context = context_or_current(handle);
  add(place, context.get(), checked_memset(params));
}

void add_copy(const Place& place, const CUDA_MEMCPY3D& params, CUcontext handle) {
  const auto context = context_or_current(handle);
  add(place, context.get(), checked_copy(params));
}

void add_child(const Place& place, CUgraph child) {
  auto copy = graph_of(child)->clone();
  require(graph_of(place.graph) != nullptr);
  copy->embedded = true;
  ChildGraphWork work{copy};
  add(place, nullptr, std::move(work));
  handles<CUgraph_st>().add(copy);
}

void add_alloc(const Place& place, CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  require(params.poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
          params.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  require(params.poolProps.handleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_NOT_SUPPORTED);
  check_device(params.poolProps.location.id);
  const auto context = usable_context();
  AllocWork work = allocation_node(*context, params.bytesize);
  params.dptr = work.params.dptr;
  add(place, context.get(), std::move(work));
}

void add_conditional(const Place& place, CUDA_CONDITIONAL_NODE_PARAMS& params) {
  const auto graph = graph_of(place.graph);
  const auto context = context_or_current(params.ctx);
  require(std::find(graph->conditionals.begin(), graph->conditionals.end(), params.handle) !=
          graph->conditionals.end());
  const bool is_if = params.type == CU_GRAPH_COND_TYPE_IF;
  require(is_if || params.type == CU_GRAPH_COND_TYPE_WHILE ||
          params.type == CU_GRAPH_COND_TYPE_SWITCH);
  require(params.size > 0 && params.size <= 1024);
  require(!is_if || params.size <= 2);
  require(params.type != CU_GRAPH_COND_TYPE_WHILE || params.size == 1);
  ConditionalWork work;
  work.handles = std::make_shared<CUgraph[]>(params.size);
  for (unsigned i = 0; i < params.size; ++i) {
    auto body = std::make_shared<CUgraph_st>();
    body->embedded = true;
    work.handles[i] = handles<CUgraph_st>().add(body);
    work.bodies.push_back(std::move(body));
  }
  params.phGraph_out = work.handles.get();
  params.ctx = context.get();
  work.params = params;
  add(place, context.get(), std::move(work));
}

}  // namespace

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph,
                                      const CUgraphNode* dependencies, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    add_kernel({node, graph, dependencies, count}, *params);
  });
}

CUresult CUDAAPI cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    kernel_params(node_of(node), *params);
  });
}

CUresult CUDAAPI cuGraphKernelNodeSetParams(CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    KernelWork& work = work_of<KernelWork>(node);
    KernelWork changed = checked_launch(*context_or_current(params->ctx), description(*params));
    changed.attributes = std::move(work.attributes);
    work = std::move(changed);
  });
}

// Unset reads as zeros, as NVIDIA's driver has it; what was set cannot be told from it.
CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                               CUkernelNodeAttrValue* value) {
  return context_call(__func__, [&] {
    require(value != nullptr && is_launch_attribute(which));
    const KernelWork& work = work_of<KernelWork>(node);
    const auto set = work.attributes.find(which);
    *value = set == work.attributes.end() ? unset_attribute(which) : set->second;
  });
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                               const CUkernelNodeAttrValue* value) {
  return context_call(__func__, [&] {
    require(value != nullptr && is_launch_attribute(which));
    work_of<KernelWork>(node).attributes[which] = *value;
  });
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  return context_call(
      __func__, [&] { work_of<KernelWork>(to).attributes = work_of<KernelWork>(from).attributes; });
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph,
                                      const CUgraphNode* dependencies, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    add_memset({node, graph, dependencies, count}, *params, context);
  });
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    *params = work_of<MemsetWork>(node).params;
  });
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    work_of<MemsetWork>(node) = checked_memset(*params);
  });
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph,
                                      const CUgraphNode* dependencies, size_t count,
                                      const CUDA_MEMCPY3D* params, CUcontext context) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    add_copy({node, graph, dependencies, count}, *params, context);
  });
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    *params = work_of<CopyWork>(node).params;
  });
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    work_of<CopyWork>(node) = checked_copy(*params);
  });
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode* node, CUgraph graph,
                                    const CUgraphNode* dependencies, size_t count,
                                    const CUDA_HOST_NODE_PARAMS* params) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(params != nullptr && params->fn != nullptr);
    add({node, graph, dependencies, count}, &context, HostWork{params->fn, params->userData});
  });
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    const HostWork& work = work_of<HostWork>(node);
    *params = {};
    params->fn = work.function;
    params->userData = work.argument;
  });
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph,
                                     const CUgraphNode* dependencies, size_t count) {
  return context_call(__func__, [&] {
    add({node, graph, dependencies, count}, nullptr, EmptyWork{});
  });
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph,
                                          const CUgraphNode* dependencies, size_t count,
                                          CUgraph child) {
  return context_call(__func__, [&] { add_child({node, graph, dependencies, count}, child); });
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  return context_call(__func__, [&] {
    require(graph != nullptr);
    *graph = work_of<ChildGraphWork>(node).graph.get();
  });
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph,
                                           const CUgraphNode* dependencies, size_t count,
                                           CUevent event) {
  return context_call(__func__, [&](CUctx_st& context) {
    add({node, graph, dependencies, count}, &context,
        EventRecordWork{handles<CUevent_st>().get(event), nullptr});
  });
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return context_call(__func__, [&] {
    require(event != nullptr);
    *event = work_of<EventRecordWork>(node).event.get();
  });
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph,
                                         const CUgraphNode* dependencies, size_t count,
                                         CUevent event) {
  return context_call(__func__, [&](CUctx_st& context) {
    add({node, graph, dependencies, count}, &context,
        EventWaitWork{handles<CUevent_st>().get(event)});
  });
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return context_call(__func__, [&] {
    require(event != nullptr);
    *event = work_of<EventWaitWork>(node).event.get();
  });
}

CUresult CUDAAPI cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph,
                                        const CUgraphNode* dependencies, size_t count,
                                        CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    add_alloc({node, graph, dependencies, count}, *params);
  });
}

CUresult CUDAAPI cuGraphMemAllocNodeGetParams(CUgraphNode node,
                                              CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    *params = work_of<AllocWork>(node).params;
  });
}

CUresult CUDAAPI cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph,
                                       const CUgraphNode* dependencies, size_t count,
                                       CUdeviceptr address) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(address != 0);
    add({node, graph, dependencies, count}, &context, FreeWork{address, false});
  });
}

CUresult CUDAAPI cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address) {
  return context_call(__func__, [&] {
    require(address != nullptr);
    *address = work_of<FreeWork>(node).address;
  });
}

CUresult CUDAAPI cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph,
                                                CUcontext context, unsigned, unsigned flags) {
  return context_call(__func__, [&] {
    require(handle != nullptr && flags <= CU_GRAPH_COND_ASSIGN_DEFAULT);
    context_or_current(context);
    static std::atomic<CUgraphConditionalHandle> next{1};
    *handle = next.fetch_add(1);
    graph_of(graph)->conditionals.push_back(*handle);
  });
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                const CUgraphEdgeData* edge_data, size_t count,
                                CUgraphNodeParams* params) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(params != nullptr && params->reserved2 == 0);
    for (const int reserved : params->reserved0) require(reserved == 0);
    const Place place{node, graph, dependencies, count, edge_data};
    switch (params->type) {
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        const CUDA_KERNEL_NODE_PARAMS_v3& p = params->kernel;
        CUDA_KERNEL_NODE_PARAMS kernel{};
        static_assert(sizeof(kernel) == sizeof(p));
        std::memcpy(&kernel, &p, sizeof(p));
        add_kernel(place, kernel);
        return;
      }
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        require(params->memcpy.flags == 0);
        add_copy(place, params->memcpy.copyParams, params->memcpy.copyCtx);
        return;
      case CU_GRAPH_NODE_TYPE_MEMSET: {
        const CUDA_MEMSET_NODE_PARAMS_v2& p = params->memset;
        CUDA_MEMSET_NODE_PARAMS memset{};
        memset.dst = p.dst;
        memset.pitch = p.pitch;
        memset.value = p.value;
        memset.elementSize = p.elementSize;
        memset.width = p.width;
        memset.height = p.height;
        add_memset(place, memset, p.ctx);
        return;
      }
      case CU_GRAPH_NODE_TYPE_HOST:
        require(params->host.fn != nullptr);
        add(place, &context, HostWork{params->host.fn, params->host.userData});
        return;
      case CU_GRAPH_NODE_TYPE_GRAPH:
        add_child(place, params->graph.graph);
        return;
      case CU_GRAPH_NODE_TYPE_EMPTY:
        add(place, nullptr, EmptyWork{});
        return;
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        add(place, &context, EventWaitWork{handles<CUevent_st>().get(params->eventWait.event)});
        return;
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        add(place, &context,
            EventRecordWork{handles<CUevent_st>().get(params->eventRecord.event), nullptr});
        return;
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        const CUDA_MEM_ALLOC_NODE_PARAMS_v2& p = params->alloc;
        CUDA_MEM_ALLOC_NODE_PARAMS alloc{};
        alloc.poolProps = p.poolProps;
        alloc.accessDescs = p.accessDescs;
        alloc.accessDescCount = p.accessDescCount;
        alloc.bytesize = p.bytesize;
        add_alloc(place, alloc);
        params->alloc.dptr = alloc.dptr;
        return;
      }
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        require(params->free.dptr != 0);
        add(place, &context, FreeWork{params->free.dptr, false});
        return;
      case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        add_conditional(place, params->conditional);
        return;
      default:
        fail(CUDA_ERROR_NOT_SUPPORTED);
    }
  });
}
