// SPDX-License-Identifier: Apache-2.0
// Kernels that go wrong on the host driver: each fault's error, that it sticks, that the process
// and other contexts live; time limits; faults asked for.
#include <doctest/doctest.h>
#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "elf_image.h"
#include "host_driver.h"

using namespace kjudge;

namespace {

constexpr std::uint64_t kGranule = 2u << 20;

// Device memory with rights below read and write, in a context of its own.
struct Guarded {
  explicit Guarded(CUmemAccess_flags flags) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    REQUIRE(CU(cuMemCreate)(&handle, kGranule, &properties, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemAddressReserve)(&address, kGranule, 0, 0, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemMap)(address, kGranule, 0, handle, 0) == CUDA_SUCCESS);
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = flags;
    REQUIRE(CU(cuMemSetAccess)(address, kGranule, &access, 1) == CUDA_SUCCESS);
  }
  ~Guarded() {
    // These need no context, so a broken one does not keep the memory.
    CHECK(CU(cuMemUnmap)(address, kGranule) == CUDA_SUCCESS);
    CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
    CHECK(CU(cuMemAddressFree)(address, kGranule) == CUDA_SUCCESS);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
};

// The error is there at the next wait, and stays for every later call of the context.
void check_broken(CUresult expected) {
  CHECK(CU(cuCtxSynchronize)() == expected);
  CHECK(CU(cuCtxSynchronize)() == expected);
  CUdeviceptr pointer = 0;
  CHECK(CU(cuMemAlloc)(&pointer, 4) == expected);
  CUstream stream = nullptr;
  CHECK(CU(cuStreamCreate)(&stream, 0) == expected);
  CHECK(CU(cuStreamSynchronize)(nullptr) == expected);
  std::size_t available = 0, total = 0;
  CHECK(CU(cuMemGetInfo)(&available, &total) == expected);
}

}  // namespace

