// SPDX-License-Identifier: Apache-2.0
#include "driver/measuring_module.h"

#include <algorithm>

// The images, put into this program by kernel_images.S.
extern "C" const char kjudge_gpu_measuring[], kjudge_gpu_measuring_end[];
extern "C" const char kjudge_host_measuring[], kjudge_host_measuring_end[];

namespace kjudge {
namespace {

constexpr unsigned kBlockThreads = 256;
constexpr unsigned kBlocksEach = 8;  // of each multiprocessor: 2048 threads, all it can hold

}  // namespace

MeasuringModule::MeasuringModule(const Driver& driver) : driver_(driver) {
  KJ_DRIVER(driver, cuModuleLoadData(&module_, image(driver.kind).data()));
  try {
    const auto get = [&](CUfunction* function, const char* kernel) {
      KJ_DRIVER(driver, cuModuleGetFunction(function, module_, kernel));
    };
    get(&read_, "kjudge_read");
    get(&copy_, "kjudge_copy");
    get(&multiply_add_32_, "kjudge_multiply_add_32");
    get(&multiply_add_64_, "kjudge_multiply_add_64");
    CUdevice device;
    int count = 0;
    KJ_DRIVER(driver, cuCtxGetDevice(&device));
    KJ_DRIVER(driver,
              cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    multiprocessors_ = static_cast<unsigned>(std::max(count, 1));
  } catch (...) {
    driver.cuModuleUnload(module_);
    throw;
  }
}

MeasuringModule::~MeasuringModule() { driver_.cuModuleUnload(module_); }

std::string_view MeasuringModule::image(DriverKind kind) {
  if (kind == DriverKind::host) return {kjudge_host_measuring, kjudge_host_measuring_end};
  return {kjudge_gpu_measuring, kjudge_gpu_measuring_end};
}

MeasuringModule::Launch MeasuringModule::launch_for(std::uint64_t bytes) const {
  const bool host = driver_.kind == DriverKind::host;
  const std::uint64_t per_block = host ? 1u << 16 : kBlockThreads * 16;
  const std::uint64_t most =
      static_cast<std::uint64_t>(multiprocessors_) * (host ? 1 : kBlocksEach);
  return {static_cast<unsigned>(std::clamp<std::uint64_t>(bytes / per_block, 1, most)),
          kBlockThreads};
}

void MeasuringModule::launch(CUfunction function, Launch as, CUstream stream,
                             const void* params) const {
  void* arguments[] = {const_cast<void*>(params)};
  KJ_DRIVER(driver_, cuLaunchKernel(function, as.blocks, 1, 1, as.threads, 1, 1, 0, stream,
                                    arguments, nullptr));
}

void MeasuringModule::read(CUstream stream, const ReadParams& params) const {
  launch(read_, launch_for(params.bytes), stream, &params);
}

void MeasuringModule::copy(CUstream stream, const CopyParams& params) const {
  launch(copy_, launch_for(params.bytes), stream, &params);
}

double MeasuringModule::multiply_add(CUstream stream, Width width,
                                     const MultiplyAddParams& params) const {
  const bool host = driver_.kind == DriverKind::host;
  const Launch all{multiprocessors_ * (host ? 1 : kBlocksEach), kBlockThreads};
  launch(width == Width::float32 ? multiply_add_32_ : multiply_add_64_, all, stream, &params);
  const double chains = host ? kHostChains : double{kBlockThreads} * kGpuChains;
  return 2 * chains * all.blocks * static_cast<double>(params.iterations);
}

}  // namespace kjudge
