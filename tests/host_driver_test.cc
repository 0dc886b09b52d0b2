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

TEST_CASE("a module is read as bytes before anything of it runs") {
  const HostContext context;
  CUmodule module = nullptr;
  const auto load = [&](const std::string& image) {
    return CU(cuModuleLoadData)(&module, image.data());
  };
  const std::string good = module_bytes("kernels");
  CHECK(CU(cuModuleLoadData)(&module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(load(std::string(4096, '\0')) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load("\x7f"
             "ELF" +
             std::string(4096, '\x01')) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(module_bytes("no_kernels")) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(module_bytes("twice")) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(module_bytes("undefined")) == CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
  std::string other_machine = good;
  other_machine[18] = static_cast<char>(183);  // AArch64
  CHECK(load(other_machine) == CUDA_ERROR_INVALID_IMAGE);
  std::string executable = good;
  executable[16] = 2;  // ET_EXEC
  CHECK(load(executable) == CUDA_ERROR_INVALID_IMAGE);
  // The file's way in.
  CHECK(CU(cuModuleLoad)(&module, "/no/such/file") == CUDA_ERROR_FILE_NOT_FOUND);
  REQUIRE(CU(cuModuleLoad)(&module, (std::string(KJUDGE_HOST_KERNELS) + "/kernels.so").c_str()) ==
          CUDA_SUCCESS);
  CUfunction function = nullptr;
  CHECK(CU(cuModuleGetFunction)(&function, module, "no_such_kernel") == CUDA_ERROR_NOT_FOUND);
  CHECK(CU(cuModuleGetFunction)(&function, module, "nothing") == CUDA_SUCCESS);
  CHECK(CU(cuModuleUnload)(module) == CUDA_SUCCESS);
  CHECK(CU(cuModuleUnload)(module) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("each load has its own variables") {
  const HostContext context;
  const HostModule first("kernels"), second("kernels");
  const DeviceArray<int> seen(1);
  const auto count = [&](const HostModule& module) {
    module.launch("count", {}, {}, seen.pointer());
    return seen.read()[0];
  };
  CHECK(count(first) == 8);
  CHECK(count(first) == 9);
  CHECK(count(second) == 8);
  CUdeviceptr address = 0;
  std::size_t size = 0;
  REQUIRE(CU(cuModuleGetGlobal)(&address, &size, first.handle(), "counter") == CUDA_SUCCESS);
  CHECK(size == sizeof(int));
  const int restored = 100;
  REQUIRE(CU(cuMemcpyHtoD)(address, &restored, 4) == CUDA_SUCCESS);
  CHECK(count(first) == 101);
  CHECK(CU(cuModuleGetGlobal)(&address, &size, first.handle(), "no_such") == CUDA_ERROR_NOT_FOUND);
  // Loads one after another, on the same descriptor, never find an older one.
  for (int i = 0; i < 5; ++i) {
    const HostModule again("kernels");
    CHECK(count(again) == 8);
  }
}

TEST_CASE("a module lists its kernels, of all its files, and each its parameters") {
  const HostContext context;
  const HostModule module("kernels");
  unsigned count = 0;
  REQUIRE(CU(cuModuleGetFunctionCount)(&count, module.handle()) == CUDA_SUCCESS);
  std::vector<CUfunction> functions(count);
  REQUIRE(CU(cuModuleEnumerateFunctions)(functions.data(), count, module.handle()) == CUDA_SUCCESS);
  std::vector<std::string> names;
  for (const CUfunction function : functions) {
    const char* name = nullptr;
    REQUIRE(CU(cuFuncGetName)(&name, function) == CUDA_SUCCESS);
    names.push_back(name);
    CUmodule owner = nullptr;
    CHECK(CU(cuFuncGetModule)(&owner, function) == CUDA_SUCCESS);
    CHECK(owner == module.handle());
  }
  for (const char* name : {"nothing", "scale", "many", "store_at", "sum_table"}) {
    CHECK(std::count(names.begin(), names.end(), name) == 1);
  }
  std::size_t offset = 0, size = 0;
  const CUfunction many = module.function("many");
  CHECK(CU(cuFuncGetParamInfo)(many, 23, &offset, &size) == CUDA_SUCCESS);
  CHECK(offset == 8 + 22 * 4);
  CHECK(size == 4);
  CHECK(CU(cuFuncGetParamInfo)(module.function("nothing"), 0, &offset, &size) ==
        CUDA_ERROR_INVALID_VALUE);
  const DeviceArray<long> out(1);
  int v[23];
  std::iota(v, v + 23, 1);
  CUdeviceptr pointer = out.pointer();
  std::vector<void*> parameters = {&pointer};
  for (int& value : v) parameters.push_back(&value);
  REQUIRE(CU(cuLaunchKernel)(many, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr) ==
          CUDA_SUCCESS);
  CHECK(out.read()[0] == 22 * 23 / 2 + 23000);
}

TEST_CASE("a library's kernels belong to no context until they are used in one") {
  const std::string image = module_bytes("kernels");
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  const auto load = CU(cuLibraryLoadData);
  REQUIRE(load(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  CHECK(load(&library, std::string(100, 'x').data(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
        CUDA_ERROR_INVALID_IMAGE);
  REQUIRE(CU(cuLibraryGetKernel)(&kernel, library, "affine") == CUDA_SUCCESS);
  CHECK(CU(cuLibraryGetKernel)(&kernel, library, "no_such") == CUDA_ERROR_NOT_FOUND);
  const char* name = nullptr;
  CHECK(CU(cuKernelGetName)(&name, kernel) == CUDA_SUCCESS);
  CHECK(std::string(name) == "affine");
  CUlibrary owner = nullptr;
  CHECK(CU(cuKernelGetLibrary)(&owner, kernel) == CUDA_SUCCESS);
  CHECK(owner == library);
  CUfunction in_first = nullptr;
  {
    const HostContext first;
    REQUIRE(CU(cuKernelGetFunction)(&in_first, kernel) == CUDA_SUCCESS);
    CUmodule module = nullptr, of_function = nullptr;
    CHECK(CU(cuLibraryGetModule)(&module, library) == CUDA_SUCCESS);
    CHECK(CU(cuFuncGetModule)(&of_function, in_first) == CUDA_SUCCESS);
    CHECK(module == of_function);
    // A kernel launches as a function, too; a captured node tells both.
    const DeviceArray<std::int64_t> value(1);
    value.write({4});
    CUdeviceptr at = value.pointer();
    std::int64_t factor = 10, term = 2;
    void* parameters[] = {&at, &factor, &term};
    REQUIRE(CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                               parameters, nullptr) == CUDA_SUCCESS);
    CHECK(value.read()[0] == 42);
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
    CUDA_KERNEL_NODE_PARAMS params{};
    params.kern = kernel;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = parameters;
    REQUIRE(CU(cuGraphAddKernelNode)(&node, graph, nullptr, 0, &params) == CUDA_SUCCESS);
    CUDA_KERNEL_NODE_PARAMS got{};
    REQUIRE(CU(cuGraphKernelNodeGetParams)(node, &got) == CUDA_SUCCESS);
    CHECK(got.func == in_first);
    CHECK(got.kern == kernel);
    CHECK(got.ctx == first.handle());
    CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    std::size_t offset = 0, size = 0;
    CHECK(CU(cuKernelGetParamInfo)(kernel, 2, &offset, &size) == CUDA_SUCCESS);
    CHECK(offset == 16);
    int shared = 0;
    CHECK(CU(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, kernel,
                                   0) == CUDA_SUCCESS);
    CHECK(CU(cuFuncGetAttribute)(&shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                 in_first) == CUDA_SUCCESS);
    CHECK(shared == 60000);
    const HostContext second;
    CUfunction in_second = nullptr;
    CHECK(CU(cuKernelGetFunction)(&in_second, kernel) == CUDA_SUCCESS);
    CHECK(in_second != in_first);
  }
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
  CHECK(CU(cuKernelGetName)(&name, kernel) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("launches are checked") {
  const HostContext context;
  const HostModule module("kernels");
  const CUfunction nothing = module.function("nothing");
  const auto launch = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz) {
    return CU(cuLaunchKernel)(nothing, gx, gy, gz, bx, by, bz, 0, nullptr, nullptr, nullptr);
  };
  CHECK(launch(1, 1, 1, 1024, 1, 1) == CUDA_SUCCESS);
  CHECK(launch(0, 1, 1, 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 1, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 1025, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 65536, 1, 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 1, 1, 65) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLaunchKernel)(module.function("scale"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                           nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_HANDLE);
  CHECK(CU(cuLaunchCooperativeKernel)(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr) ==
        CUDA_ERROR_NOT_SUPPORTED);
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}

TEST_CASE("what the header gives a kernel") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<std::uint64_t> cells(4);
  cells.fill(0);
  module.launch("atomics", {1000, 1, 1}, {}, cells.at(0), cells.at(1), cells.at(2), cells.at(3));
  const auto got = cells.read();
  CHECK(static_cast<std::int32_t>(got[0]) == 1000);
  CHECK(got[1] == std::uint64_t{1000} << 33);
  float f = 0;
  double d = 0;
  std::memcpy(&f, &got[2], sizeof(f));
  std::memcpy(&d, &got[3], sizeof(d));
  CHECK(f == 500.0f);
  CHECK(d == 250.0);
  int cores = 0;
  CHECK(CU(cuDeviceGetAttribute)(&cores, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) ==
        CUDA_SUCCESS);
  const auto before = std::chrono::steady_clock::now().time_since_epoch();
  module.launch("cores", {}, {}, cells.at(0), cells.at(1));
  const auto answer = cells.read();
  const auto after = std::chrono::steady_clock::now().time_since_epoch();
  CHECK(static_cast<int>(answer[0]) == cores);
  CHECK(std::chrono::nanoseconds(answer[1]) >= before);
  CHECK(std::chrono::nanoseconds(answer[1]) <= after);
}

TEST_CASE("the device describes this machine") {
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  int count = 0;
  CUdevice device = -1;
  CHECK(CU(cuDeviceGetCount)(&count) == CUDA_SUCCESS);
  CHECK(count == 1);
  CHECK(CU(cuDeviceGet)(&device, 1) == CUDA_ERROR_INVALID_DEVICE);
  REQUIRE(CU(cuDeviceGet)(&device, 0) == CUDA_SUCCESS);
  char name[100] = {}, cut[10] = {};
  CHECK(CU(cuDeviceGetName)(name, sizeof(name), device) == CUDA_SUCCESS);
  CHECK(std::string(name).starts_with("kjudge host driver: "));
  CHECK(CU(cuDeviceGetName)(cut, sizeof(cut), device) == CUDA_SUCCESS);
  CHECK(std::string(cut) == "kjudge ho");
  CUuuid uuid{}, again{};
  CHECK(CU(cuDeviceGetUuid)(&uuid, device) == CUDA_SUCCESS);
  CHECK(CU(cuDeviceGetUuid)(&again, device) == CUDA_SUCCESS);
  CHECK(std::memcmp(&uuid, &again, sizeof(uuid)) == 0);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = -1;
    CHECK(CU(cuDeviceGetAttribute)(&value, which, device) == CUDA_SUCCESS);
    return value;
  };
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) == 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) >= 1 << 18);
  std::size_t bytes = 0;
  CHECK(CU(cuDeviceTotalMem)(&bytes, device) == CUDA_SUCCESS);
  CHECK(bytes > std::size_t{64} << 20);
}

TEST_CASE("contexts: a stack for each thread, limits kept") {
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  CUcontext current = nullptr;
  CHECK(CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == nullptr);
  CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_INVALID_CONTEXT);
  {
    const HostContext first;
    const HostContext second;
    CHECK(CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
    CHECK(current == second.handle());
    CUcontext popped = nullptr;
    CHECK(CU(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
    CHECK(popped == second.handle());
    CHECK(CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
    CHECK(current == first.handle());
    std::thread([] {
      CUcontext none = reinterpret_cast<CUcontext>(1);
      CHECK(CU(cuCtxGetCurrent)(&none) == CUDA_SUCCESS);
      CHECK(none == nullptr);
    }).join();
    std::size_t value = 0;
    CHECK(CU(cuCtxSetLimit)(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 12345) == CUDA_SUCCESS);
    CHECK(CU(cuCtxGetLimit)(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == CUDA_SUCCESS);
    CHECK(value == 12345);
    CHECK(CU(cuCtxSetLimit)(CU_LIMIT_MAX, 1) == CUDA_ERROR_UNSUPPORTED_LIMIT);
    CHECK(CU(cuCtxResetPersistingL2Cache)() == CUDA_SUCCESS);
    CHECK(CU(cuCtxPushCurrent)(second.handle()) == CUDA_SUCCESS);
  }
  CHECK(CU(cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == nullptr);
}

// In a process of its own: other tests may hold the primary context.
TEST_CASE("child: primary contexts" * doctest::skip()) {
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  CUcontext primary = nullptr, again = nullptr;
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&again, 0) == CUDA_SUCCESS);
  CHECK(primary == again);
  CHECK(CU(cuCtxDestroy)(primary) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxSetCurrent)(primary) == CUDA_SUCCESS);
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(CU(cuDevicePrimaryCtxRelease)(0) == CUDA_SUCCESS);
  CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(CU(cuDevicePrimaryCtxRelease)(0) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuCtxSetCurrent)(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("primary contexts are counted") {
  CHECK(run_this_test_in_a_child("child: primary contexts", {}) == 0);
}

TEST_CASE("a child of fork() has no driver") {
  const HostContext context;
  const pid_t child = fork();
  if (child == 0) _exit(CU(cuCtxSynchronize)() == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