TEST_CASE("a wrong load or store is an illegal address, on whichever core it happens") {
  // One block faults, each in turn, so that caller and helpers all get to.
  for (unsigned which : {0u, 1u, 7u, 63u}) {
    const HostContext context;
    const HostModule module("kernels");
    const Guarded readable(CU_MEM_ACCESS_FLAGS_PROT_READ);
    const DeviceArray<int> out(1);
    module.launch("load_at", {}, {}, readable.address, out.pointer());
    REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
    module.launch("store_at", {64, 1, 1}, {}, readable.address, which);
    check_broken(CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  {
    const HostContext context;
    const HostModule module("kernels");
    const Guarded closed(CU_MEM_ACCESS_FLAGS_PROT_NONE);
    const DeviceArray<int> out(1);
    module.launch("load_at", {}, {}, closed.address, out.pointer());
    check_broken(CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  {
    const HostContext context;
    const HostModule module("kernels");
    module.launch("store_at", {}, {}, CUdeviceptr{0}, 0u);
    check_broken(CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  // The process and new contexts live.
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<double> out(1);
  module.launch("sum_table", {}, {}, out.pointer());
  CHECK(out.read()[0] == 10);
}

TEST_CASE("a fault ends the blocks that wait for the faulty one") {
  const HostContext context;
  const HostModule module("kernels");
  module.launch("store_or_spin", {64, 1, 1}, {}, CUdeviceptr{16}, 1u);
  check_broken(CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("a kernel is not stopped inside a function that holds a lock of the process") {
  for (int i = 0; i < 20; ++i) {
    const HostContext context;
    const HostModule module("kernels");
    int arrived = 0;
    module.launch("allocate_forever", {64, 1, 1}, {}, &arrived);
    check_broken(CUDA_ERROR_ILLEGAL_INSTRUCTION);
    free(malloc(1 << 20));
    fflush(stderr);
  }
}

TEST_CASE("a kernel that sleeps in the system is stopped all the same") {
  {  // comes to an end
    const HostContext context;
    const HostModule module("kernels");
    module.launch("sleep_forever", {}, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(CU(cuCtxDestroy)(context.handle()) == CUDA_SUCCESS);
  }
}

TEST_CASE("each fault has its error") {
  const auto error_of = [](const char* name, auto... arguments) {
    const HostContext context;
    const HostModule module("kernels");
    module.launch(name, {2, 1, 1}, {}, arguments...);
    const CUresult result = CU(cuCtxSynchronize)();
    check_broken(result);
    return result;
  };
  int zero = 0, out = 0;
  CHECK(error_of("divide", &zero, &out) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(error_of("trap", 0) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  CHECK(error_of("fail_assertion", 7) == CUDA_ERROR_ASSERT);
  CHECK(error_of("throw_up", 0) == CUDA_ERROR_ASSERT);
  int depth = 0;
  CHECK(error_of("overflow_stack", &depth) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(depth > 100);
}

TEST_CASE("a broken context leaves another one alone") {
  const HostContext good;
  const HostModule module("kernels");
  const DeviceArray<double> out(1);
  {
    const HostContext bad;
    const HostModule other("kernels");
    other.launch("trap", {}, {}, 0);
    CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
    CHECK(CU(cuCtxSetCurrent)(good.handle()) == CUDA_SUCCESS);
    module.launch("sum_table", {}, {}, out.pointer());
    CHECK(out.read()[0] == 10);
    CHECK(CU(cuCtxSetCurrent)(bad.handle()) == CUDA_SUCCESS);
    CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_INSTRUCTION);
  }
  CHECK(CU(cuCtxSetCurrent)(good.handle()) == CUDA_SUCCESS);
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}

TEST_CASE("host code keeps its handlers, even one set after the driver's") {
  const HostContext context;
  const HostModule module("kernels");
  module.launch("nothing", {}, {});
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  static volatile sig_atomic_t seen;
  static sigjmp_buf back;
  seen = 0;
  struct sigaction mine {
  }, before{};
  mine.sa_handler = [](int) {
    seen = 1;
    siglongjmp(back, 1);
  };
  mine.sa_flags = SA_NODEFER;
  REQUIRE(sigaction(SIGSEGV, &mine, &before) == 0);
  // The next launch finds the driver's handler gone and goes in front of it again...
  module.launch("store_at", {}, {}, CUdeviceptr{0}, 0u);
  CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(seen == 0);
  // ... and a crash of host code goes to host code.
  void* closed = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (sigsetjmp(back, 1) == 0) {
    *static_cast<volatile int*>(closed) = 1;
  }
  CHECK(seen == 1);
  munmap(closed, 4096);
  sigaction(SIGSEGV, &before, nullptr);
}

TEST_CASE("child: crashes outside kernels" * doctest::skip()) {
  signal(SIGSEGV, SIG_DFL);  // doctest's own
  const HostContext context;
  const HostModule module("kernels");
  module.launch("store_at", {}, {}, CUdeviceptr{0}, 0u);
  CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
  void* closed = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile int*>(closed) = 1;
}

TEST_CASE("a crash outside kernels still ends the process by its signal") {
  CHECK(run_this_test_in_a_child("child: crashes outside kernels", {}) == 128 + SIGSEGV);
}

TEST_CASE("destroying a context stops a kernel that never ends") {
  int never = 0;
  {
    const HostContext context;
    const HostModule module("kernels");
    module.launch("spin", {}, {}, &never);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(CU(cuStreamQuery)(nullptr) == CUDA_ERROR_NOT_READY);
    // From another thread, while this one waits.
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      CHECK(CU(cuCtxDestroy)(context.handle()) == CUDA_SUCCESS);
    });
    CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    other.join();
    CHECK(CU(cuCtxSynchronize)() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CUcontext popped = nullptr;
    CHECK(CU(cuCtxPopCurrent)(&popped) == CUDA_SUCCESS);
  }
}

TEST_CASE("child: resets the primary context" * doctest::skip()) {
  REQUIRE(CU(cuInit)(0) == CUDA_SUCCESS);
  int never = 0;
  CUcontext primary = nullptr;
  REQUIRE(CU(cuDevicePrimaryCtxRetain)(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxPushCurrent)(primary) == CUDA_SUCCESS);
  {
    const HostModule module("kernels");
    module.launch("spin", {8, 1, 1}, {}, &never);
    CHECK(CU(cuDevicePrimaryCtxReset)(0) == CUDA_SUCCESS);
  }
  CHECK(CU(cuCtxPopCurrent)(&primary) == CUDA_SUCCESS);
  unsigned flags = 0;
  int active = 1;
  CHECK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
}

TEST_CASE("resetting the primary context stops a kernel that never ends") {
  CHECK(run_this_test_in_a_child("child: resets the primary context", {}) == 0);
}

TEST_CASE("child: launch time limit" * doctest::skip()) {
  const HostContext context;
  const HostModule module("kernels");
  int never = 0;
  // Under the limit, and host functions as long as they like.
  module.launch("nothing", {100, 1, 1}, {});
  REQUIRE(CU(cuLaunchHostFunc)(
              nullptr, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(300)); },
              nullptr) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  const auto begin = std::chrono::steady_clock::now();
  module.launch("spin", {16, 1, 1}, {}, &never);
  check_broken(CUDA_ERROR_LAUNCH_TIMEOUT);
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(took > std::chrono::milliseconds(100));
}

TEST_CASE("KJUDGE_HOST_LAUNCH_TIMEOUT_MS stops a kernel that never ends") {
  CHECK(run_this_test_in_a_child("child: launch time limit",
                                 {{"KJUDGE_HOST_LAUNCH_TIMEOUT_MS", "100"}}) == 0);
}

TEST_CASE("child: faults asked for" * doctest::skip()) {
  const HostContext context;
  CUdeviceptr first = 0, second = 0, third = 0;
  CHECK(CU(cuMemAlloc)(&first, 4) == CUDA_SUCCESS);
  CHECK(CU(cuMemAlloc)(&second, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(second == 0);
  CHECK(CU(cuMemAlloc)(&third, 4) == CUDA_SUCCESS);
  CUstream stream = nullptr;
  CHECK(CU(cuStreamCreate)(&stream, 0) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(stream == nullptr);
  CHECK(CU(cuStreamCreate)(&stream, 0) == CUDA_SUCCESS);
  // Not sticky: the call failed, the context did not.
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}

TEST_CASE("child: does nothing" * doctest::skip()) { const HostContext context; }

TEST_CASE("KJUDGE_HOST_FAULT makes the n-th call fail, and nothing else") {
  CHECK(run_this_test_in_a_child(
            "child: faults asked for",
            {{"KJUDGE_HOST_FAULT",
              "cuMemAlloc:2:OUT_OF_MEMORY,cuStreamCreate:1:CUDA_ERROR_LAUNCH_FAILED"}}) == 0);
  // A request that cannot be met is no test at all, whichever process it is for.
  for (const char* bad :
       {"cuMemAlloc:2", "cuNoSuchCall:1:OUT_OF_MEMORY", "cuMemAlloc:0:NOT_READY",
        "cuMemAlloc:1:NO_SUCH_ERROR", "cuMemAlloc:x:OUT_OF_MEMORY", "cuMemAlloc:-1:OUT_OF_MEMORY",
        "cuMemAlloc::OUT_OF_MEMORY", "cuMemAlloc:1x:OUT_OF_MEMORY",
        "cuMemAlloc:1:", "cuMemAlloc:99999999999999999999:UNKNOWN", "judge/cuMemAlloc:1:UNKNOWN",
        "/cuMemAlloc:1:UNKNOWN", "work/cuMemAlloc:1:UNKNOWN", "worker/cuNoSuchCall:1:UNKNOWN",
        "cuMemAlloc:9:UNKNOWN,cuMemAlloc"}) {
    CAPTURE(bad);
    CHECK(run_this_test_in_a_child("child: does nothing", {{"KJUDGE_HOST_FAULT", bad}}, -1, true) ==
          2);
  }
}

TEST_CASE("KJUDGE_HOST_FAULT can be for one kind of process") {
  const std::string faults = "cuMemAlloc:2:OUT_OF_MEMORY,cuStreamCreate:1:LAUNCH_FAILED";
  const auto prefixed = [](const std::string& process) {
    return process + "/cuMemAlloc:2:OUT_OF_MEMORY," + process + "/cuStreamCreate:1:LAUNCH_FAILED";
  };
  const auto run = [&](const char* process, const std::string& wanted) {
    std::map<std::string, std::string> environment = {{"KJUDGE_HOST_FAULT", wanted}};
    if (process != nullptr) environment["KJUDGE_HOST_PROCESS"] = process;
    return run_this_test_in_a_child("child: faults asked for", environment, -1, true);
  };
  CHECK(run(nullptr, prefixed("supervisor")) == 0);
  CHECK(run("worker-baseline", prefixed("worker-baseline")) == 0);
  CHECK(run("worker-baseline", prefixed("worker")) == 0);
  CHECK(run("capture-submission", prefixed("capture")) == 0);
  CHECK(run("worker-baseline", faults) == 0);
  CHECK(run("worker-baseline", prefixed("worker-submission")) == 1);
  CHECK(run("worker-baseline", prefixed("supervisor")) == 1);
  CHECK(run(nullptr, prefixed("worker")) == 1);
  CHECK(run("reference", prefixed("capture-reference")) == 1);
}

TEST_CASE("KJUDGE_HOST_TRACE has a line for each call, and says which failed") {
  const TempDir folder("kjudge-trace");
  const std::string path = folder.path() / "trace";
  REQUIRE(run_this_test_in_a_child(
              "child: faults asked for",
              {{"KJUDGE_HOST_TRACE", path},
               {"KJUDGE_HOST_PROCESS", "worker-submission"},
               {"KJUDGE_HOST_FAULT",
                "cuMemAlloc:2:OUT_OF_MEMORY,cuStreamCreate:1:LAUNCH_FAILED"}}) == 0);
  std::istringstream lines(read_file(path));
  int allocations = 0, failed = 0;
  for (std::string process, pid, call; lines >> process >> pid >> call;) {
    CHECK(process == "worker-submission");
    std::string rest;
    std::getline(lines, rest);
    if (call == "cuMemAlloc" && ++allocations == 2) CHECK(rest == " CUDA_ERROR_OUT_OF_MEMORY");
    failed += !rest.empty();
  }
  CHECK(allocations == 3);
  CHECK(failed == 2);
}

namespace {

std::string host_driver_path() { return library_directory() / "libkjudge_host_driver.so"; }

// Every exported function, "cuMemAlloc_v2".
std::vector<std::string> exported_calls() {
  const std::string image = read_file(host_driver_path());
  const Elf elf(std::as_bytes(std::span(image)));
  std::vector<std::string> calls;
  for (const ElfSymbol& symbol : elf.symbols()) {
    if (symbol.binding == STB_GLOBAL && symbol.type == STT_FUNC && !symbol.undefined &&
        symbol.name.starts_with("cu")) {
      calls.emplace_back(symbol.name);
    }
  }
  return calls;
}

// Nor with the mark of a default stream per thread.
std::string without_version(std::string call) {
  call = call.substr(0, call.rfind("_ptsz"));
  return call.substr(0, call.rfind("_v"));
}

}  // namespace

// Through no other function of ours, which would make calls of its own.
TEST_CASE("child: every entry fails" * doctest::skip()) {
  void* const library = ::dlopen(host_driver_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  using Any = CUresult (*)(void*, void*, void*, void*, void*, void*, void*, void*, void*, void*,
                           void*, void*);
  for (const std::string& call : exported_calls()) {
    const auto function = reinterpret_cast<Any>(::dlsym(library, call.c_str()));
    const bool found = function != nullptr;
    REQUIRE_MESSAGE(found, call);
    CHECK_MESSAGE(function(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                           nullptr, nullptr, nullptr, nullptr) == CUDA_ERROR_ECC_UNCORRECTABLE,
                  call);
  }
}

TEST_CASE("every entry of the host driver fails when asked, of whatever version") {
  const std::vector<std::string> calls = exported_calls();
  CHECK(calls.size() > 200);
  std::map<std::string, int> versions;
  std::string faults;
  for (const std::string& call : calls) {
    const std::string name = without_version(call);
    faults += cat(faults.empty() ? "" : ",", name, ":", ++versions[name], ":ECC_UNCORRECTABLE");
  }
  CHECK(run_this_test_in_a_child("child: every entry fails", {{"KJUDGE_HOST_FAULT", faults}}) == 0);
}

TEST_CASE("cuGetProcAddress gives no function that KJUDGE_HOST_FAULT does not reach") {
  std::set<void*> exported;
  std::set<std::string> names;
  for (const std::string& call : exported_calls()) {
    exported.insert(host_symbol(call.c_str()));
    names.insert(without_version(call));
  }
  std::size_t found = 0;
  for (const std::string& name : names) {
    for (int version = 2000; version <= 13000; version += 10) {
      void* function = nullptr;
      CUdriverProcAddressQueryResult status;
      const CUresult result = CU(cuGetProcAddress)(name.c_str(), &function, version, 0, &status);
      if (result != CUDA_SUCCESS) FAIL_CHECK(name);
      if (function == nullptr) continue;
      ++found;
      if (!exported.contains(function)) FAIL_CHECK(name << " of CUDA " << version);
    }
  }
  CHECK(found > 10'000);
}

TEST_CASE("child: little memory" * doctest::skip()) {
  const HostContext context;
  std::size_t available = 0, total = 0;
  CHECK(CU(cuMemGetInfo)(&available, &total) == CUDA_SUCCESS);
  CHECK(total == 8u << 20);
  CUdeviceptr half = 0, too_much = 0;
  CHECK(CU(cuMemAlloc)(&half, 4u << 20) == CUDA_SUCCESS);
  CHECK(CU(cuMemAlloc)(&too_much, (4u << 20) + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(CU(cuMemFree)(half) == CUDA_SUCCESS);
  CHECK(CU(cuMemAlloc)(&too_much, (4u << 20) + 1) == CUDA_SUCCESS);
}

TEST_CASE("KJUDGE_HOST_MEMORY is the device's memory") {
  CHECK(run_this_test_in_a_child("child: little memory", {{"KJUDGE_HOST_MEMORY", "8388608"}}) == 0);
}

TEST_CASE("a kernel's floating-point mode is its own") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<float> value(1);
  value.write({1.2e-38f});
  module.launch("flush_denormals", {64, 1, 1}, {});
  module.launch("make_denormal", {}, {}, value.pointer());
  CHECK(value.read()[0] == 1.2e-38f * 0.5f);
}

TEST_CASE("shared memory is zero at first, and its limit must be raised to be passed") {
  const HostContext context;
  const HostModule module("kernels");
  const DeviceArray<int> dirty(1);
  dirty.fill(0);
  CHECK(module.try_launch("shared_fill", {8, 1, 1}, {}, {nullptr, 48 * 1024}, 0xaa) ==
        CUDA_SUCCESS);
  CHECK(module.try_launch("shared_residue", {1, 1, 1}, {}, {nullptr, 48 * 1024}, dirty.pointer()) ==
        CUDA_SUCCESS);
  CHECK(dirty.read()[0] == 0);
  CHECK(module.try_launch("shared_fill", {8, 1, 1}, {}, {nullptr, 64 * 1024}, 0xaa) ==
        CUDA_ERROR_INVALID_VALUE);
  const CUfunction fill = module.function("shared_fill");
  CHECK(CU(cuFuncSetAttribute)(fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * 1024) ==
        CUDA_SUCCESS);
  CHECK(module.try_launch("shared_fill", {8, 1, 1}, {}, {nullptr, 64 * 1024}, 0xaa) ==
        CUDA_SUCCESS);
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}
