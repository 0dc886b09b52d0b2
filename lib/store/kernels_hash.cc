// SPDX-License-Identifier: Apache-2.0
#include "store/kernels_hash.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "error.h"
#include "sha256.h"

namespace kjudge {
namespace {

// A text that two recordings share exactly when they launch the same.
class KernelsText {
 public:
  explicit KernelsText(const Bundle& bundle) : bundle_(bundle) {}

  std::string text() {
    for (const Module& module : bundle_.modules) add_bytes(module.image);
    for (const CapturedShape& shape : bundle_.shapes) {
      line("shape ", shape.name);
      for (const Node& node : shape.graph.nodes) {
        std::visit([&](const auto& kind) { add(kind); }, node);
      }
      for (const Edge& edge : shape.graph.edges) {
        line("edge ", edge.from, " ", edge.to, " ", int{edge.from_port}, " ", int{edge.to_port},
             " ", int{edge.type});
      }
    }
    return std::move(text_);
  }

 private:
  template <class... Parts>
  void line(const Parts&... parts) {
    text_ += cat(parts..., "\n");
  }

  void add_bytes(std::span<const std::byte> bytes) {
    line(sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }

  // Nothing else than addresses lies in the arena; see kArenaBase.
  std::string place(std::uint64_t address) const {
    for (const Region& region : bundle_.regions) {
      if (address >= region.address && address - region.address <= region.size) {
        return cat(name(region.role), "+", address - region.address);
      }
    }
    return std::to_string(address);
  }

  void add_attributes(std::string_view what, const std::vector<Attribute>& attributes) {
    for (const Attribute& attribute : attributes) {
      line(what, " ", attribute.id);
      add_bytes(attribute.value);
    }
  }

  void add(const KernelNode& node) {
    line("kernel ", node.module, " ", node.name, " ", node.grid.x, " ", node.grid.y, " ",
         node.grid.z, " ", node.block.x, " ", node.block.y, " ", node.block.z, " ",
         node.shared_bytes, " ", node.cache_config, " ", node.arguments.size());
    for (std::size_t at = 0; at < node.arguments.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, node.arguments.data() + at,
                  std::min(sizeof word, node.arguments.size() - at));
      line("argument ", place(word));
    }
    add_attributes("launch", node.launch_attributes);
    add_attributes("function", node.function_attributes);
  }

  void add(const MemsetNode& node) {
    line("memset ", place(node.address), " ", node.pitch, " ", node.value, " ", node.element_size,
         " ", node.width, " ", node.height);
  }

  void add(const MemcpyNode& node) {
    line("memcpy ", place(node.destination), " ", place(node.source), " ", node.destination_pitch,
         " ", node.source_pitch, " ", node.destination_height, " ", node.source_height, " ",
         node.width_bytes, " ", node.height, " ", node.depth);
  }

  void add(const EmptyNode&) { line("empty"); }

  const Bundle& bundle_;
  std::string text_;
};

}  // namespace

std::string kernels_sha256(const Bundle& bundle) { return sha256_hex(KernelsText(bundle).text()); }

}  // namespace kjudge
