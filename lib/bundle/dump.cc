// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "bundle/format.h"
#include "bundle/validate.h"
#include "elf_image.h"

namespace kjudge {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 96> text;
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string hash_text(std::uint64_t value) {
  return format("%016llx", static_cast<unsigned long long>(value));
}

std::string hex_bytes(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += format("%02x", static_cast<unsigned>(byte));
  return text;
}

// Values of attributes are short and end in zeros.
std::string hex_value(const Attribute& attribute) {
  std::size_t size = attribute.value.size();
  while (size > 4 && attribute.value[size - 1] == std::byte{0}) --size;
  return hex_bytes(std::span(attribute.value).first((size + 3) / 4 * 4));
}

std::string_view launch_attribute_name(std::uint32_t id) {
  switch (id) {
    case 1:
      return "access_policy_window";
    case 2:
      return "cooperative";
    case 4:
      return "cluster_dimension";
    case 5:
      return "cluster_scheduling_policy_preference";
    case 8:
      return "priority";
    case 9:
      return "mem_sync_domain_map";
    case 10:
      return "mem_sync_domain";
    case 11:
      return "preferred_cluster_dimension";
    case 14:
      return "preferred_shared_memory_carveout";
    case 16:
      return "nvlink_util_centric_scheduling";
  }
  return "unknown";
}

std::string_view function_attribute_name(std::uint32_t id) {
  constexpr std::array<std::string_view, 16> kNames = {
      "max_threads_per_block",
      "shared_size_bytes",
      "const_size_bytes",
      "local_size_bytes",
      "num_regs",
      "ptx_version",
      "binary_version",
      "cache_mode_ca",
      "max_dynamic_shared_size_bytes",
      "preferred_shared_memory_carveout",
      "cluster_size_must_be_set",
      "required_cluster_width",
      "required_cluster_height",
      "required_cluster_depth",
      "non_portable_cluster_size_allowed",
      "cluster_scheduling_policy_preference",
  };
  return id < kNames.size() ? kNames[id] : "unknown";
}

std::string_view limit_name(std::uint32_t id) {
  constexpr std::array<std::string_view, 7> kNames = {"stack_size",
                                                      "printf_fifo_size",
                                                      "malloc_heap_size",
                                                      "dev_runtime_sync_depth",
                                                      "dev_runtime_pending_launch_count",
                                                      "max_l2_fetch_granularity",
                                                      "persisting_l2_cache_size"};
  return id < kNames.size() ? kNames[id] : "unknown";
}

std::string dim_text(const Dim3& dim) { return cat(dim.x, "x", dim.y, "x", dim.z); }

std::string list_text(const std::vector<std::int64_t>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += cat(i == 0 ? "" : ", ", values[i]);
  return text + "]";
}

// An address as people can read it: region and offset in it.
std::string place(const Bundle& bundle, std::uint64_t address) {
  const std::size_t region = region_of(bundle.regions, address, 0, "address");
  return cat(hex(address), " (region ", region, " + ", address - bundle.regions[region].address,
             ")");
}

std::string provenance_text(const Provenance& provenance) {
  const auto seconds = [](double value) { return format("%.3f s", value); };
  std::string text = "provenance\n";
  text += cat("  arch ", provenance.arch, "\n");
  text += cat("  driver ", provenance.driver, ", version ", provenance.driver_version);
  if (!provenance.driver_release.empty()) text += cat(" (", provenance.driver_release, ")");
  text += "\n";
  text += cat("  device ", provenance.device, "\n");
  text += cat("  kjudge_version ", provenance.kjudge_version, "\n");
  text += cat("  seed ", provenance.seed, "\n");
  text += cat("  peak_bytes ", provenance.peak_bytes, "\n");
  text += cat("  import ", seconds(provenance.import_s), ", prepare ",
              seconds(provenance.prepare_s), ", capture ", seconds(provenance.capture_s), "\n");
  for (const auto& note : provenance.notes) text += cat("  note ", note, "\n");
  return text;
}

std::string modules_text(const Bundle& bundle) {
  std::string text;
  for (std::size_t i = 0; i < bundle.modules.size(); ++i) {
    const auto& module = bundle.modules[i];
    const Elf elf(module.image);
    text += cat("module ", i, ": ", elf.machine() == kElfCuda ? "cubin" : "shared object", ", ",
                module.image.size(), " bytes, xxh3 ", hash_text(xxh3(module.image)), "\n");
    for (const auto& variable : module.variables) {
      text += cat("  variable ", variable.name, ", ", variable.size, " bytes\n");
    }
  }
  return text;
}

std::string regions_text(const BundleReader& reader) {
  std::string text;
  const auto& regions = reader.bundle().regions;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto& region = regions[i];
    text += cat("region ", i, ": ", hex(region.address), ", ", region.size, " bytes, ",
                name(region.role), ", device ", region.device, "\n");
    if (region.role != Role::state) continue;
    const StoredMemory memory = reader.stored_memory(i);
    text += cat("  ", memory.bytes, " bytes not zero, ", memory.file_bytes, " in the file, ",
                memory.blocks, " blocks\n");
  }
  return text;
}

