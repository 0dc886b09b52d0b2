// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "bundle/format.h"
#include "bundle/validate.h"
#include "elf_image.h"
#include "unicode.h"

namespace kjudge {
namespace {

constexpr std::size_t kNameBytes = 256;  // shapes, tensors, devices, versions
constexpr std::size_t kNoteBytes = 4096;
constexpr std::size_t kMaxDims = 16;

void check_text(std::string_view what, std::string_view text, std::size_t most) {
  if (text.size() > most) refuse(cat(what, " is longer than ", most, " bytes"));
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t at = text.size() - rest.size();
    const auto character = take_character(rest);
    if (!character || is_control(*character)) {
      refuse(cat(what, " is not UTF-8 without control characters (byte ", at, ")"));
    }
  }
}

}  // namespace

void check_name(std::string_view what, std::string_view text, std::size_t most) {
  if (text.empty()) refuse(cat(what, " is empty"));
  check_text(what, text, most);
}

std::size_t region_of(std::span<const Region> regions, std::uint64_t address, std::uint64_t size,
                      std::string_view what) {
  const auto after = std::upper_bound(
      regions.begin(), regions.end(), address,
      [](std::uint64_t value, const Region& region) { return value < region.address; });
  const auto index = static_cast<std::size_t>(after - regions.begin()) - 1;
  if (after == regions.begin() || address - regions[index].address >= regions[index].size) {
    refuse(cat(what, " at ", hex(address), " lies in no region"));
  }
  if (size > regions[index].size - (address - regions[index].address)) {
    refuse(cat(what, " reaches past region ", index));
  }
  return index;
}

namespace {

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && !digit(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || digit(c) || c == '_';
  });
}

void check_provenance(const Provenance& provenance) {
  check_name("driver", provenance.driver, kNameBytes);
  check_name("arch", provenance.arch, kNameBytes);
  if (provenance.driver == "host") {
    if (provenance.arch != "x86_64") refuse("arch of driver host is not x86_64");
  } else if (provenance.driver == "cuda") {
    const auto& arch = provenance.arch;
    if (arch.size() < 5 || arch.compare(0, 3, "sm_") != 0 ||
        arch.find_first_not_of("0123456789af", 3) != arch.npos) {
      refuse(cat("arch ", arch, " of driver cuda is not sm_NN"));
    }
  } else {
    refuse(cat("driver ", provenance.driver, " is neither host nor cuda"));
  }
  check_text("driver_release", provenance.driver_release, kNameBytes);
  check_text("device", provenance.device, kNameBytes);
  check_text("kjudge_version", provenance.kjudge_version, kNameBytes);
  for (const auto& [what, seconds] : {std::pair{"import_s", provenance.import_s},
                                      {"prepare_s", provenance.prepare_s},
                                      {"capture_s", provenance.capture_s}}) {
    if (!std::isfinite(seconds) || seconds < 0) refuse(cat(what, " is no length of time"));
  }
  if (provenance.notes.size() > kMaxNotes) refuse(cat("more than ", kMaxNotes, " notes"));
  for (const auto& note : provenance.notes) check_text("note", note, kNoteBytes);
}

struct RegionsSoFar {
  std::uint64_t end = 0, bytes = 0;
};

void check_region(const Region& region, std::uint64_t limit_bytes, RegionsSoFar& before) {
  if (region.role > Role::inout) refuse(cat("unknown role ", static_cast<int>(region.role)));
  if (region.device >= kMaxDevices) refuse(cat("device ", region.device, " is not below 16"));
  if (region.size == 0) refuse("size is 0");
  if (region.address % kRegionGranule != 0) refuse("address is no multiple of 2 MiB");
  if (region.size % kRegionGranule != 0) refuse("size is no multiple of 2 MiB");
  const std::uint64_t arena = kArenaBase + region.device * kArenaSize;
  if (region.address < arena || region.address >= arena + kArenaSize ||
      region.size > arena + kArenaSize - region.address) {
    refuse(cat("address ", hex(region.address), " or its end lies outside the arena of device ",
               region.device));
  }
  if (region.address < before.end) refuse("overlaps or comes before the one before it");
  before.end = region.address + region.size;
  before.bytes = add(before.bytes, region.size, "size of all regions");
  if (before.bytes > limit_bytes) {
    refuse(cat("all regions so far have ", before.bytes, " bytes, more than the limit of ",
               limit_bytes));
  }
}

