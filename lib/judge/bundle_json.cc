// SPDX-License-Identifier: Apache-2.0
#include "judge/bundle_json.h"

#include <algorithm>
#include <string_view>

#include "sha256.h"

namespace kjudge {
namespace {

Json text(std::string_view value) { return Json{std::string(value)}; }

Json number(std::integral auto value) {
  // JSON numbers of kjudge are signed; addresses and sizes of a valid bundle fit.
  return Json{static_cast<std::int64_t>(value)};
}

Json hex(std::span<const std::byte> bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (std::byte byte : bytes) {
    digits += kDigits[std::to_integer<unsigned>(byte) >> 4];
    digits += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return Json{std::move(digits)};
}

Json hex64(std::uint64_t value) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(value >> (56 - 8 * i));
  return hex(bytes);
}

Json numbers(const std::vector<std::int64_t>& values) {
  Json::List list;
  for (std::int64_t value : values) list.push_back(number(value));
  return Json{std::move(list)};
}

Json dim3_json(const Dim3& dim) {
  return Json{Json::List{number(dim.x), number(dim.y), number(dim.z)}};
}

Json attributes(const std::vector<Attribute>& list) {
  Json::List values;
  for (const Attribute& attribute : list) {
    values.push_back(
        Json{Json::Object{{"id", number(attribute.id)}, {"value", hex(attribute.value)}}});
  }
  return Json{std::move(values)};
}

Json node_json(const KernelNode& node) {
  Json::List arguments;
  for (std::size_t i = 0; i < node.argument_offsets.size(); ++i) {
    arguments.push_back(
        hex(std::span(node.arguments).subspan(node.argument_offsets[i], node.argument_sizes[i])));
  }
  return Json{Json::Object{{"kind", text("kernel")},
                           {"module", number(node.module)},
                           {"name", text(node.name)},
                           {"grid", dim3_json(node.grid)},
                           {"block", dim3_json(node.block)},
                           {"shared_bytes", number(node.shared_bytes)},
                           {"arguments", Json{std::move(arguments)}},
                           {"launch_attributes", attributes(node.launch_attributes)},
                           {"function_attributes", attributes(node.function_attributes)},
                           {"observed_attributes", attributes(node.observed_attributes)},
                           {"cache_config", number(node.cache_config)}}};
}

Json node_json(const MemsetNode& node) {
  return Json{Json::Object{{"kind", text("memset")},
                           {"address", hex64(node.address)},
                           {"pitch", number(node.pitch)},
                           {"value", number(node.value)},
                           {"element_size", number(node.element_size)},
                           {"width", number(node.width)},
                           {"height", number(node.height)}}};
}

Json node_json(const MemcpyNode& node) {
  return Json{Json::Object{{"kind", text("memcpy")},
                           {"destination", hex64(node.destination)},
                           {"source", hex64(node.source)},
                           {"destination_pitch", number(node.destination_pitch)},
                           {"source_pitch", number(node.source_pitch)},
                           {"destination_height", number(node.destination_height)},
                           {"source_height", number(node.source_height)},
                           {"width_bytes", number(node.width_bytes)},
                           {"height", number(node.height)},
                           {"depth", number(node.depth)}}};
}

Json node_json(const EmptyNode&) { return Json{Json::Object{{"kind", text("empty")}}}; }

Json shape_json(const Bundle& bundle, std::uint32_t index) {
  const CapturedShape& shape = bundle.shapes[index];
  Json::List tensors, nodes, edges, hashes;
  for (const Tensor& tensor : bundle.tensors) {
    if (tensor.shape != index) continue;
    tensors.push_back(Json{Json::Object{{"name", text(tensor.spec.name)},
                                        {"role", text(name(tensor.role))},
                                        {"dtype", text(name(tensor.spec.dtype))},
                                        {"dims", numbers(tensor.spec.dims)},
                                        {"strides", numbers(tensor.spec.strides)},
                                        {"address", hex64(tensor.address)}}});
  }
  for (const Node& node : shape.graph.nodes) {
    nodes.push_back(std::visit([](const auto& held) { return node_json(held); }, node));
  }
  for (const Edge& edge : shape.graph.edges) {
    edges.push_back(Json{Json::Object{{"from", number(edge.from)},
                                      {"to", number(edge.to)},
                                      {"from_port", number(edge.from_port)},
                                      {"to_port", number(edge.to_port)},
                                      {"type", number(edge.type)}}});
  }
  for (std::uint64_t hash : shape.output_hashes) hashes.push_back(hex64(hash));
  return Json{Json::Object{{"name", text(shape.name)},
                           {"tensors", Json{std::move(tensors)}},
                           {"nodes", Json{std::move(nodes)}},
                           {"edges", Json{std::move(edges)}},
                           {"output_hashes", Json{std::move(hashes)}}}};
}

Json module_json(const Module& module) {
  Json::List variables;
  for (const ModuleVariable& variable : module.variables) {
    variables.push_back(
        Json{Json::Object{{"name", text(variable.name)}, {"size", number(variable.size)}}});
  }
  const std::string_view image(reinterpret_cast<const char*>(module.image.data()),
                               module.image.size());
  return Json{Json::Object{{"image_bytes", number(module.image.size())},
                           {"sha256", text(sha256_hex(image))},
                           {"variables", Json{std::move(variables)}}}};
}

Json provenance_json(const Provenance& from) {
  Json::List notes;
  for (const std::string& note : from.notes) notes.push_back(text(note));
  return Json{Json::Object{{"arch", text(from.arch)},
                           {"driver", text(from.driver)},
                           {"driver_version", number(from.driver_version)},
                           {"device", text(from.device)},
                           {"kjudge_version", text(from.kjudge_version)},
                           {"seed", hex64(from.seed)},
                           {"peak_bytes", number(from.peak_bytes)},
                           {"import_s", Json{from.import_s}},
                           {"prepare_s", Json{from.prepare_s}},
                           {"capture_s", Json{from.capture_s}},
                           {"notes", Json{std::move(notes)}}}};
}

}  // namespace

Json bundle_json(const Bundle& bundle) {
  Json::List modules, regions, shapes, limits;
  for (const Module& module : bundle.modules) modules.push_back(module_json(module));
  for (const Region& region : bundle.regions) {
    regions.push_back(Json{Json::Object{{"address", hex64(region.address)},
                                        {"size", number(region.size)},
                                        {"role", text(name(region.role))},
                                        {"device", number(region.device)}}});
  }
  for (std::uint32_t i = 0; i < bundle.shapes.size(); ++i) shapes.push_back(shape_json(bundle, i));
  for (const Limit& limit : bundle.limits) {
    limits.push_back(Json{Json::Object{{"id", number(limit.id)}, {"value", number(limit.value)}}});
  }
  return Json{Json::Object{{"format", text("kjudge-dump/1")},
                           {"provenance", provenance_json(bundle.provenance)},
                           {"modules", Json{std::move(modules)}},
                           {"regions", Json{std::move(regions)}},
                           {"limits", Json{std::move(limits)}},
                           {"shapes", Json{std::move(shapes)}}}};
}

}  // namespace kjudge
