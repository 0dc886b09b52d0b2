// SPDX-License-Identifier: Apache-2.0
// Graphs as a whole: nodes, edges, copies.
#include <algorithm>

#include "driver/host/context.h"
#include "driver/host/graph.h"

using namespace kjudge;

namespace {

// The API's way to give out a list: without `out` its length, with it as many as fit, nulls after
// them, and how many there are.
void give(const std::vector<CUgraphNode>& list, CUgraphNode* out, size_t* count) {
  require(count != nullptr);
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < list.size() ? list[i] : nullptr;
    *count = std::min(*count, list.size());
  } else {
    *count = list.size();
  }
}

// Neighbors with their edge data, which may only be left out where there is nothing in it.
void give(const std::vector<GraphEdge>& list, CUgraphNode* out, CUgraphEdgeData* data,
          size_t* count) {
  require(count != nullptr && (data == nullptr || out != nullptr));
  if (out != nullptr) {
    const size_t room = *count;
    for (size_t i = 0; i < room; ++i) {
      const GraphEdge edge = i < list.size() ? list[i] : GraphEdge{};
      require(data != nullptr || is_default(edge.data), CUDA_ERROR_LOSSY_QUERY);
      out[i] = edge.node;
      if (data != nullptr) data[i] = edge.data;
    }
    *count = std::min(room, list.size());
  } else {
    *count = list.size();
  }
}

}  // namespace

CUresult CUDAAPI cuGraphCreate(CUgraph* graph, unsigned flags) {
  return device_call(__func__, [&] {
    require(graph != nullptr && flags == 0);
    *graph = handles<CUgraph_st>().add(std::make_shared<CUgraph_st>());
  });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph handle) {
  return device_call(__func__, [&] {
    require(!graph_of(handle)->embedded);
    handles<CUgraph_st>().remove(handle);
  });
}

CUresult CUDAAPI cuGraphClone(CUgraph* copy, CUgraph original) {
  return device_call(__func__, [&] {
    require(copy != nullptr);
    *copy = handles<CUgraph_st>().add(graph_of(original)->clone());
  });
}

CUresult CUDAAPI cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original, CUgraph clone) {
  return device_call(__func__, [&] {
    require(found != nullptr);
    for (const auto& node : graph_of(clone)->nodes) {
      if (node->cloned_from == original) {
        *found = node.get();
        return;
      }
    }
    fail(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult CUDAAPI cuGraphGetNodes(CUgraph handle, CUgraphNode* out, size_t* count) {
  return device_call(__func__, [&] {
    std::vector<CUgraphNode> list;
    for (const auto& node : graph_of(handle)->nodes) list.push_back(node.get());
    give(list, out, count);
  });
}

CUresult CUDAAPI cuGraphGetRootNodes(CUgraph handle, CUgraphNode* out, size_t* count) {
  return device_call(__func__, [&] {
    std::vector<CUgraphNode> list;
    for (const auto& node : graph_of(handle)->nodes) {
      if (node->dependencies.empty()) list.push_back(node.get());
    }
    give(list, out, count);
  });
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                                 CUgraphEdgeData* data, size_t* count) {
  return device_call(__func__, [&] {
    const auto graph = graph_of(handle);
    require(count != nullptr && (from == nullptr) == (to == nullptr));
    require(data == nullptr || from != nullptr);
    if (from == nullptr) {
      *count = graph->edges.size();
      return;
    }
    const size_t room = *count;
    size_t n = 0;
    for (const auto& node : graph->nodes) {
      for (const GraphEdge& edge : node->dependencies) {
        if (n == room) break;
        require(data != nullptr || is_default(edge.data), CUDA_ERROR_LOSSY_QUERY);
        from[n] = edge.node;
        to[n] = node.get();
        if (data != nullptr) data[n] = edge.data;
        ++n;
      }
    }
    for (size_t i = n; i < room; ++i) {
      from[i] = to[i] = nullptr;
      if (data != nullptr) data[i] = {};
    }
    *count = n;
  });
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return device_call(__func__, [&] {
    require(type != nullptr);
    *type = type_of(node_of(node).work);
  });
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out,
                                            CUgraphEdgeData* data, size_t* count) {
  return device_call(__func__, [&] { give(node_of(node).dependencies, out, data, count); });
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out,
                                              CUgraphEdgeData* data, size_t* count) {
  return device_call(__func__, [&] { give(node_of(node).dependents, out, data, count); });
}

// All edges or none.
CUresult CUDAAPI cuGraphAddDependencies(CUgraph handle, const CUgraphNode* from,
                                        const CUgraphNode* to, const CUgraphEdgeData* data,
                                        size_t count) {
  return device_call(__func__, [&] {
    const auto graph = graph_of(handle);
    require(count == 0 || (from != nullptr && to != nullptr));
    size_t done = 0;
    try {
      for (; done < count; ++done) {
        graph->connect(from[done], to[done], data == nullptr ? CUgraphEdgeData{} : data[done]);
      }
    } catch (...) {
      while (done-- > 0) {
        graph->disconnect(from[done], to[done], data == nullptr ? CUgraphEdgeData{} : data[done]);
      }
      throw;
    }
  });
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode* from,
                                           const CUgraphNode* to, const CUgraphEdgeData* data,
                                           size_t count) {
  return device_call(__func__, [&] {
    const auto graph = graph_of(handle);
    require(count == 0 || (from != nullptr && to != nullptr));
    for (size_t i = 0; i < count; ++i) {
      graph->disconnect(from[i], to[i], data == nullptr ? CUgraphEdgeData{} : data[i]);
    }
  });
}

CUresult CUDAAPI cuGraphDestroyNode(CUgraphNode handle) {
  return device_call(__func__, [&] {
    CUgraphNode_st& node = node_of(handle);
    require(!std::holds_alternative<AllocWork>(node.work) &&
                !std::holds_alternative<FreeWork>(node.work),
            CUDA_ERROR_NOT_SUPPORTED);
    node.graph->remove(&node);
  });
}
