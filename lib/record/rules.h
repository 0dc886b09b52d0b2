// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "error.h"

namespace kjudge {

// Why a capture is refused: something in it cannot be rebuilt in another process, or would let a
// replay differ from what was captured. The names are part of the results and of the documentation.
enum class Rule {
  host_node,
  child_graph,
  conditional_node,
  memory_node,
  batch_memory_node,
  event_node,
  semaphore_node,
  unknown_node,
  too_many_nodes,
  array_copy,
  cuda_array,
  host_memory_copy,
  managed_memory,
  host_pointer,
  module_global_pointer,
  module_variable_changed,
  outside_launch,
  own_capture,
  unjoined,
  capture_invalidated,
  outside_arena,
  freed_memory,
  imported_memory,
  aliased_memory,
  access_policy_window,
  device_updatable,
  device_launch,
  device_heap,
  nccl,
  torch_rng,
  unknown_module,
  writes_input,
  stale_argument,
  returned_input,
  outputs_overlap,
};

struct RuleRow {
  Rule rule;
  std::string_view name;
  std::string_view what_to_do;
};

inline constexpr std::array kRules = {
    RuleRow{Rule::host_node, "host_node",
            "host functions cannot be replayed; do host work in prepare"},
    RuleRow{Rule::child_graph, "child_graph",
            "launch the kernels themselves in kernel_fn, not a graph of your own"},
    RuleRow{Rule::conditional_node, "conditional_node", "a graph must do the same work each time"},
    RuleRow{Rule::memory_node, "memory_node",
            "allocate through the CUDA driver or runtime of this process, best in prepare"},
    RuleRow{Rule::batch_memory_node, "batch_memory_node",
            "use kernels instead of stream memory operations"},
    RuleRow{Rule::event_node, "event_node",
            "record events without the external flag, so that they become edges"},
    RuleRow{Rule::semaphore_node, "semaphore_node", "external semaphores cannot be replayed"},
    RuleRow{Rule::unknown_node, "unknown_node",
            "use kernels, memsets and device-to-device copies only"},
    RuleRow{Rule::too_many_nodes, "too_many_nodes",
            "do more work in fewer kernels: graphs of all shapes go into one recording"},
    RuleRow{Rule::array_copy, "array_copy", "copy between linear memory, not CUDA arrays"},
    RuleRow{Rule::cuda_array, "cuda_array",
            "keep data in linear memory and read it by pointers: no recording holds CUDA arrays, "
            "textures and surfaces"},
    RuleRow{Rule::host_memory_copy, "host_memory_copy",
            "copy what kernels need to device memory in prepare"},
    RuleRow{Rule::managed_memory, "managed_memory",
            "allocate device memory: managed memory moves between host and device"},
    RuleRow{Rule::host_pointer, "host_pointer",
            "copy what kernels need to device memory in prepare"},
    RuleRow{Rule::module_global_pointer, "module_global_pointer",
            "its address differs in another process; let the kernel name the variable, or use "
            "allocated memory"},
    RuleRow{Rule::module_variable_changed, "module_variable_changed",
            "module variables start from their initial values in every replay; keep such data in "
            "allocated memory"},
    RuleRow{Rule::outside_launch, "outside_launch",
            "launch all work of kernel_fn on the current stream, or on streams that wait for an "
            "event of it"},
    RuleRow{Rule::own_capture, "own_capture",
            "kjudge captures kernel_fn itself: leave captures and CUDA graphs out, in prepare too "
            "(torch.cuda.graph, torch.compile with mode reduce-overhead or max-autotune, Triton's "
            "do_bench_cudagraph)"},
    RuleRow{Rule::unjoined, "unjoined",
            "make the current stream wait for an event of every stream that kernel_fn used"},
    RuleRow{Rule::capture_invalidated, "capture_invalidated",
            "leave synchronization, synchronous copies and queries out of kernel_fn"},
    RuleRow{
        Rule::outside_arena, "outside_arena",
        "allocate through the CUDA driver or runtime of this process, so that the recorder sees "
        "it"},
    RuleRow{Rule::freed_memory, "freed_memory",
            "keep what kernel_fn uses allocated: hold it in state"},
    RuleRow{Rule::imported_memory, "imported_memory",
            "memory of another process does not exist in a replay"},
    RuleRow{Rule::aliased_memory, "aliased_memory",
            "map memory at one address: a replay gives every address memory of its own"},
    RuleRow{Rule::access_policy_window, "access_policy_window",
            "launch without an access policy window: lines must not persist between replays"},
    RuleRow{Rule::device_updatable, "device_updatable",
            "launch without the device-updatable attribute"},
    RuleRow{Rule::device_launch, "device_launch",
            "launch from the host: work that kernels start themselves cannot be recorded. If only "
            "other kernels of the file do so, compile this one by itself"},
    RuleRow{Rule::device_heap, "device_heap",
            "allocate in prepare and pass the address: the device's heap outlives a replay. If "
            "only other kernels of the file use it, compile this one by itself"},
    RuleRow{Rule::nccl, "nccl",
            "compute on this device alone: the other ends of a communicator do not exist in a "
            "replay"},
    RuleRow{Rule::torch_rng, "torch_rng",
            "draw random numbers in prepare, or let a kernel of your own make them from a seed and "
            "a counter: torch's generator does not advance in a replay. If torch.compile asks for "
            "it, call what it compiles in prepare, with every shape"},
    RuleRow{Rule::unknown_module, "unknown_module",
            "load it with cuModuleLoadData or cuLibraryLoadData of this process"},
    RuleRow{Rule::writes_input, "writes_input",
            "inputs are read-only in a replay; write to memory of your own"},
    RuleRow{Rule::stale_argument, "stale_argument",
            "use the inputs and outputs that this call of kernel_fn was given"},
    RuleRow{Rule::returned_input, "returned_input",
            "return memory that the kernels write, not an input"},
    RuleRow{Rule::outputs_overlap, "outputs_overlap", "give every output memory of its own"},
};

constexpr const RuleRow* find_rule(std::string_view name) {  // nullptr: none
  for (const RuleRow& row : kRules) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

constexpr const RuleRow& row(Rule rule) { return kRules[static_cast<std::size_t>(rule)]; }

constexpr bool rules_in_order() {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (static_cast<std::size_t>(kRules[i].rule) != i) return false;
  }
  return true;
}
static_assert(rules_in_order(), "kRules has one row per Rule, in its order");

// "`where`: `what`; what to do".
class Refused : public Error {
 public:
  Refused(Rule rule, std::string_view what,
          std::source_location location = std::source_location::current())
      : Error(Fault::submission, cat(what, "; ", row(rule).what_to_do), location), rule_(rule) {}
  Rule rule() const { return rule_; }

 private:
  Rule rule_;
};

}  // namespace kjudge
