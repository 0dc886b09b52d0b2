// SPDX-License-Identifier: Apache-2.0
// The host driver, through the API alone and under the names it exports.
#include "host_driver.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

using namespace kjudge;

TEST_CASE("the host driver has every entry of kjudge's table") {
  const Driver& driver = Driver::open(DriverKind::host);
  int version = 0;
  CHECK(driver.cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version == 13000);
}

TEST_CASE("cuGetProcAddress finds a name's newest version that was asked for") {
  const auto get = [](const char* name, int version, cuuint64_t flags = 0) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    CHECK(CU(cuGetProcAddress)(name, &function, version, flags, &status) == CUDA_SUCCESS);
    return std::pair(function, status);
  };
  CHECK(get("cuMemAlloc", 12000).first == host_symbol("cuMemAlloc_v2"));
  CHECK(get("cuStreamGetCaptureInfo", 10010).first == host_symbol("cuStreamGetCaptureInfo"));
  CHECK(get("cuStreamGetCaptureInfo", 12000).first == host_symbol("cuStreamGetCaptureInfo_v2"));
  CHECK(get("cuStreamGetCaptureInfo", 12030).first == host_symbol("cuStreamGetCaptureInfo_v3"));
  CHECK(get("cuGraphAddNode", 12020).first == host_symbol("cuGraphAddNode"));
  CHECK(get("cuEventElapsedTime", 2000).first == host_symbol("cuEventElapsedTime"));
  CHECK(get("cuEventElapsedTime", 13000).first == host_symbol("cuEventElapsedTime_v2"));
  CHECK(get("cuNoSuchThing", 12000) == std::pair<void*, CUdriverProcAddressQueryResult>(
                                           nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
  CHECK(get("cuGraphAddNode", 11000) == std::pair<void*, CUdriverProcAddressQueryResult>(
                                            nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
  void* function = nullptr;
  CHECK(CU(cuGetProcAddress)("cuInit", &function, 14000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("a kernel runs once for each block, in any grid") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::uint32_t> out(5 * 3 * 2);
  module.launch("places", {5, 3, 2}, {8, 1, 1}, out.pointer());
  const auto cells = out.read();
  for (unsigned z = 0; z < 2; ++z) {
    for (unsigned y = 0; y < 3; ++y) {
      for (unsigned x = 0; x < 5; ++x) {
        CHECK(cells[(z * 3 + y) * 5 + x] == x + 100 * y + 10000 * z + 8000000);
      }
    }
  }
  // Many blocks: each exactly once.
  const unsigned n = 100'000;
  const DeviceArray<std::uint32_t> wide(n);
  module.launch("places", {n, 1, 1}, {1, 1, 1}, wide.pointer());
  const auto all = wide.read();
  unsigned wrong = 0;
  for (unsigned i = 0; i < n; ++i) wrong += all[i] != i + 1000000;
  CHECK(wrong == 0);
}

TEST_CASE("parameters of every size and alignment arrive, as pointers and as a buffer") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<double> out(12);
  struct Wide {
    char tag;
    double value;
    short tail;
  } h{'h', 8.5, 9};
  CUdeviceptr pointer = out.pointer();
  char a = 'a', c = 'c', e = 'e', i = 'i';
  short b = -2;
  int d = 4;
  double f = 5.25;
  float g = 6.5f;
  std::int64_t j = std::int64_t{1} << 40;
  void* parameters[] = {&pointer, &a, &b, &c, &d, &e, &f, &g, &h, &i, &j};
  const std::vector<double> expected = {'a', -2,  'c', 4, 'e', 5.25,
                                        6.5, 'h', 8.5, 9, 'i', static_cast<double>(j)};
  const CUfunction mixed = module.function("mixed");
  REQUIRE(CU(cuLaunchKernel)(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
  CHECK(out.read() == expected);
  // The same through a parameter buffer laid out by cuFuncGetParamInfo.
  struct Laid {
    CUdeviceptr out;
    char a;
    short b;
    char c;
    int d;
    char e;
    double f;
    float g;
    Wide h;
    char i;
    std::int64_t j;
  } buffer{pointer, a, b, c, d, e, f, g, h, i, j};
  const std::size_t offsets[] = {offsetof(Laid, out), offsetof(Laid, a), offsetof(Laid, b),
                                 offsetof(Laid, c),   offsetof(Laid, d), offsetof(Laid, e),
                                 offsetof(Laid, f),   offsetof(Laid, g), offsetof(Laid, h),
                                 offsetof(Laid, i),   offsetof(Laid, j)};
  for (std::size_t n = 0; n < 11; ++n) {
    std::size_t offset = 0;
    CHECK(CU(cuFuncGetParamInfo)(mixed, n, &offset, nullptr) == CUDA_SUCCESS);
    CHECK(offset == offsets[n]);
  }
  std::size_t offset = 0;
  CHECK(CU(cuFuncGetParamInfo)(mixed, 11, &offset, nullptr) == CUDA_ERROR_INVALID_VALUE);
  out.fill(0);
  std::size_t size = sizeof(buffer);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  REQUIRE(CU(cuLaunchKernel)(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra) == CUDA_SUCCESS);
  CHECK(out.read() == expected);
  size = 8;
  CHECK(CU(cuLaunchKernel)(mixed, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra) ==
        CUDA_ERROR_INVALID_VALUE);
}
