// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "driver/kernel_module.h"
#include "record/interpose.h"
#include "record/pointers.h"

namespace kjudge {

struct RecordingOptions {
  int device = 0;
  std::uint64_t seed = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t bundle_limit_bytes = 0;
};

struct RecordingSeconds {
  double import_s = 0, prepare_s = 0, capture_s = 0;
};

// One capture from begin to bundle; see record.h for the order. One thread.
class Recording {
 public:
  Recording(const Watched& watched, const RecordingOptions& options);

  void open_shape(std::string name);
  std::uint64_t add_tensor(Role role, TensorSpec spec);
  void fill(std::string_view name, RecordedFill fill);
  void check_no_capture(std::string_view where) const;
  void begin_capture(CUstream stream);
  void end_capture(CUstream stream);
  void abandon_capture(CUstream stream);
  bool capturing() const { return capturing_; }
  void returned(std::string_view name, std::uint64_t address);
  void write(const std::filesystem::path& path, const RecordingSeconds& seconds);

  // Device memory in use that write() left out, since nothing that kernels are given leads to it.
  struct LeftOut {
    std::uint64_t bytes = 0, allocations = 0;
  };
  LeftOut left_out() const { return left_out_; }

 private:
  // Bytes of a used module's variables, equal to those at load.
  struct Variable {
    LoadedVariable where;
    Bytes bytes;
  };

  RecordedShape& shape();
  RecordedTensor& tensor(std::string_view name);
  void make_input(const RecordedShape& shape, const RecordedTensor& tensor) const;
  void poison_outputs(const RecordedShape& shape) const;
  std::uint64_t hash(std::uint64_t address, std::uint64_t bytes) const;
  void check_inputs_unchanged() const;
  void check_untouched() const;
  void check_node_count(std::string_view where) const;
  std::vector<std::size_t> used_images() const;
  void check_device_code(const std::vector<std::size_t>& used) const;
  std::vector<LoadedVariable> loaded_variables() const;
  std::vector<Variable> unchanged_variables(const std::vector<std::size_t>& used,
                                            const std::vector<LoadedVariable>& all) const;
  Bundle describe(const std::vector<std::size_t>& used, const std::vector<Allocation>& memory,
                  const std::vector<Variable>& variables, const RecordingSeconds& seconds) const;
  void clear_returned() const;
  void require_cupti() const;
  void audit() const;
  std::vector<std::uint64_t> replay(const RecordedShape& shape) const;

  const Watched& watched_;
  const Driver& driver_;
  RecordingOptions options_;
  std::unique_ptr<KernelModule> kernels_;
  std::vector<RecordedShape> shapes_;
  bool capturing_ = false;
  LeftOut left_out_;
};

}  // namespace kjudge
