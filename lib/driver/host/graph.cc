// SPDX-License-Identifier: Apache-2.0
#include "driver/host/graph.h"

#include <algorithm>
#include <mutex>
#include <queue>
#include <shared_mutex>

#include "driver/host/memory.h"
#include "driver/host/module.h"

using namespace kjudge;

namespace {

// Nodes of live graphs.
struct LiveNodes {
  std::shared_mutex mutex;
  std::unordered_set<CUgraphNode> set;
};
LiveNodes& live_nodes() {
  static auto& all = *new LiveNodes;
  return all;
}

void check_edge(const CUgraphNode_st& from, const CUgraphEdgeData& data) {
  for (const unsigned char byte : data.reserved) require(byte == 0);
  require(data.to_port == 0);
  if (is_default(data)) return;
  require(std::holds_alternative<KernelWork>(from.work));
  require(data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT ||
          data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  require(data.from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
  // Programmatic is the type of the edges that leave the ports made for it, and of no other.
  require((data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) ==
          (data.from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT));
}

bool same(const CUgraphEdgeData& a, const CUgraphEdgeData& b) {
  return a.from_port == b.from_port && a.to_port == b.to_port && a.type == b.type;
}

void erase_edge(std::vector<GraphEdge>& list, CUgraphNode node) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const GraphEdge& edge) { return edge.node == node; });
  if (found != list.end()) list.erase(found);
}

}  // namespace

CUgraphNode_st::~CUgraphNode_st() {
  const auto forget = [](const std::shared_ptr<CUgraph_st>& inside) {
    if (handles<CUgraph_st>().find(inside.get()) != nullptr) {
      handles<CUgraph_st>().remove(inside.get());
    }
  };
  if (const auto* child = std::get_if<ChildGraphWork>(&work); child != nullptr) {
    forget(child->graph);
  } else if (const auto* conditional = std::get_if<ConditionalWork>(&work)) {
    for (const auto& body : conditional->bodies) forget(body);
  }
}

CUgraph_st::~CUgraph_st() {
  LiveNodes& live = live_nodes();
  const std::unique_lock lock(live.mutex);
  for (const auto& node : nodes) live.set.erase(node.get());
}

bool CUgraph_st::owns(CUgraphNode node) const {
  return node != nullptr && [&] {
    LiveNodes& live = live_nodes();
    const std::shared_lock lock(live.mutex);
    return live.set.count(node) > 0;
  }() && node->graph == this;
}

CUgraphNode CUgraph_st::add(Work work, CUcontext context, std::span<const CUgraphNode> dependencies,
                            const CUgraphEdgeData* edge_data) {
  for (const CUgraphNode node : dependencies) require(owns(node));
  auto made = std::make_unique<CUgraphNode_st>();
  const CUgraphNode node = made.get();
  node->graph = this;
  node->index = nodes.size();
  node->work = std::move(work);
  node->context = context;
  nodes.push_back(std::move(made));
  {
    LiveNodes& live = live_nodes();
    const std::unique_lock lock(live.mutex);
    live.set.insert(node);
  }
  try {
    for (std::size_t i = 0; i < dependencies.size(); ++i) {
      connect(dependencies[i], node, edge_data == nullptr ? CUgraphEdgeData{} : edge_data[i]);
    }
  } catch (...) {
    remove(node);
    throw;
  }
  return node;
}

void CUgraph_st::connect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data) {
  require(owns(from) && owns(to) && from != to);
  check_edge(*from, data);
  require(edges.emplace(from, to).second);
  from->dependents.push_back({to, data});
  to->dependencies.push_back({from, data});
}

void CUgraph_st::disconnect(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData& data) {
  require(owns(from) && owns(to) && edges.count({from, to}) > 0);
  const auto edge = std::find_if(to->dependencies.begin(), to->dependencies.end(),
                                 [&](const GraphEdge& one) { return one.node == from; });
  require(same(edge->data, data));
  edges.erase({from, to});
  to->dependencies.erase(edge);
  erase_edge(from->dependents, to);
}

void CUgraph_st::remove(CUgraphNode node) {
  for (const GraphEdge& edge : node->dependencies) {
    edges.erase({edge.node, node});
    erase_edge(edge.node->dependents, node);
  }
  for (const GraphEdge& edge : node->dependents) {
    edges.erase({node, edge.node});
    erase_edge(edge.node->dependencies, node);
  }
  {
    LiveNodes& live = live_nodes();
    const std::unique_lock lock(live.mutex);
    live.set.erase(node);
  }
  const std::size_t index = node->index;
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(index));
  for (std::size_t i = index; i < nodes.size(); ++i) nodes[i]->index = i;
}

