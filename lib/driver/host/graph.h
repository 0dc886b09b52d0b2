// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <vector>

#include "driver/host/stream.h"
#include "driver/host/work.h"

namespace kjudge {

struct GraphEdge {
  CUgraphNode node = nullptr;
  CUgraphEdgeData data{};
};

struct GraphEdgeHash {
  std::size_t operator()(const std::pair<CUgraphNode, CUgraphNode>& edge) const {
    const auto from = reinterpret_cast<std::uintptr_t>(edge.first) / 64;
    const auto to = reinterpret_cast<std::uintptr_t>(edge.second) / 64;
    return from * 0x9e3779b97f4a7c15 ^ (to + (from << 20));
  }
};

inline bool is_default(const CUgraphEdgeData& data) {
  return data.from_port == 0 && data.to_port == 0 && data.type == 0;
}

}  // namespace kjudge

struct CUgraphNode_st {
  CUgraphNode_st() = default;
  ~CUgraphNode_st();  // takes the handles of graphs inside it back
  CUgraphNode_st(const CUgraphNode_st&) = delete;

  CUgraph graph = nullptr;
  std::size_t index = 0;  // in graph->nodes
  kjudge::Work work;
  CUcontext context = nullptr;  // that the work belongs to, where it was given
  std::vector<kjudge::GraphEdge> dependencies, dependents;
  CUgraphNode cloned_from = nullptr;

  // What GetParams hands out pointers to.
  std::vector<void*> parameter_pointers;
  std::vector<void*> buffer_options;
  std::size_t buffer_size = 0;
};

// Not thread-safe, as the API says of graphs.
struct CUgraph_st : std::enable_shared_from_this<CUgraph_st> {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;  // in order of creation
  std::unordered_set<std::pair<CUgraphNode, CUgraphNode>, kjudge::GraphEdgeHash> edges;
  std::vector<CUgraphConditionalHandle> conditionals;
  bool embedded = false;  // a child or body graph: belongs to its node

  ~CUgraph_st();

  // INVALID_VALUE for foreign nodes, doubled edges, ports and types that the nodes do not have.
  CUgraphNode add(kjudge::Work work, CUcontext context, std::span<const CUgraphNode> dependencies,
                  const CUgraphEdgeData* edge_data = nullptr);
  void connect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data);
  void disconnect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data);
  void remove(CUgraphNode node);
  bool owns(CUgraphNode node) const;
  // Every node after what it depends on, in order of creation where there is a choice;
  // INVALID_VALUE when there is a cycle.
  std::vector<CUgraphNode> in_order() const;
  std::shared_ptr<CUgraph_st> clone() const;
};

// An instantiated graph: its work in order, child graphs unfolded. Independent of the graph.
struct CUgraphExec_st {
  struct Step {
    kjudge::Work work;
    CUgraphNode node = nullptr;  // of the graph it was made from; only a key
    bool enabled = true;
  };
  std::vector<Step> steps;
  unsigned long long flags = 0;
  kjudge::Ticket last_launch;  // guarded by queue_mutex(): launches of one exec follow each other
  std::vector<CUdeviceptr> open_allocations;  // made by the last launch and not freed by it
};

// The graph behind a handle; INVALID_VALUE when there is none.
inline std::shared_ptr<CUgraph_st> graph_of(CUgraph handle) {
  return kjudge::handles<CUgraph_st>().get(handle, CUDA_ERROR_INVALID_VALUE);
}

namespace kjudge {

// Launch attributes of the CUDA version this was written for.
inline bool is_launch_attribute(CUlaunchAttributeID id) {
  return id > CU_LAUNCH_ATTRIBUTE_IGNORE &&
         id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING;
}

CUgraphNodeType type_of(const Work& work);
// The node, if it belongs to a live graph. Nodes of destroyed graphs are errors, not crashes.
CUgraphNode_st& node_of(CUgraphNode handle);
std::shared_ptr<CUgraphExec_st> instantiate(const CUgraph_st& graph, unsigned long long flags,
                                            CUgraphNode* error_node,
                                            CUgraphInstantiateResult* reason);

// Checks of work that a call or a node brings; INVALID_VALUE and its kin.
MemsetWork checked_memset(const CUDA_MEMSET_NODE_PARAMS& params);
CopyWork checked_copy(const CUDA_MEMCPY3D& params);
// A straight copy of `bytes`; types as in CUDA_MEMCPY3D.
CopyWork checked_copy(CUdeviceptr to, CUmemorytype to_type, CUdeviceptr from,
                      CUmemorytype from_type, std::size_t bytes);
// Reserves the address of a graph's allocation.
AllocWork allocation_node(CUctx_st& context, std::size_t bytes);
struct LaunchDescription {
  CUfunction function = nullptr;
  CUkernel kernel = nullptr;
  unsigned grid[3]{}, block[3]{};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  std::span<const CUlaunchAttribute> attributes;
};
KernelWork checked_launch(CUctx_st& context, const LaunchDescription& launch);

}  // namespace kjudge