void check_variables(const Module& module, const Elf& elf) {
  if (module.variables.size() > kMaxVariables)
    refuse(cat("more than ", kMaxVariables, " variables"));
  std::unordered_map<std::string_view, std::uint64_t> declared;
  for (const auto& variable : module.variables) {
    check_name("variable", variable.name, kSymbolBytes);
    if (variable.size == 0) refuse(cat("variable ", variable.name, " has size 0"));
    if (!declared.emplace(variable.name, variable.size).second) {
      refuse(cat("variable ", variable.name, " is there twice"));
    }
  }
  for (const auto& variable : elf.variables()) {
    const auto found = declared.find(variable.name);
    if (found == declared.end()) continue;
    if (found->second != variable.size) {
      refuse(cat("variable ", variable.name, " has ", variable.size, " bytes in the image, ",
                 found->second, " in the bundle"));
    }
    declared.erase(found);
  }
  if (!declared.empty()) {
    refuse(cat("variable ", declared.begin()->first, " is not in the image"));
  }
}

KernelNames check_module(const Module& module, const Provenance& provenance) {
  const Elf elf(module.image);
  const bool cubin = provenance.driver == "cuda";
  if (elf.machine() != (cubin ? kElfCuda : kElfX86_64)) {
    refuse(cat("is for machine ", elf.machine(), ", not for driver ", provenance.driver));
  }
  check_variables(module, elf);
  if (!cubin) return std::nullopt;
  std::unordered_set<std::string_view> names;
  constexpr std::string_view kText = ".text.";
  for (const auto& section : elf.sections()) {
    if (section.name.substr(0, kText.size()) == kText) {
      names.insert(section.name.substr(kText.size()));
    }
  }
  return names;
}

// Bytes from the first to past the last element, strides counted in; 0 for an empty tensor.
std::uint64_t reach_bytes(const TensorSpec& spec) {
  if (spec.dims.size() > kMaxDims) refuse(cat("has more than ", kMaxDims, " dimensions"));
  if (spec.strides.size() != spec.dims.size()) refuse("has not one stride for each dimension");
  const bool empty = element_count(spec.dims) == 0;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    if (spec.strides[i] < 0) refuse(cat("stride ", i, " is negative"));
    if (empty) continue;
    last = add(last,
               multiply(static_cast<std::uint64_t>(spec.dims[i] - 1),
                        static_cast<std::uint64_t>(spec.strides[i]), "its span"),
               "its span");
  }
  if (empty) return 0;
  const auto element_bits = static_cast<std::uint64_t>(bits(spec.dtype));
  const std::uint64_t total = multiply(add(last, 1, "its span"), element_bits, "its span");
  return total / 8 + (total % 8 != 0 ? 1 : 0);
}

// What the tensors of one shape may not share.
struct TensorsSoFar {
  struct Span {
    std::uint64_t begin, end;
    std::size_t tensor;
  };
  std::unordered_set<std::string_view> names;
  std::vector<Span> spans;
};

void check_tensor(const Bundle& bundle, std::size_t index, std::vector<TensorsSoFar>& by_shape) {
  const auto& tensor = bundle.tensors[index];
  if (tensor.shape >= bundle.shapes.size()) refuse(cat("shape ", tensor.shape, " is unknown"));
  TensorsSoFar& before = by_shape[tensor.shape];
  const auto& name = tensor.spec.name;
  check_name("name", name, kNameBytes);
  if (!is_identifier(name)) refuse("name is not letters, digits and _, a letter or _ first");
  if (!before.names.insert(name).second) {
    refuse(cat("shape ", tensor.shape, " has two tensors with name ", name));
  }
  if (static_cast<int>(tensor.spec.dtype) >= kDTypeCount) {
    refuse(cat("unknown dtype ", static_cast<int>(tensor.spec.dtype)));
  }
  if (tensor.role > Role::inout || tensor.role == Role::state) {
    refuse(cat("unknown role ", static_cast<int>(tensor.role)));
  }
  const std::uint64_t size = reach_bytes(tensor.spec);
  const auto element = static_cast<std::uint64_t>(std::max(bits(tensor.spec.dtype) / 8, 1));
  if (tensor.address % element != 0) refuse("address is no multiple of its element's size");
  const std::size_t region = region_of(bundle.regions, tensor.address, size, name);
  const Role holder = bundle.regions[region].role;
  const bool returned = tensor.role == Role::output && holder == Role::state;
  if (holder != tensor.role && !returned) {
    refuse(cat("lies in region ", region, ", which has another role"));
  }
  if (size != 0) before.spans.push_back({tensor.address, tensor.address + size, index});
}