std::vector<CUgraphNode> CUgraph_st::in_order() const {
  std::vector<std::size_t> waiting(nodes.size());
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (const auto& node : nodes) {
    waiting[node->index] = node->dependencies.size();
    if (node->dependencies.empty()) ready.push(node->index);
  }
  std::vector<CUgraphNode> order;
  order.reserve(nodes.size());
  while (!ready.empty()) {
    const CUgraphNode node = nodes[ready.top()].get();
    ready.pop();
    order.push_back(node);
    for (const GraphEdge& edge : node->dependents) {
      if (--waiting[edge.node->index] == 0) ready.push(edge.node->index);
    }
  }
  require(order.size() == nodes.size());
  return order;
}

std::shared_ptr<CUgraph_st> CUgraph_st::clone() const {
  auto copy = std::make_shared<CUgraph_st>();
  for (const auto& node : nodes) {
    Work work = node->work;
    if (auto* child = std::get_if<ChildGraphWork>(&work); child != nullptr) {
      child->graph = child->graph->clone();
      child->graph->embedded = true;
      handles<CUgraph_st>().add(child->graph);
    } else if (std::holds_alternative<AllocWork>(work) || std::holds_alternative<FreeWork>(work)) {
      fail(CUDA_ERROR_NOT_SUPPORTED);  // two graphs cannot own one address
    } else if (std::holds_alternative<ConditionalWork>(work)) {
      fail(CUDA_ERROR_NOT_SUPPORTED);
    }
    copy->add(std::move(work), node->context, {})->cloned_from = node.get();
  }
  for (const auto& node : nodes) {
    for (const GraphEdge& edge : node->dependencies) {
      copy->connect(copy->nodes[edge.node->index].get(), copy->nodes[node->index].get(), edge.data);
    }
  }
  return copy;
}

namespace kjudge {

CUgraphNodeType type_of(const Work& work) {
  struct Type {
    CUgraphNodeType operator()(const EmptyWork&) const { return CU_GRAPH_NODE_TYPE_EMPTY; }
    CUgraphNodeType operator()(const KernelWork&) const { return CU_GRAPH_NODE_TYPE_KERNEL; }
    CUgraphNodeType operator()(const MemsetWork&) const { return CU_GRAPH_NODE_TYPE_MEMSET; }
    CUgraphNodeType operator()(const CopyWork&) const { return CU_GRAPH_NODE_TYPE_MEMCPY; }
    CUgraphNodeType operator()(const HostWork&) const { return CU_GRAPH_NODE_TYPE_HOST; }
    CUgraphNodeType operator()(const ChildGraphWork&) const { return CU_GRAPH_NODE_TYPE_GRAPH; }
    CUgraphNodeType operator()(const EventRecordWork&) const {
      return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    }
    CUgraphNodeType operator()(const EventWaitWork&) const { return CU_GRAPH_NODE_TYPE_WAIT_EVENT; }
    CUgraphNodeType operator()(const AllocWork&) const { return CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
    CUgraphNodeType operator()(const FreeWork&) const { return CU_GRAPH_NODE_TYPE_MEM_FREE; }
    CUgraphNodeType operator()(const ConditionalWork&) const {
      return CU_GRAPH_NODE_TYPE_CONDITIONAL;
    }
    // Never in a graph: a captured graph launch is a child graph, a callback is refused.
    CUgraphNodeType operator()(const GraphWork&) const { fail(CUDA_ERROR_UNKNOWN); }
    CUgraphNodeType operator()(const CallbackWork&) const { fail(CUDA_ERROR_UNKNOWN); }
  };
  return std::visit(Type{}, work);
}

CUgraphNode_st& node_of(CUgraphNode handle) {
  require(handle != nullptr);
  LiveNodes& live = live_nodes();
  const std::shared_lock lock(live.mutex);
  require(live.set.count(handle) > 0);
  return *handle;
}

AllocWork allocation_node(CUctx_st& context, std::size_t bytes) {
  require(bytes > 0);
  AllocWork work;
  work.params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  work.params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  work.params.poolProps.location.id = context.device;
  work.params.bytesize = bytes;
  const std::uint64_t address = Memory::get().reserve_for_graph(bytes);
  work.params.dptr = address;
  work.reservation = std::shared_ptr<void>(nullptr, [address](void*) {
    // The last of graph, execs and queued launches is gone: what was never freed goes too.
    try {
      Memory::get().release_for_graph(address);
    } catch (const Failure&) {
    }
  });
  return work;
}

}  // namespace kjudge
