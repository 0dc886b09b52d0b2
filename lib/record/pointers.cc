// SPDX-License-Identifier: Apache-2.0
#include "record/pointers.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "record/graph_copy.h"

namespace kjudge {
namespace {

constexpr std::size_t kBlock = 4u << 20;

// Readable memory of this process outside the arena, ascending as the kernel lists it.
std::vector<std::pair<std::uint64_t, std::uint64_t>> read_host_maps() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> maps;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/maps", "re"),
                                                   std::fclose);
  if (file == nullptr) return maps;
  char line[512];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    unsigned long begin = 0, end = 0;
    char read = '-';
    // Not below 4 GiB, where an executable of fixed address lies with its heap (Debian's python3
    // from 0x400000): numbers of elements look like addresses there.
    if (std::sscanf(line, "%lx-%lx %c", &begin, &end, &read) == 3 && read == 'r' &&
        begin >> 32 != 0) {
      maps.emplace_back(begin, end);
    }
  }
  return maps;
}

std::string tensor_at(const std::vector<RecordedShape>& shapes, const Allocation& allocation) {
  for (const auto& shape : shapes) {
    for (const auto& tensor : shape.tensors) {
      if (tensor.address >= allocation.address && tensor.address < allocation.end()) {
        return cat(tensor.spec.name, " of shape ", shape.name);
      }
    }
  }
  return "";
}

}  // namespace

PointerRules::PointerRules(const Watched& watched, const std::vector<RecordedShape>& shapes,
                           const std::vector<LoadedVariable>& variables)
    : watched_(watched), shapes_(shapes), live_(watched.observed->memory.live()) {
  for (const HostRange& range : watched.observed->memory.host_ranges()) {
    forbidden_.push_back(
        {range.address, range.address + range.size,
         range.managed ? Rule::managed_memory : Rule::host_pointer,
         cat(range.managed ? "managed memory" : "host memory", " of ", range.call)});
  }
  const auto forbid_variable = [&](const auto& variable) {
    forbidden_.push_back({variable.address, variable.address + variable.size,
                          Rule::module_global_pointer,
                          cat("module variable ", readable_name(variable.name))});
  };
  for (const LoadedVariable& variable : variables) forbid_variable(variable);
  for (const ToldVariable& variable : watched.observed->modules.told_variables()) {
    forbid_variable(variable);
  }
  std::sort(forbidden_.begin(), forbidden_.end(),
            [](const Forbidden& a, const Forbidden& b) { return a.begin < b.begin; });
  if (watched.driver.kind == DriverKind::host) host_maps_ = read_host_maps();
  reached_.resize(live_.size());
}

