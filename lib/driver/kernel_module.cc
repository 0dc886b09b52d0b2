// SPDX-License-Identifier: Apache-2.0
#include "driver/kernel_module.h"

#include <algorithm>

// The images, put into this program by kernel_images.S.
extern "C" const unsigned char kjudge_gpu_kernels[];
extern "C" const unsigned char kjudge_host_kernels_image[];

namespace kjudge {
namespace {

constexpr unsigned kThreads = 256;

// Enough blocks that work spreads evenly, few enough that each has some.
unsigned blocks_for(std::uint64_t items, unsigned multiprocessors, DriverKind kind) {
  const std::uint64_t per_block = kind == DriverKind::host ? 16384 : kThreads * 4;
  const std::uint64_t most = static_cast<std::uint64_t>(multiprocessors) * 8;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(items / per_block, 1, most));
}

}  // namespace

KernelModule::KernelModule(const Driver& driver) : driver_(driver) {
  if (driver.kind == DriverKind::host &&
      !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) {
    throw Error(Fault::device, "the host driver's kernels need a processor with AVX2 and FMA");
  }
  const auto* image =
      driver.kind == DriverKind::host ? kjudge_host_kernels_image : kjudge_gpu_kernels;
  KJ_DRIVER(driver, cuModuleLoadData(&module_, image));
  try {
    const auto get = [&](CUfunction* function, const char* kernel) {
      KJ_DRIVER(driver, cuModuleGetFunction(function, module_, kernel));
    };
    get(&fill_, "kjudge_fill");
    get(&fill_structured_, "kjudge_fill_structured");
    get(&compare_, "kjudge_compare");
    get(&sum_parts_, "kjudge_sum_parts");
    get(&join_parts_, "kjudge_join_parts");
    get(&judge_rows_, "kjudge_judge_rows");
    get(&bound_rows_, "kjudge_bound_rows");
    get(&digest_, "kjudge_digest");
    get(&evict_, "kjudge_evict");
    get(&scrub_, "kjudge_scrub");
    get(&block_, "kjudge_block");
    get(&stamp_, "kjudge_stamp");
    get(&calibrate_, "kjudge_calibrate");
    get(&empty_, "kjudge_empty");
    CUdevice device;
    int count = 0, shared = 0;
    KJ_DRIVER(driver, cuCtxGetDevice(&device));
    KJ_DRIVER(driver,
              cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    KJ_DRIVER(driver, cuDeviceGetAttribute(
                          &shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
    multiprocessors_ = static_cast<unsigned>(std::max(count, 1));
    shared_bytes_ = static_cast<unsigned>(std::max(shared, 0));
    KJ_DRIVER(driver, cuFuncSetAttribute(scrub_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         static_cast<int>(shared_bytes_)));
  } catch (...) {
    driver.cuModuleUnload(module_);
    throw;
  }
}

KernelModule::~KernelModule() { driver_.cuModuleUnload(module_); }

void KernelModule::launch(CUfunction function, unsigned blocks, unsigned threads,
                          unsigned shared_bytes, CUstream stream, const void* params) const {
  void* arguments[] = {const_cast<void*>(params)};
  KJ_DRIVER(driver_, cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream,
                                    arguments, nullptr));
}

void KernelModule::fill(CUstream stream, const FillParams& params) const {
  KJ_CHECK(params.kind != fill_python);
  if (params.count == 0) return;
  launch(params.kind < fill_bernoulli ? fill_ : fill_structured_,
         blocks_for(params.count, multiprocessors_, driver_.kind), kThreads, 0, stream, &params);
}

unsigned KernelModule::row_blocks(std::uint64_t rows, std::uint64_t row_size) const {
  const bool host = driver_.kind == DriverKind::host;
  const std::uint64_t items = host ? rows * row_size : rows * parts_per_row(row_size) * 32 * 4;
  return blocks_for(items, multiprocessors_, driver_.kind);
}

void KernelModule::compare(CUstream stream, const CompareParams& params) const {
  if (params.count == 0) return;
  if (params.kind == compare_row_bound) {
    launch(bound_rows_, row_blocks(params.count / params.row_size, params.row_size), kThreads, 0,
           stream, &params);
  } else {
    launch(compare_, blocks_for(params.count, multiprocessors_, driver_.kind), kThreads, 0, stream,
           &params);
  }
}

void KernelModule::sum_rows(CUstream stream, SumParams params, std::uint64_t sums) const {
  if (params.count == 0) return;
  const std::uint64_t rows = params.count / params.row_size;
  const std::uint64_t per_row = parts_per_row(params.row_size);
  if (per_row == 1) params.parts = sums;
  launch(sum_parts_, row_blocks(rows, params.row_size), kThreads, 0, stream, &params);
  if (per_row == 1) return;
  const JoinParams join{params.parts, sums, rows, per_row};
  launch(join_parts_, row_blocks(rows, per_row), kThreads, 0, stream, &join);
}

void KernelModule::judge_rows(CUstream stream, const JudgeRowsParams& params) const {
  if (params.rows == 0) return;
  launch(judge_rows_, blocks_for(params.rows, multiprocessors_, driver_.kind), kThreads, 0, stream,
         &params);
}

void KernelModule::digest(CUstream stream, const DigestParams& params) const {
  if (params.bytes == 0) return;
  launch(digest_, blocks_for(params.bytes / 8, multiprocessors_, driver_.kind), kThreads, 0, stream,
         &params);
}

void KernelModule::evict(CUstream stream, const EvictParams& params) const {
  if (params.bytes == 0) return;
  launch(evict_, blocks_for(params.bytes / 8, multiprocessors_, driver_.kind), kThreads, 0, stream,
         &params);
}

void KernelModule::scrub(CUstream stream, std::uint32_t value) const {
  const ScrubParams params{value, shared_bytes_};
  // A block that takes all shared memory has its multiprocessor for itself; twice as many blocks as
  // multiprocessors leave none out.
  launch(scrub_, multiprocessors_ * 2, 1024, shared_bytes_, stream, &params);
}

void KernelModule::block(CUstream stream, const BlockParams& params) const {
  launch(block_, 1, 1, 0, stream, &params);
}

void KernelModule::stamp(CUstream stream, const StampParams& params) const {
  launch(stamp_, 1, 1, 0, stream, &params);
}

void KernelModule::calibrate(CUstream stream, const CalibrateParams& params) const {
  launch(calibrate_, 1, 1, 0, stream, &params);
}

}  // namespace kjudge
