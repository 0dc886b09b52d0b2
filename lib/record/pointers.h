// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "driver/kernels.h"
#include "record/interpose.h"
#include "record/rules.h"

namespace kjudge {

// Made-up values: params without address, key and source, which tensors of the same shape give; or
// the bytes of a file.
struct RecordedFill {
  FillParams params{};
  std::string key_of, source;  // empty: the tensor's own, none
  std::string file;            // empty: params say what the values are
};

// One shape as it was captured.
struct RecordedTensor {
  Role role = Role::input;
  TensorSpec spec;
  std::uint64_t address = 0;
  std::uint64_t filled_hash = 0;          // of an input's bytes after fill
  std::uint64_t hash_before_capture = 0;  // of an output's, poisoned, or an inout's
  std::optional<RecordedFill> fill;
};

struct RecordedShape {
  std::string name;
  std::vector<RecordedTensor> tensors;
  Graph graph;  // KernelNode::module indexes Observed's images
  CUgraph captured = nullptr;
};

// A variable of a loaded module, where this process has it.
struct LoadedVariable {
  std::size_t image = 0;
  std::string name;
  std::uint64_t address = 0, size = 0;
};

// Checks what nodes point to: what a replay has at the same address is fine, all else is refused
// with the node, the argument and the reason. Words of eight bytes in arguments and, aligned, from
// there on in the state memory that can be reached: a pointer a kernel could follow. What no such
// word leads to, a recording need not hold.
class PointerRules {
 public:
  PointerRules(const Watched& watched, const std::vector<RecordedShape>& shapes,
               const std::vector<LoadedVariable>& variables);

  void check(const RecordedShape& shape);
  // Of all shapes that were checked: tensors, and the state memory that was reached. Ascending.
  std::vector<Allocation> reached() const;

 private:
  // What no replay has at the same address.
  struct Forbidden {
    std::uint64_t begin, end;
    Rule rule;
    std::string what;
  };

  void check_arguments(const RecordedShape& shape, std::size_t node, const KernelNode& kernel);
  void check_argument_word(const RecordedShape& shape, std::uint64_t word, bool alone,
                           const std::string& where);
  void check_copied_end(const RecordedShape& shape, std::uint64_t address, std::uint64_t bytes,
                        bool written, const std::string& where);
  void check_belongs(const RecordedShape& shape, const Allocation& allocation,
                     const std::string& where) const;
  void check_reached_memory();
  const Forbidden* forbidden(std::uint64_t word) const;
  const Allocation* live(std::uint64_t word) const;
  const Allocation* near(std::uint64_t word) const;
  void reach(const Allocation& allocation, const std::string& where);

  const Watched& watched_;
  const std::vector<RecordedShape>& shapes_;
  std::vector<Allocation> live_;
  std::vector<Forbidden> forbidden_;  // ascending
  // On the host driver a kernel could follow any pointer of this process.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> host_maps_;
  std::vector<bool> reached_;  // by index into live_
  std::vector<std::size_t> to_scan_;
};

}  // namespace kjudge