const PointerRules::Forbidden* PointerRules::forbidden(std::uint64_t word) const {
  if (forbidden_.empty() || word < forbidden_.front().begin || word >= forbidden_.back().end) {
    return nullptr;
  }
  const auto after = std::upper_bound(
      forbidden_.begin(), forbidden_.end(), word,
      [](std::uint64_t value, const Forbidden& range) { return value < range.begin; });
  if (after == forbidden_.begin() || word >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

const Allocation* PointerRules::live(std::uint64_t word) const {
  if (word < kArenaBase || word - kArenaBase >= kArenaSize * kMaxDevices) return nullptr;
  const auto after = std::upper_bound(
      live_.begin(), live_.end(), word,
      [](std::uint64_t value, const Allocation& allocation) { return value < allocation.address; });
  if (after == live_.begin() || word >= std::prev(after)->end()) return nullptr;
  return &*std::prev(after);
}

// What a pointer before the start or past the end of an allocation, which kernels may move into it
// (one-based arrays), is meant for: the nearest one, as near as half of the unmapped granule
// between two.
const Allocation* PointerRules::near(std::uint64_t word) const {
  constexpr std::uint64_t kNear = kRegionGranule / 2;
  if (const Allocation* before = live(word - kNear); before != nullptr) return before;
  return live(word + kNear - 1);
}

void PointerRules::reach(const Allocation& allocation, const std::string& where) {
  if (allocation.imported) {
    throw Refused(Rule::imported_memory, cat(where, " leads into memory of another process"));
  }
  if (allocation.aliased) {
    throw Refused(Rule::aliased_memory,
                  cat(where, " leads into memory that is mapped at two addresses"));
  }
  const auto index = static_cast<std::size_t>(&allocation - live_.data());
  if (reached_[index] || allocation.role != Role::state) return;
  reached_[index] = true;
  to_scan_.push_back(index);
}

std::vector<Allocation> PointerRules::reached() const {
  std::vector<Allocation> reached;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    if (reached_[i] || live_[i].role != Role::state) reached.push_back(live_[i]);
  }
  return reached;
}

void PointerRules::check(const RecordedShape& shape) {
  for (std::size_t i = 0; i < shape.graph.nodes.size(); ++i) {
    const Node& node = shape.graph.nodes[i];
    const std::string where = describe_node(shape.graph, i);
    if (const auto* kernel = std::get_if<KernelNode>(&node)) {
      check_arguments(shape, i, *kernel);
    } else if (const auto* memset = std::get_if<MemsetNode>(&node)) {
      const std::uint64_t bytes =
          (memset->height - 1) * memset->pitch + memset->width * memset->element_size;
      check_copied_end(shape, memset->address, bytes, true, cat(where, ": destination"));
    } else if (const auto* copy = std::get_if<MemcpyNode>(&node)) {
      const auto bytes = [&](std::uint64_t pitch, std::uint64_t height) {
        return ((copy->depth - 1) * height + copy->height - 1) * pitch + copy->width_bytes;
      };
      check_copied_end(shape, copy->source, bytes(copy->source_pitch, copy->source_height), false,
                       cat(where, ": source"));
      check_copied_end(shape, copy->destination,
                       bytes(copy->destination_pitch, copy->destination_height), true,
                       cat(where, ": destination"));
    }
  }
  check_reached_memory();
}

void PointerRules::check_arguments(const RecordedShape& shape, std::size_t node,
                                   const KernelNode& kernel) {
  for (std::size_t i = 0; i < kernel.argument_offsets.size(); ++i) {
    const std::size_t begin = kernel.argument_offsets[i];
    const std::size_t end = begin + kernel.argument_sizes[i];
    const std::string where = cat(describe_node(shape.graph, node), ": argument ", i);
    for (std::size_t at = begin; at + 8 <= end; ++at) {
      std::uint64_t word;
      std::memcpy(&word, kernel.arguments.data() + at, sizeof(word));
      if (at % 8 == 0) {
        check_argument_word(shape, word, kernel.argument_sizes[i] == sizeof(word), where);
      } else if (const Allocation* allocation = live(word)) {
        reach(*allocation, where);  // a packed structure, or by chance: then more memory is kept
      }
    }
  }
}

// `alone`: the word is the whole argument. In a structure it may be two numbers that look like an
// address; one of a tensor's start is believed there.
void PointerRules::check_argument_word(const RecordedShape& shape, std::uint64_t word, bool alone,
                                       const std::string& where) {
  if (word < 0x10000 || word >> 57 != 0) return;
  if (const Allocation* allocation = live(word)) {
    if (alone || word == allocation->address) check_belongs(shape, *allocation, where);
    return reach(*allocation, where);
  }
  const RecordedMemory& memory = watched_.observed->memory;
  if (const auto freed = memory.find_freed(word)) {
    throw Refused(Rule::freed_memory, cat(where, " points into ", freed->requested, " bytes of ",
                                          freed->call, " that were freed after the capture"));
  }
  if (const Allocation* allocation = near(word)) {
    if (alone) check_belongs(shape, *allocation, where);
    return reach(*allocation, where);
  }
  if (memory.in_arena(word)) {
    if (!alone) return;
    throw Refused(Rule::outside_arena,
                  cat(where, " points to ", hex(word), ", where nothing is allocated, nor within ",
                      kRegionGranule / 2, " bytes of it"));
  }
  if (const Forbidden* range = forbidden(word)) {
    throw Refused(range->rule, cat(where, " points into ", range->what));
  }
  unsigned type = 0;
  if (watched_.driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) ==
      CUDA_SUCCESS) {
    if (type == CU_MEMORYTYPE_HOST) {
      throw Refused(Rule::host_pointer, cat(where, " points to host memory at ", hex(word)));
    }
    throw Refused(Rule::outside_arena,
                  cat(where, " points to device memory at ", hex(word),
                      " that was not allocated through a call that kjudge records"));
  }
  const auto after =
      std::upper_bound(host_maps_.begin(), host_maps_.end(), word,
                       [](std::uint64_t value, const auto& map) { return value < map.first; });
  if (after != host_maps_.begin() && word < std::prev(after)->second) {
    throw Refused(Rule::host_pointer, cat(where, " points to host memory at ", hex(word)));
  }
}

