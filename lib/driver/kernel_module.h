// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "driver/driver.h"
#include "driver/kernels.h"

namespace kjudge {

// kjudge's own kernels, loaded into the current context of a driver. The image (a fat binary for
// GPUs from sm_75 up, an ELF shared object for the host driver) is part of the program.
class KernelModule {
 public:
  explicit KernelModule(const Driver& driver);
  ~KernelModule();
  KernelModule(const KernelModule&) = delete;
  KernelModule& operator=(const KernelModule&) = delete;

  // Of any FillKind.
  void fill(CUstream stream, const FillParams& params) const;
  void compare(CUstream stream, const CompareParams& params) const;
  // Sums of rows at `sums`, RowSums[rows]; params.parts has room for the parts of rows that have
  // several.
  void sum_rows(CUstream stream, SumParams params, std::uint64_t sums) const;
  void judge_rows(CUstream stream, const JudgeRowsParams& params) const;
  void digest(CUstream stream, const DigestParams& params) const;
  void evict(CUstream stream, const EvictParams& params) const;
  // Fills the shared memory of every multiprocessor with `value`.
  void scrub(CUstream stream, std::uint32_t value) const;
  void block(CUstream stream, const BlockParams& params) const;
  void stamp(CUstream stream, const StampParams& params) const;
  void calibrate(CUstream stream, const CalibrateParams& params) const;

  // An empty kernel, for the null graph.
  CUfunction empty() const { return empty_; }

 private:
  void launch(CUfunction function, unsigned blocks, unsigned threads, unsigned shared_bytes,
              CUstream stream, const void* params) const;

  // Blocks for a warp per part of `rows` rows; on the host driver, for their elements.
  unsigned row_blocks(std::uint64_t rows, std::uint64_t row_size) const;

  const Driver& driver_;
  CUmodule module_ = nullptr;
  unsigned multiprocessors_ = 1;
  unsigned shared_bytes_ = 0;
  CUfunction fill_ = nullptr, fill_structured_ = nullptr, compare_ = nullptr, sum_parts_ = nullptr,
             join_parts_ = nullptr, judge_rows_ = nullptr, bound_rows_ = nullptr, digest_ = nullptr,
             evict_ = nullptr, scrub_ = nullptr, block_ = nullptr, stamp_ = nullptr,
             calibrate_ = nullptr, empty_ = nullptr;
};

}  // namespace kjudge