std::string kernel_text(const KernelNode& kernel) {
  std::string text = cat("kernel ", kernel.name, " of module ", kernel.module, "\n");
  text += cat("    grid ", dim_text(kernel.grid), ", block ", dim_text(kernel.block),
              ", shared_bytes ", kernel.shared_bytes, "\n");
  for (std::size_t i = 0; i < kernel.argument_offsets.size(); ++i) {
    const auto bytes =
        std::span(kernel.arguments).subspan(kernel.argument_offsets[i], kernel.argument_sizes[i]);
    text +=
        cat("    argument ", i, " at ", kernel.argument_offsets[i], ": ", hex_bytes(bytes), "\n");
  }
  for (const auto& attribute : kernel.launch_attributes) {
    text +=
        cat("    launch ", launch_attribute_name(attribute.id), ": ", hex_value(attribute), "\n");
  }
  const auto function_attributes = [&](std::string_view what,
                                       const std::vector<Attribute>& attributes) {
    for (const auto& attribute : attributes) {
      std::int32_t value = 0;
      std::memcpy(&value, attribute.value.data(), sizeof(value));
      text += cat("    ", what, " ", function_attribute_name(attribute.id), ": ", value, "\n");
    }
  };
  function_attributes("function", kernel.function_attributes);
  function_attributes("observed", kernel.observed_attributes);
  if (kernel.cache_config >= 0) text += cat("    cache_config ", kernel.cache_config, "\n");
  return text;
}

std::string node_text(const Bundle& bundle, const Node& node) {
  if (const auto* kernel = std::get_if<KernelNode>(&node)) return kernel_text(*kernel);
  if (const auto* memset = std::get_if<MemsetNode>(&node)) {
    return cat("memset ", place(bundle, memset->address), ", value ", hex(memset->value), ", ",
               memset->height, " rows of ", memset->width, " elements of ", memset->element_size,
               " bytes, pitch ", memset->pitch, "\n");
  }
  if (const auto* copy = std::get_if<MemcpyNode>(&node)) {
    return cat("memcpy ", copy->depth, " slices of ", copy->height, " rows of ", copy->width_bytes,
               " bytes\n    to ", place(bundle, copy->destination), ", pitch ",
               copy->destination_pitch, ", height ", copy->destination_height, "\n    from ",
               place(bundle, copy->source), ", pitch ", copy->source_pitch, ", height ",
               copy->source_height, "\n");
  }
  return "empty\n";
}

std::string shape_text(const Bundle& bundle, std::size_t index) {
  const auto& shape = bundle.shapes[index];
  std::string text = cat("shape ", index, ": ", shape.name, ", ", shape.graph.nodes.size(),
                         " nodes, ", shape.graph.edges.size(), " edges\n");
  std::size_t written = 0;
  for (const auto& tensor : bundle.tensors) {
    if (tensor.shape != index) continue;
    text += cat("  ", name(tensor.role), " ", tensor.spec.name, ": ", name(tensor.spec.dtype), " ",
                list_text(tensor.spec.dims), ", strides ", list_text(tensor.spec.strides), ", at ",
                place(bundle, tensor.address), "\n");
    if (tensor.role == Role::input) continue;
    text += cat("    xxh3 ", hash_text(shape.output_hashes[written++]), " on made-up inputs\n");
  }
  for (std::size_t i = 0; i < shape.graph.nodes.size(); ++i) {
    text += cat("  node ", i, ": ", node_text(bundle, shape.graph.nodes[i]));
  }
  for (const auto& edge : shape.graph.edges) {
    text += cat("  edge ", edge.from, " to ", edge.to);
    if (edge.from_port != 0) text += cat(", from_port ", int{edge.from_port});
    if (edge.to_port != 0) text += cat(", to_port ", int{edge.to_port});
    if (edge.type != 0) text += ", programmatic";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string dump(const BundleReader& reader) {
  const Bundle& bundle = reader.bundle();
  std::string text =
      cat("bundle version ", reader.version(), ", ", reader.file_bytes(), " bytes\n");
  text += provenance_text(bundle.provenance);
  text += modules_text(bundle);
  text += regions_text(reader);
  for (std::size_t i = 0; i < bundle.shapes.size(); ++i) text += shape_text(bundle, i);
  for (const auto& limit : bundle.limits) {
    text += cat("limit ", limit_name(limit.id), ": ", limit.value, "\n");
  }
  return text;
}

}  // namespace kjudge
