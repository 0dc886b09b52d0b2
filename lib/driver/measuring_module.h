// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "driver/driver.h"
#include "driver/measuring_kernels.h"

namespace kjudge {

// The kernels of driver/measuring_kernels.h, loaded into the current context. Their launches are
// those of a device that has nothing else to do.
class MeasuringModule {
 public:
  explicit MeasuringModule(const Driver& driver);
  ~MeasuringModule();
  MeasuringModule(const MeasuringModule&) = delete;
  MeasuringModule& operator=(const MeasuringModule&) = delete;

  // As a file that cuModuleLoadData takes, for who loads it elsewhere: a fat binary, or a module of
  // the host driver. There the kernels are kjudge_read, kjudge_copy and so on.
  static std::string_view image(DriverKind kind);

  struct Launch {
    unsigned blocks = 1, threads = 1;
  };
  // Of read and copy.
  Launch launch_for(std::uint64_t bytes) const;

  void read(CUstream stream, const ReadParams& params) const;
  void copy(CUstream stream, const CopyParams& params) const;
  // Returns how many operations that is, a multiply-add being two.
  enum class Width { float32, float64 };
  double multiply_add(CUstream stream, Width width, const MultiplyAddParams& params) const;

 private:
  void launch(CUfunction function, Launch as, CUstream stream, const void* params) const;

  const Driver& driver_;
  CUmodule module_ = nullptr;
  unsigned multiprocessors_ = 1;
  CUfunction read_ = nullptr, copy_ = nullptr, multiply_add_32_ = nullptr,
             multiply_add_64_ = nullptr;
};

}  // namespace kjudge
