// SPDX-License-Identifier: Apache-2.0
#pragma once

// kjudge's own kernels, launched by a test on every driver this machine has.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "driver/kernel_module.h"
#include "tensor.h"

namespace kjudge {

// A context, the kernels and a stream of one driver.
struct Session {
  explicit Session(DriverKind kind) : driver(Driver::open(kind)) {
    KJ_DRIVER(driver, cuDeviceGet(&device, 0));
    CUcontext context;
    KJ_DRIVER(driver, cuDevicePrimaryCtxRetain(&context, device));
    KJ_DRIVER(driver, cuCtxSetCurrent(context));
    kernels = std::make_unique<KernelModule>(driver);
    KJ_DRIVER(driver, cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
  }
  ~Session() {
    driver.cuStreamDestroy(stream);
    kernels.reset();
    driver.cuDevicePrimaryCtxRelease(device);
  }

  const Driver& driver;
  CUdevice device = 0;
  std::unique_ptr<KernelModule> kernels;
  CUstream stream = nullptr;
};

class Buffer {
 public:
  Buffer(Session& session, std::size_t bytes) : session_(session), bytes_(bytes) {
    KJ_DRIVER(session.driver, cuMemAlloc(&address_, std::max<std::size_t>(bytes, 16)));
  }
  ~Buffer() { session_.driver.cuMemFree(address_); }
  std::uint64_t address() const { return address_; }

  template <class T>
  std::vector<T> read() const {
    std::vector<T> values(bytes_ / sizeof(T));
    KJ_DRIVER(session_.driver, cuStreamSynchronize(session_.stream));
    KJ_DRIVER(session_.driver, cuMemcpyDtoH(values.data(), address_, bytes_));
    return values;
  }
  template <class T>
  void write(const std::vector<T>& values) {
    KJ_DRIVER(session_.driver, cuMemcpyHtoDAsync(address_, values.data(), values.size() * sizeof(T),
                                                 session_.stream));
  }

 private:
  Session& session_;
  std::size_t bytes_;
  CUdeviceptr address_ = 0;
};

inline void on_each_driver(const std::function<void(Session&)>& test) {
  {
    Session host(DriverKind::host);
    test(host);
  }
  if (cuda_available()) {
    Session cuda(DriverKind::cuda);
    test(cuda);
  }
}

template <class T>
std::vector<T> filled(Session& session, FillParams params) {
  const std::size_t bytes = params.kind == fill_bits ? params.count : params.count * sizeof(T);
  Buffer buffer(session, bytes);
  params.address = buffer.address();
  session.kernels->fill(session.stream, params);
  return buffer.read<T>();
}

inline FillParams fill_of(FillKind kind, DType dtype, std::uint64_t count, double a, double b) {
  FillParams params{};
  params.count = count;
  params.key = 0x0123456789abcdef;
  params.a = a;
  params.b = b;
  params.kind = kind;
  params.dtype = static_cast<std::uint32_t>(dtype);
  return params;
}

}  // namespace kjudge
