// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <utility>

#include "record/rules.h"

namespace kjudge {

// Why a node of `type` cannot be replayed.
inline std::pair<Rule, const char*> refused_kind(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_HOST:
      return {Rule::host_node, "a host function"};
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return {Rule::child_graph, "a child graph"};
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return {Rule::event_node, "a wait for an event from outside"};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return {Rule::event_node, "a record of an event for others"};
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return {Rule::semaphore_node, "an external semaphore"};
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return {Rule::memory_node, "an allocation or free inside the graph"};
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return {Rule::batch_memory_node, "a stream memory operation"};
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return {Rule::conditional_node, "a conditional node"};
    default:
      return {Rule::unknown_node, "of a kind that kjudge does not know"};
  }
}

// Of either end of a copy.
inline void require_linear(CUmemorytype type) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    throw Refused(Rule::array_copy, "copies to or from a CUDA array");
  }
}

}  // namespace kjudge