// Two names for the same bytes: filling one would change the other behind the judge's back.
void check_overlaps(std::vector<TensorsSoFar::Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.tensor) < std::tie(b.begin, b.tensor);
  });
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].begin < spans[i - 1].end) {
      refuse(cat("tensor ", spans[i].tensor, ": overlaps tensor ", spans[i - 1].tensor));
    }
  }
}

void check_shapes(const Bundle& bundle, std::uint32_t node_limit) {
  if (bundle.shapes.empty()) refuse("no shape");
  if (bundle.shapes.size() > kMaxShapes) refuse(cat("more than ", kMaxShapes, " shapes"));
  std::unordered_set<std::string_view> names;
  std::uint64_t nodes = 0;
  for (std::size_t i = 0; i < bundle.shapes.size(); ++i) {
    const auto& shape = bundle.shapes[i];
    within("shape", i, [&] {
      check_name("name", shape.name, kNameBytes);
      if (!names.insert(shape.name).second) refuse(cat("name ", shape.name, " is there twice"));
      nodes += shape.graph.nodes.size();
      if (nodes > node_limit) refuse(cat("more than ", node_limit, " nodes in all"));
    });
  }
}

void check_graphs(const Bundle& bundle, std::span<const KernelNames> kernels) {
  std::vector<std::size_t> written(bundle.shapes.size());
  for (const auto& tensor : bundle.tensors) {
    if (tensor.role != Role::input) ++written[tensor.shape];
  }
  for (std::size_t i = 0; i < bundle.shapes.size(); ++i) {
    const auto& shape = bundle.shapes[i];
    within("shape", shape.name, [&] {
      check_graph(bundle, shape.graph, kernels);
      if (shape.output_hashes.size() != written[i]) {
        refuse(cat(shape.output_hashes.size(), " output_hashes for ", written[i],
                   " tensors that are written"));
      }
    });
  }
}

void check_limits(std::span<const Limit> limits) {
  constexpr std::uint32_t kLast = 6;  // CU_LIMIT_PERSISTING_L2_CACHE_SIZE
  std::uint32_t seen = 0;
  for (const auto& limit : limits) {
    if (limit.id > kLast) refuse(cat("unknown limit ", limit.id));
    if ((seen >> limit.id & 1) != 0) refuse(cat("limit ", limit.id, " is there twice"));
    seen |= 1u << limit.id;
  }
}

}  // namespace

void validate(const Bundle& bundle, const BundleLimits& limits) {
  within("section provenance", [&] { check_provenance(bundle.provenance); });

  within("section regions", [&] {
    RegionsSoFar before;
    for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
      within("region", i, [&] { check_region(bundle.regions[i], limits.memory_bytes, before); });
    }
  });

  std::vector<KernelNames> kernels;
  within("section modules", [&] {
    if (bundle.modules.size() > kMaxModules) refuse(cat("more than ", kMaxModules, " modules"));
    for (std::size_t i = 0; i < bundle.modules.size(); ++i) {
      within("module", i,
             [&] { kernels.push_back(check_module(bundle.modules[i], bundle.provenance)); });
    }
  });

  within("section shapes", [&] { check_shapes(bundle, limits.nodes); });

  within("section tensors", [&] {
    if (bundle.tensors.size() > kMaxTensors) refuse(cat("more than ", kMaxTensors, " tensors"));
    std::vector<TensorsSoFar> by_shape(bundle.shapes.size());
    for (std::size_t i = 0; i < bundle.tensors.size(); ++i) {
      within("tensor", i, [&] { check_tensor(bundle, i, by_shape); });
    }
    for (auto& tensors : by_shape) check_overlaps(tensors.spans);
  });

  within("section shapes", [&] { check_graphs(bundle, kernels); });
  within("section limits", [&] { check_limits(bundle.limits); });
}

}  // namespace kjudge