void PointerRules::check_belongs(const RecordedShape& shape, const Allocation& allocation,
                                 const std::string& where) const {
  if (allocation.role == Role::state) return;
  for (const RecordedTensor& tensor : shape.tensors) {
    if (tensor.address >= allocation.address && tensor.address < allocation.end()) return;
  }
  throw Refused(Rule::stale_argument, cat(where, " points into ", tensor_at(shapes_, allocation)));
}

void PointerRules::check_copied_end(const RecordedShape& shape, std::uint64_t address,
                                    std::uint64_t bytes, bool written, const std::string& where) {
  if (const Allocation* allocation = live(address)) {
    check_belongs(shape, *allocation, where);
    if (written && allocation->role == Role::input) {
      throw Refused(Rule::writes_input, cat(where, " is ", tensor_at(shapes_, *allocation)));
    }
    if (bytes > allocation->end() - address) {
      throw Refused(Rule::outside_arena, cat(where, " reaches past the end of its allocation"));
    }
    return reach(*allocation, where);
  }
  if (watched_.observed->memory.find_freed(address)) {
    throw Refused(Rule::freed_memory, cat(where, " was freed after the capture"));
  }
  if (const Forbidden* range = forbidden(address)) {
    const Rule rule = range->rule == Rule::host_pointer ? Rule::host_memory_copy : range->rule;
    throw Refused(rule, cat(where, " lies in ", range->what));
  }
  unsigned type = 0;
  const bool known = watched_.driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                           address) == CUDA_SUCCESS;
  if (known && type != CU_MEMORYTYPE_HOST) {
    throw Refused(Rule::outside_arena, cat(where, " is device memory at ", hex(address),
                                           " that was not allocated through a call that kjudge "
                                           "records"));
  }
  throw Refused(Rule::host_memory_copy, cat(where, " is host memory"));
}

// Follows pointers from what arguments reach.
void PointerRules::check_reached_memory() {
  std::vector<std::uint64_t> block(kBlock / 8);
  while (!to_scan_.empty()) {
    const Allocation allocation = live_[to_scan_.back()];
    to_scan_.pop_back();
    for (std::uint64_t offset = 0; offset < allocation.size; offset += kBlock) {
      const std::size_t bytes = std::min<std::uint64_t>(kBlock, allocation.size - offset);
      const CUresult read =
          watched_.driver.cuMemcpyDtoH(block.data(), allocation.address + offset, bytes);
      check_driver(watched_.driver, read,
                   cat(allocation.requested, " bytes of ", allocation.call,
                       " cannot be read for the recording; give it access with cuMemSetAccess for "
                       "reading and writing: cuMemcpyDtoH"));
      for (std::size_t i = 0; i < bytes / 8; ++i) {
        const std::uint64_t word = block[i];
        if (word < 0x10000 || word >> 57 != 0) continue;
        const auto where = [&] {
          return cat("memory that kernels use (", allocation.requested, " bytes of ",
                     allocation.call, ", at byte ", offset + i * 8, ")");
        };
        const Allocation* next = live(word);
        if (next == nullptr) next = near(word);
        if (next != nullptr && !reached_[static_cast<std::size_t>(next - live_.data())]) {
          reach(*next, where());
        }
        if (const Forbidden* range = forbidden(word)) {
          throw Refused(range->rule, cat(where(), " holds a pointer into ", range->what));
        }
      }
    }
  }
}

}  // namespace kjudge
