// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>

#include "bundle/validate.h"

namespace kjudge {
namespace {

constexpr std::uint64_t kMaxArgumentBytes = 32'764;  // CUDA's for a kernel's parameters
constexpr std::uint32_t kMaxSharedBytes = 1u << 20;  // GPUs have 227 KiB today

enum class AttributeKind { launch, function, observed };

bool is_known(AttributeKind kind, std::uint32_t id) {
  switch (kind) {
    case AttributeKind::launch:
      // CUlaunchAttributeID of a graph's kernel node. Not: those of a stream (3), those that become
      // edges (6, 7, 12), device-updatable nodes (13).
      switch (id) {
        case 1:
        case 2:
        case 4:
        case 5:
        case 8:
        case 9:
        case 10:
        case 11:
        case 14:
        case 16:
          return true;
      }
      return false;
    case AttributeKind::function:
      // CUfunction_attribute that cuFuncSetAttribute takes.
      return id == 8 || id == 9 || (id >= 11 && id <= 15);
    case AttributeKind::observed:
      return id <= 15;
  }
  return false;
}

// CUaccessPolicyWindow: base, bytes, ratio, and what happens to hits and misses. Persisting lines
// would outlive the launch and what evicts the caches.
void check_access_window(const Bundle& bundle, const Attribute& attribute) {
  std::uint64_t address = 0, size = 0;
  float ratio = 0;
  std::array<std::uint32_t, 2> properties{};
  std::memcpy(&address, attribute.value.data(), 8);
  std::memcpy(&size, attribute.value.data() + 8, 8);
  std::memcpy(&ratio, attribute.value.data() + 16, 4);
  std::memcpy(properties.data(), attribute.value.data() + 20, 8);
  if (!(ratio >= 0 && ratio <= 1)) refuse("access window: ratio is not in [0, 1]");
  for (const std::uint32_t property : properties) {
    if (property > 1) refuse("access window: neither normal nor streaming");
  }
  if (size != 0) region_of(bundle.regions, address, size, "access window");
}

void check_attributes(const Bundle& bundle, std::span<const Attribute> attributes,
                      AttributeKind kind, std::string_view what) {
  std::uint64_t seen = 0;
  for (const auto& attribute : attributes) {
    if (!is_known(kind, attribute.id)) refuse(cat("unknown ", what, " ", attribute.id));
    if ((seen >> attribute.id & 1) != 0) refuse(cat(what, " ", attribute.id, " is there twice"));
    seen |= std::uint64_t{1} << attribute.id;
    if (kind == AttributeKind::launch && attribute.id == 1) {
      check_access_window(bundle, attribute);
    }
  }
}

void check_dim(std::string_view what, const Dim3& dim, const Dim3& most) {
  const auto check = [&](char axis, std::uint32_t value, std::uint32_t limit) {
    if (value == 0 || value > limit) {
      refuse(cat(what, ".", std::string(1, axis), " is ", value, ", not 1 to ", limit));
    }
  };
  check('x', dim.x, most.x);
  check('y', dim.y, most.y);
  check('z', dim.z, most.z);
}

void check_kernel(const Bundle& bundle, const KernelNode& kernel,
                  std::span<const KernelNames> kernels) {
  if (kernel.module >= kernels.size()) refuse(cat("module ", kernel.module, " is unknown"));
  check_name("kernel name", kernel.name, kSymbolBytes);
  const auto& names = kernels[kernel.module];
  if (names && names->count(kernel.name) == 0) {
    refuse(cat("module ", kernel.module, " has no kernel ", kernel.name));
  }
  check_dim("grid", kernel.grid, {0x7fff'ffff, 65'535, 65'535});
  check_dim("block", kernel.block, {1024, 1024, 64});
  if (kernel.block.x * kernel.block.y * kernel.block.z > 1024) {
    refuse("block has more than 1024 threads");
  }
  if (kernel.shared_bytes > kMaxSharedBytes) {
    refuse(cat("shared_bytes ", kernel.shared_bytes, " is more than ", kMaxSharedBytes));
  }

  if (kernel.arguments.size() > kMaxArgumentBytes) {
    refuse(cat("arguments have more than ", kMaxArgumentBytes, " bytes"));
  }
  if (kernel.argument_offsets.size() != kernel.argument_sizes.size()) {
    refuse("arguments have not one size for each offset");
  }
  std::uint64_t end_before = 0;
  for (std::size_t i = 0; i < kernel.argument_offsets.size(); ++i) {
    const std::uint64_t offset = kernel.argument_offsets[i], size = kernel.argument_sizes[i];
    if (size == 0) refuse(cat("argument ", i, " has size 0"));
    if (offset < end_before) refuse(cat("argument ", i, " overlaps or precedes the one before it"));
    end_before = offset + size;
    if (end_before > kernel.arguments.size()) {
      refuse(cat("argument ", i, " reaches past the parameter buffer"));
    }
  }

  check_attributes(bundle, kernel.launch_attributes, AttributeKind::launch, "launch attribute");
  check_attributes(bundle, kernel.function_attributes, AttributeKind::function,
                   "function attribute");
  check_attributes(bundle, kernel.observed_attributes, AttributeKind::observed,
                   "observed attribute");
  if (kernel.cache_config < -1 || kernel.cache_config > 3) {
    refuse(cat("unknown cache_config ", kernel.cache_config));
  }
}

void check_destination(const Bundle& bundle, std::uint64_t address, std::uint64_t size,
                       std::string_view what) {
  const std::size_t region = region_of(bundle.regions, address, size, what);
  if (bundle.regions[region].role == Role::input) {
    refuse(cat(what, " writes to region ", region, ", an input"));
  }
}

// Bytes from the first to past the last of `rows` rows that begin `pitch` apart.
std::uint64_t pitched_bytes(std::uint64_t rows, std::uint64_t pitch, std::uint64_t width,
                            std::string_view what) {
  if (rows > 1 && pitch < width) refuse(cat(what, ": pitch is less than a row"));
  return add(multiply(rows - 1, pitch, what), width, what);
}

void check_memset(const Bundle& bundle, const MemsetNode& memset) {
  const std::uint32_t element = memset.element_size;
  if (element != 1 && element != 2 && element != 4) {
    refuse(cat("memset: element_size ", element, " is not 1, 2 or 4"));
  }
  if (element < 4 && memset.value >> 8 * element != 0) {
    refuse("memset: value does not fit its elements");
  }
  if (memset.width == 0 || memset.height == 0) refuse("memset: nothing to set");
  if (memset.address % element != 0 || (memset.height > 1 && memset.pitch % element != 0)) {
    refuse("memset: address or pitch is no multiple of element_size");
  }
  const std::uint64_t width = multiply(memset.width, element, "memset");
  check_destination(bundle, memset.address,
                    pitched_bytes(memset.height, memset.pitch, width, "memset"), "memset");
}

void check_memcpy(const Bundle& bundle, const MemcpyNode& copy) {
  if (copy.width_bytes == 0 || copy.height == 0 || copy.depth == 0) {
    refuse("memcpy: nothing to copy");
  }
  const auto span = [&](std::uint64_t pitch, std::uint64_t slice_rows, std::string_view what) {
    if (copy.depth > 1 && slice_rows < copy.height) {
      refuse(cat(what, ": height is less than a slice"));
    }
    // Every row before the last slice's last.
    const std::uint64_t before = copy.depth > 1 ? multiply(copy.depth - 1, slice_rows, what) : 0;
    return pitched_bytes(add(before, copy.height, what), pitch, copy.width_bytes, what);
  };
  const std::uint64_t written =
      span(copy.destination_pitch, copy.destination_height, "memcpy destination");
  check_destination(bundle, copy.destination, written, "memcpy destination");
  const std::uint64_t read = span(copy.source_pitch, copy.source_height, "memcpy source");
  region_of(bundle.regions, copy.source, read, "memcpy source");
}

void check_edge(const Graph& graph, const Edge& edge) {
  if (edge.from >= graph.nodes.size() || edge.to >= graph.nodes.size()) {
    refuse("joins a node that does not exist");
  }
  if (edge.from == edge.to) refuse("joins a node with itself");
  const bool from_kernel = std::holds_alternative<KernelNode>(graph.nodes[edge.from]);
  const bool to_kernel = std::holds_alternative<KernelNode>(graph.nodes[edge.to]);
  // CU_GRAPH_KERNEL_NODE_PORT_*: 0 at the end, 1 programmatic, 2 launch order.
  if (edge.from_port > 2 || (edge.from_port != 0 && !from_kernel)) {
    refuse(cat("unknown from_port ", int{edge.from_port}));
  }
  if (edge.to_port != 0) refuse(cat("unknown to_port ", int{edge.to_port}));
  // CU_GRAPH_DEPENDENCY_TYPE_*: 0 default, 1 programmatic.
  if (edge.type > 1) refuse(cat("unknown type ", int{edge.type}));
  if (edge.type == 1 && (!from_kernel || !to_kernel || edge.from_port == 0)) {
    refuse("a programmatic edge that does not lead from a port of a kernel to a kernel");
  }
  if (edge.type == 0 && edge.from_port == 1) refuse("a programmatic port without that type");
}

void check_edges(const Graph& graph) {
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    within("edge", i, [&] { check_edge(graph, graph.edges[i]); });
  }
  auto sorted = graph.edges;
  const auto key = [](const Edge& e) {
    return std::tie(e.from, e.to, e.from_port, e.to_port, e.type);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](const Edge& a, const Edge& b) { return key(a) < key(b); });
  const auto same = std::adjacent_find(
      sorted.begin(), sorted.end(), [&](const Edge& a, const Edge& b) { return key(a) == key(b); });
  if (same != sorted.end()) {
    refuse(cat("the edge from ", same->from, " to ", same->to, " is there twice"));
  }

  // Kahn: take away nodes that nothing leads to; what stays lies on or behind a cycle.
  const std::size_t count = graph.nodes.size();
  std::vector<std::uint32_t> incoming(count), ready;
  std::vector<std::size_t> first(count + 1);  // into `sorted`, which is in order of `from`
  for (const auto& edge : sorted) {
    ++incoming[edge.to];
    ++first[edge.from + 1];
  }
  for (std::size_t i = 0; i < count; ++i) {
    first[i + 1] += first[i];
    if (incoming[i] == 0) ready.push_back(static_cast<std::uint32_t>(i));
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const std::uint32_t node = ready[next];
    for (std::size_t e = first[node]; e < first[node + 1]; ++e) {
      if (--incoming[sorted[e].to] == 0) ready.push_back(sorted[e].to);
    }
  }
  if (ready.size() != count) refuse("edges form a cycle");
}

void check_node(const Bundle& bundle, const Node& node, std::span<const KernelNames> kernels) {
  if (const auto* kernel = std::get_if<KernelNode>(&node)) {
    check_kernel(bundle, *kernel, kernels);
  } else if (const auto* memset = std::get_if<MemsetNode>(&node)) {
    check_memset(bundle, *memset);
  } else if (const auto* copy = std::get_if<MemcpyNode>(&node)) {
    check_memcpy(bundle, *copy);
  }
}

}  // namespace

void check_graph(const Bundle& bundle, const Graph& graph, std::span<const KernelNames> kernels) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    within("node", i, [&] { check_node(bundle, graph.nodes[i], kernels); });
  }
  check_edges(graph);
}

}  // namespace kjudge
