// SPDX-License-Identifier: Apache-2.0
// Graphs made executable, and launched.
#include <algorithm>

#include "driver/host/capture.h"
#include "driver/host/context.h"
#include "driver/host/graph.h"
#include "driver/host/guard.h"
#include "driver/host/memory.h"

using namespace kjudge;

namespace kjudge {
namespace {

constexpr unsigned long long kKnownFlags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                           CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                           CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

void unfold(const CUgraph_st& graph, std::vector<CUgraphExec_st::Step>& steps,
            CUgraphNode* error_node, CUgraphInstantiateResult* reason) {
  std::vector<CUgraphNode> order;
  try {
    order = graph.in_order();
  } catch (const Failure&) {
    *reason = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
    throw;
  }
  for (const CUgraphNode node : order) {
    if (const auto* child = std::get_if<ChildGraphWork>(&node->work); child != nullptr) {
      unfold(*child->graph, steps, error_node, reason);
      continue;
    }
    if (std::holds_alternative<ConditionalWork>(node->work)) {
      *error_node = node;
      *reason = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
      fail(CUDA_ERROR_NOT_SUPPORTED);
    }
    steps.push_back({node->work, node});
  }
}

}  // namespace

std::shared_ptr<CUgraphExec_st> instantiate(const CUgraph_st& graph, unsigned long long flags,
                                            CUgraphNode* error_node,
                                            CUgraphInstantiateResult* reason) {
  auto exec = std::make_shared<CUgraphExec_st>();
  exec->flags = flags;
  unfold(graph, exec->steps, error_node, reason);
  for (const CUgraphExec_st::Step& step : exec->steps) {
    if (const auto* alloc = std::get_if<AllocWork>(&step.work); alloc != nullptr) {
      exec->open_allocations.push_back(alloc->params.dptr);
    } else if (const auto* free = std::get_if<FreeWork>(&step.work); free != nullptr) {
      std::erase(exec->open_allocations, free->address);
    }
  }
  return exec;
}

}  // namespace kjudge

namespace {

void check_flags(unsigned long long flags) {
  require((flags & ~(kKnownFlags | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)) == 0);
  require((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) == 0, CUDA_ERROR_NOT_SUPPORTED);
}

CUgraphExec_st::Step& step_of(CUgraphExec_st& exec, CUgraphNode node) {
  const auto found = std::find_if(exec.steps.begin(), exec.steps.end(),
                                  [&](const auto& step) { return step.node == node; });
  require(node != nullptr && found != exec.steps.end());
  return *found;
}

// Steps are read by the streams' threads: they change only when no launch is on its way.
void wait_for_launches(CUgraphExec_st& exec) {
  Ticket last;
  {
    const std::lock_guard lock(queue_mutex());
    last = exec.last_launch;
  }
  last.wait();
}

}  // namespace

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                             unsigned long long flags) {
  return context_call(__func__, [&] {
    require(exec != nullptr);
    check_flags(flags);
    CUgraphNode error_node = nullptr;
    CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *exec =
        handles<CUgraphExec_st>().add(instantiate(*graph_of(graph), flags, &error_node, &reason));
  });
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                              CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return context_call(__func__, [&] {
    require(exec != nullptr && params != nullptr);
    params->hErrNode_out = nullptr;
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    check_flags(params->flags);
    CUgraphInstantiateResult reason = CUDA_GRAPH_INSTANTIATE_ERROR;
    try {
      *exec = handles<CUgraphExec_st>().add(
          instantiate(*graph_of(graph), params->flags, &params->hErrNode_out, &reason));
    } catch (const Failure&) {
      params->result_out = reason;
      throw;
    }
    params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
  return device_call(__func__, [&] { handles<CUgraphExec_st>().remove(exec); });
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  return device_call(__func__, [&] {
    require(flags != nullptr);
    *flags = handles<CUgraphExec_st>().get(exec)->flags;
  });
}

CUresult CUDAAPI cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return context_call(__func__, [&](CUctx_st& context) {
    handles<CUgraphExec_st>().get(exec);
    submit(stream_of(context, stream), EmptyWork{});
  });
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    const auto exec = handles<CUgraphExec_st>().get(handle);
    const auto stream = stream_of(context, stream_handle);
    check_fault_handlers();
    const std::lock_guard lock(queue_mutex());
    refuse_implicit_use(*stream);
    if (stream->capture != nullptr) {
      auto child = std::make_shared<CUgraph_st>();
      CUgraphNode last = nullptr;
      for (const CUgraphExec_st::Step& step : exec->steps) {
        const std::span<const CUgraphNode> before(&last, last == nullptr ? 0 : 1);
        last = child->add(step.enabled ? step.work : Work{EmptyWork{}}, &context, before);
      }
      child->embedded = true;
      handles<CUgraph_st>().add(child);
      add_captured(*stream, ChildGraphWork{child});
      return;
    }
    // Memory of the launch before that nobody freed.
    const bool auto_free = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    std::vector<Ticket> after{exec->last_launch};
    if (exec->last_launch.stream != nullptr) {
      for (const CUdeviceptr address : exec->open_allocations) {
        if (!exec->last_launch.done() || Memory::get().find(address).has_value()) {
          require(auto_free);
          enqueue(*stream, FreeWork{address, true}, after);
        }
      }
    }
    exec->last_launch = enqueue(*stream, GraphWork{exec}, std::move(after));
  });
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS* params) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(params != nullptr);
    const auto exec = handles<CUgraphExec_st>().get(handle);
    auto* work = std::get_if<KernelWork>(&step_of(*exec, node).work);
    require(work != nullptr);
    const CUDA_KERNEL_NODE_PARAMS& p = *params;
    KernelWork changed = checked_launch(context, {p.func,
                                                  p.func == nullptr ? p.kern : nullptr,
                                                  {p.gridDimX, p.gridDimY, p.gridDimZ},
                                                  {p.blockDimX, p.blockDimY, p.blockDimZ},
                                                  p.sharedMemBytes,
                                                  p.kernelParams,
                                                  p.extra,
                                                  {}});
    changed.attributes = work->attributes;
    wait_for_launches(*exec);
    *work = std::move(changed);
  });
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec handle, CUgraphNode node,
                                                const CUDA_MEMCPY3D* params, CUcontext) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    const auto exec = handles<CUgraphExec_st>().get(handle);
    auto* work = std::get_if<CopyWork>(&step_of(*exec, node).work);
    require(work != nullptr);
    CopyWork changed = checked_copy(*params);
    wait_for_launches(*exec);
    *work = std::move(changed);
  });
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec handle, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return context_call(__func__, [&] {
    require(params != nullptr);
    const auto exec = handles<CUgraphExec_st>().get(handle);
    auto* work = std::get_if<MemsetWork>(&step_of(*exec, node).work);
    require(work != nullptr);
    MemsetWork changed = checked_memset(*params);
    wait_for_launches(*exec);
    *work = std::move(changed);
  });
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode node, unsigned enabled) {
  return context_call(__func__, [&] {
    const auto exec = handles<CUgraphExec_st>().get(handle);
    CUgraphExec_st::Step& step = step_of(*exec, node);
    require(std::holds_alternative<KernelWork>(step.work) ||
            std::holds_alternative<MemsetWork>(step.work) ||
            std::holds_alternative<CopyWork>(step.work));
    wait_for_launches(*exec);
    step.enabled = enabled != 0;
  });
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode node, unsigned* enabled) {
  return context_call(__func__, [&] {
    require(enabled != nullptr);
    *enabled = step_of(*handles<CUgraphExec_st>().get(handle), node).enabled ? 1 : 0;
  });
}
