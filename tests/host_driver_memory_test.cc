// SPDX-License-Identifier: Apache-2.0
// The host driver's memory: reservations, mappings, rights, sharing, copies.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "driver/arena.h"
#include "host_driver.h"

using namespace kjudge;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGranule = 2 * kMiB;

CUmemAllocationProp shareable() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUresult set_access(CUdeviceptr address, std::size_t size, CUmemAccess_flags flags) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = flags;
  return CU(cuMemSetAccess)(address, size, &access, 1);
}

// A reservation with memory mapped at its beginning.
struct Mapped {
  explicit Mapped(std::uint64_t size_, CUmemAccess_flags flags) : size(size_) {
    const CUmemAllocationProp properties = shareable();
    REQUIRE(CU(cuMemCreate)(&handle, size, &properties, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemAddressReserve)(&address, 64 * kMiB, 0, 0, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuMemMap)(address, size, 0, handle, 0) == CUDA_SUCCESS);
    REQUIRE(set_access(address, size, flags) == CUDA_SUCCESS);
  }
  ~Mapped() {
    CU(cuMemUnmap)(address, size);
    CU(cuMemRelease)(handle);
    CU(cuMemAddressFree)(address, 64 * kMiB);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::uint64_t size;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
};

}  // namespace

TEST_CASE(
    "a reservation is where it was asked for under NVIDIA's own rule, and elsewhere otherwise") {
  const HostContext context;
  const auto reserve = [](std::uint64_t size, std::uint64_t hint) {
    CUdeviceptr address = 0;
    CHECK(CU(cuMemAddressReserve)(&address, size, 0, hint, 0) == CUDA_SUCCESS);
    return address;
  };
  const std::uint64_t hint = 0x2000'0000'0000;
  const CUdeviceptr exact = reserve(std::uint64_t{1} << 40, hint);
  CHECK(exact == hint);
  const CUdeviceptr taken = reserve(64 * kMiB, hint + 64 * kMiB);
  CHECK(taken != hint + 64 * kMiB);
  const CUdeviceptr small = reserve(16 * kMiB, 0x2200'0000'0000);
  CHECK(small != 0x2200'0000'0000);
  const CUdeviceptr odd = reserve(64 * kMiB, 0x2200'0000'0000 + 2 * kMiB);
  CHECK(odd != 0x2200'0000'0000 + 2 * kMiB);
  const CUdeviceptr low = reserve(64 * kMiB, 0x100'0000'0000);
  CHECK(low != 0x100'0000'0000);
  const CUdeviceptr high = reserve(64 * kMiB, 0x1'0000'0000'0000);
  CHECK(high != 0x1'0000'0000'0000);
  CHECK(CU(cuMemAddressFree)(exact, 64 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(exact, std::uint64_t{1} << 40) == CUDA_SUCCESS);
  CHECK(reserve(64 * kMiB, hint) == hint);
  CHECK(CU(cuMemAddressFree)(hint, 64 * kMiB) == CUDA_SUCCESS);
  for (const CUdeviceptr address : {taken, odd, low, high}) {
    CHECK(CU(cuMemAddressFree)(address, 64 * kMiB) == CUDA_SUCCESS);
  }
  CHECK(CU(cuMemAddressFree)(small, 16 * kMiB) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CHECK(CU(cuMemAddressReserve)(&address, kMiB, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressReserve)(&address, 0, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("mapping rules: granules, inside one reservation, whole mappings, nothing twice") {
  const HostContext context;
  const CUmemAllocationProp properties = shareable();
  CUmemGenericAllocationHandle handle = 0;
  CHECK(CU(cuMemCreate)(&handle, kMiB, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemCreate)(&handle, 0, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemCreate)(&handle, 2 * kGranule, &properties, 0) == CUDA_SUCCESS);
  CUdeviceptr base = 0;
  REQUIRE(CU(cuMemAddressReserve)(&base, 64 * kMiB, 0, 0, 0) == CUDA_SUCCESS);

  CHECK(CU(cuMemMap)(base, kGranule, kGranule, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base + kMiB, kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base + 64 * kMiB - kGranule, 2 * kGranule, 0, handle, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base, 3 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base, 2 * kGranule, 0, handle + 77, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(CU(cuMemMap)(base + kGranule, 2 * kGranule, 0, handle, 0) == CUDA_SUCCESS);
  CHECK(CU(cuMemMap)(base, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemMap)(base + 2 * kGranule, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  // New mappings have no access, not even for the API.
  CHECK(CU(cuMemsetD8)(base + kGranule, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(set_access(base, 3 * kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(set_access(base + kGranule, kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(set_access(base + kGranule, 2 * kGranule, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ==
        CUDA_SUCCESS);
  CHECK(CU(cuMemsetD8)(base + kGranule, 1, 2 * kGranule) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD8)(base + kGranule, 1, 2 * kGranule + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(base + kGranule, kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemUnmap)(base, 3 * kGranule) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(base, 64 * kMiB) == CUDA_ERROR_INVALID_VALUE);
  // The same memory at a second place: what one wrote, the other reads. Release keeps mappings.
  REQUIRE(CU(cuMemMap)(base + 8 * kGranule, 2 * kGranule, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(set_access(base + 8 * kGranule, 2 * kGranule, CU_MEM_ACCESS_FLAGS_PROT_READ) ==
          CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_SUCCESS);
  CHECK(CU(cuMemRelease)(handle) == CUDA_ERROR_INVALID_VALUE);
  unsigned char byte = 0;
  CHECK(CU(cuMemcpyDtoH)(&byte, base + 10 * kGranule - 1, 1) == CUDA_SUCCESS);
  CHECK(byte == 1);
  CHECK(CU(cuMemUnmap)(base + kGranule, 2 * kGranule) == CUDA_SUCCESS);
  CHECK(CU(cuMemUnmap)(base + 8 * kGranule, 2 * kGranule) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyDtoH)(&byte, base + 8 * kGranule, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemAddressFree)(base, 64 * kMiB) == CUDA_SUCCESS);
}

TEST_CASE("device memory is counted, also through handles that only a mapping keeps") {
  const HostContext context;
  std::size_t before = 0, during = 0, after = 0, total = 0;
  REQUIRE(CU(cuMemGetInfo)(&before, &total) == CUDA_SUCCESS);
  CHECK(before <= total);
  {
    const Mapped mapped(8 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(CU(cuMemGetInfo)(&during, &total) == CUDA_SUCCESS);
    CHECK(during == before - 8 * kMiB);
    CUmemGenericAllocationHandle again = 0;
    CHECK(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(mapped.address + 5)) ==
          CUDA_SUCCESS);
    CHECK(again == mapped.handle);
    CHECK(CU(cuMemRelease)(again) == CUDA_SUCCESS);
    CUmemAllocationProp properties{};
    CHECK(CU(cuMemGetAllocationPropertiesFromHandle)(&properties, mapped.handle) == CUDA_SUCCESS);
    CHECK(properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  }
  CHECK(CU(cuMemGetInfo)(&after, &total) == CUDA_SUCCESS);
  CHECK(after == before);
  const CUmemAllocationProp properties = shareable();
  CUmemGenericAllocationHandle handle = 0;
  CHECK(CU(cuMemCreate)(&handle, total / kGranule * kGranule + kGranule, &properties, 0) ==
        CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr pointer = 0;
  CHECK(CU(cuMemAlloc)(&pointer, total + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(CU(cuMemAlloc)(&pointer, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("pointer attributes say what an address is") {
  const HostContext context;
  const Mapped mapped(4 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READ);
  const HostModule module("kernels");
  CUdeviceptr device = 0, managed = 0, variable = 0;
  std::size_t variable_size = 0;
  void* host = nullptr;
  REQUIRE(CU(cuMemAlloc)(&device, 1000) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAllocManaged)(&managed, 1000, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemHostAlloc)(&host, 1000, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  REQUIRE(CU(cuModuleGetGlobal)(&variable, &variable_size, module.handle(), "table") ==
          CUDA_SUCCESS);
  CHECK(variable_size == 32);
  const auto host_address = reinterpret_cast<CUdeviceptr>(host);
  const auto kind = [](CUdeviceptr at) {
    unsigned type = 0;
    CHECK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) == CUDA_SUCCESS);
    return type;
  };
  CHECK(kind(device + 999) == CU_MEMORYTYPE_DEVICE);
  CHECK(kind(mapped.address) == CU_MEMORYTYPE_DEVICE);
  CHECK(kind(managed) == CU_MEMORYTYPE_DEVICE);
  CHECK(kind(variable + 8) == CU_MEMORYTYPE_DEVICE);
  CHECK(kind(host_address) == CU_MEMORYTYPE_HOST);
  unsigned is_managed = 2;
  CHECK(CU(cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) ==
        CUDA_SUCCESS);
  CHECK(is_managed == 1);
  CHECK(CU(cuPointerGetAttribute)(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device) ==
        CUDA_SUCCESS);
  CHECK(is_managed == 0);
  CUdeviceptr start = 0;
  std::size_t size = 0;
  CHECK(CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + 10) ==
        CUDA_SUCCESS);
  CHECK(start == device);
  CHECK(CU(cuPointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, device + 10) ==
        CUDA_SUCCESS);
  CHECK(size == 1000);
  CUcontext owner = nullptr;
  CHECK(CU(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, device) == CUDA_SUCCESS);
  CHECK(owner == context.handle());
  CUdeviceptr as_device = 0;
  CHECK(CU(cuMemHostGetDevicePointer)(&as_device, host, 0) == CUDA_SUCCESS);
  CHECK(as_device == host_address);
  CHECK(CU(cuMemGetAddressRange)(&start, &size, mapped.address + 3 * kMiB) == CUDA_SUCCESS);
  CHECK(start == mapped.address);
  CHECK(size == 4 * kMiB);
  int local = 0;
  const auto unknown = reinterpret_cast<CUdeviceptr>(&local);
  unsigned type = 0;
  CHECK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown) ==
        CUDA_ERROR_INVALID_VALUE);
  // The plural form answers zeros for what it does not know.
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  int ordinal = 5;
  type = 9;
  void* values[] = {&type, &ordinal};
  CHECK(CU(cuPointerGetAttributes)(2, which, values, unknown) == CUDA_SUCCESS);
  CHECK(type == 0);
  CHECK(ordinal == CU_DEVICE_INVALID);
  CHECK(CU(cuPointerGetAttributes)(2, which, values, device) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  CHECK(ordinal == 0);
  unsigned long long rights = 99;
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CHECK(CU(cuMemGetAccess)(&rights, &location, mapped.address) == CUDA_SUCCESS);
  CHECK(rights == CU_MEM_ACCESS_FLAGS_PROT_READ);
  // Registered memory is known until it is not.
  std::vector<char> own(10000);
  REQUIRE(CU(cuMemHostRegister)(own.data(), own.size(), 0) == CUDA_SUCCESS);
  CHECK(kind(reinterpret_cast<CUdeviceptr>(own.data())) == CU_MEMORYTYPE_HOST);
  CHECK(CU(cuMemHostRegister)(own.data(), own.size(), 0) ==
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CHECK(CU(cuMemHostUnregister)(own.data()) == CUDA_SUCCESS);
  CHECK(CU(cuMemHostUnregister)(own.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(CU(cuMemFree)(device + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFree)(host_address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFree)(device) == CUDA_SUCCESS);
  CHECK(CU(cuMemFree)(device) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemFree)(managed) == CUDA_SUCCESS);
  CHECK(CU(cuMemFreeHost)(host) == CUDA_SUCCESS);
}

TEST_CASE("copies and fills in every form") {
  const HostContext context;
  const DeviceArray<std::uint8_t> a(64 * 48), b(64 * 48);
  a.fill(0);
  // Fills of 2D and each width.
  CHECK(CU(cuMemsetD2D8)(a.pointer(), 64, 1, 10, 48) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D16)(a.at(10), 64, 0x0203, 5, 48) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D32)(a.at(20), 64, 0x04050607, 5, 48) == CUDA_SUCCESS);
  auto bytes = a.read();
  for (int row : {0, 20, 47}) {
    const std::uint8_t* line = &bytes[static_cast<std::size_t>(row) * 64];
    CHECK(line[0] == 1);
    CHECK(line[9] == 1);
    CHECK(line[10] == 3);
    CHECK(line[19] == 2);
    CHECK(line[20] == 7);
    CHECK(line[39] == 4);
    CHECK(line[40] == 0);
  }
  CHECK(CU(cuMemsetD2D8)(a.pointer(), 63, 1, 64, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD2D8)(a.pointer(), 64, 1, 64, 65) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD16)(a.at(1), 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD32)(a.at(2), 1, 1) == CUDA_ERROR_INVALID_VALUE);
  // A box out of a volume: 8 x 5 x 3 bytes of 16 x 12 x 16.
  std::vector<std::uint8_t> volume(16 * 12 * 16), box(8 * 5 * 3);
  for (std::size_t i = 0; i < volume.size(); ++i)
    volume[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  a.write(volume);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a.pointer();
  copy.srcPitch = 16;
  copy.srcHeight = 12;
  copy.srcXInBytes = 3;
  copy.srcY = 2;
  copy.srcZ = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = box.data();
  copy.dstPitch = 8;
  copy.dstHeight = 5;
  copy.WidthInBytes = 8;
  copy.Height = 5;
  copy.Depth = 3;
  REQUIRE(CU(cuMemcpy3D)(&copy) == CUDA_SUCCESS);
  unsigned wrong = 0;
  for (std::size_t z = 0; z < 3; ++z) {
    for (std::size_t y = 0; y < 5; ++y) {
      for (std::size_t x = 0; x < 8; ++x) {
        wrong += box[(z * 5 + y) * 8 + x] != volume[((z + 4) * 12 + y + 2) * 16 + x + 3];
      }
    }
  }
  CHECK(wrong == 0);
  copy.Depth = 13;  // one slice too many
  CHECK(CU(cuMemcpy3D)(&copy) == CUDA_ERROR_INVALID_VALUE);
  copy.Depth = 3;
  copy.WidthInBytes = 14;  // over the end of a row
  CHECK(CU(cuMemcpy3D)(&copy) == CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY2D flat{};
  flat.srcMemoryType = CU_MEMORYTYPE_HOST;
  flat.srcHost = volume.data();
  flat.srcPitch = 32;
  flat.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  flat.dstDevice = b.pointer();
  flat.dstPitch = 64;
  flat.WidthInBytes = 20;
  flat.Height = 10;
  REQUIRE(CU(cuMemcpy2D)(&flat) == CUDA_SUCCESS);
  bytes = b.read();
  CHECK(std::equal(&bytes[64 * 9], &bytes[64 * 9] + 20, &volume[32 * 9]));
  // A large one, cut into pieces for the cores.
  const std::size_t n = 5'000'001;
  const DeviceArray<std::uint32_t> big(n), other(n);
  std::vector<std::uint32_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<std::uint32_t>(i * 2654435761u);
  big.write(values);
  CHECK(CU(cuMemcpyDtoDAsync)(other.pointer(), big.pointer(), n * 4, nullptr) == CUDA_SUCCESS);
  CHECK(other.read() == values);
  CHECK(CU(cuMemsetD32)(other.pointer(), 0xdeadbeef, n) == CUDA_SUCCESS);
  CHECK(other.read() == std::vector<std::uint32_t>(n, 0xdeadbeef));
  CHECK(CU(cuMemcpy)(other.pointer(), reinterpret_cast<CUdeviceptr>(values.data()), n * 4) ==
        CUDA_SUCCESS);
  CHECK(other.read() == values);
  // Over the end, to no one's memory, from no one's memory.
  CHECK(CU(cuMemcpyDtoD)(other.pointer(), big.at(1), n * 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemcpyHtoD)(reinterpret_cast<CUdeviceptr>(values.data()), values.data(), 4) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemcpyDtoH)(values.data(), 0x1234, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemcpyHtoD)(other.pointer(), nullptr, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD8)(0, 0, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("an asynchronous copy takes pageable memory at the call") {
  const HostContext context;
  const HostModule module("kernels");
  CUstream stream = nullptr;
  REQUIRE(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  void* go = nullptr;
  REQUIRE(CU(cuMemHostAlloc)(&go, 4, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  *static_cast<volatile int*>(go) = 0;
  const DeviceArray<int> out(1);
  module.launch_in(stream, "spin", {}, go);
  int value = 41;
  REQUIRE(CU(cuMemcpyHtoDAsync)(out.pointer(), &value, 4, stream) == CUDA_SUCCESS);
  value = 0;
  CHECK(CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY);
  *static_cast<volatile int*>(go) = 1;
  // Back to pageable memory: there when the call returns.
  REQUIRE(CU(cuMemcpyDtoHAsync)(&value, out.pointer(), 4, stream) == CUDA_SUCCESS);
  CHECK(value == 41);
  CHECK(CU(cuStreamDestroy)(stream) == CUDA_SUCCESS);
  CHECK(CU(cuMemFreeHost)(go) == CUDA_SUCCESS);
}

TEST_CASE("rights keep API copies out, and a copy that is refused changes nothing") {
  const HostContext context;
  const Mapped mapped(2 * kMiB, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  int value = 5;
  REQUIRE(CU(cuMemcpyHtoD)(mapped.address, &value, 4) == CUDA_SUCCESS);
  REQUIRE(set_access(mapped.address, mapped.size, CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS);
  value = 6;
  CHECK(CU(cuMemcpyHtoD)(mapped.address, &value, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD8Async)(mapped.address, 1, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemcpyDtoH)(&value, mapped.address, 4) == CUDA_SUCCESS);
  CHECK(value == 5);
  REQUIRE(set_access(mapped.address, mapped.size, CU_MEM_ACCESS_FLAGS_PROT_NONE) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyDtoH)(&value, mapped.address, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}

TEST_CASE("only device memory is imported") {
  const HostContext context;
  const auto import = [](int fd) {
    CUmemGenericAllocationHandle handle = 0;
    return CU(cuMemImportFromShareableHandle)(
        &handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  };
  CHECK(import(-1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(import(12345) == CUDA_ERROR_INVALID_VALUE);
  const Fd pipe_like(memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  CHECK(import(pipe_like.get()) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(ftruncate(pipe_like.get(), kGranule) == 0);
  CHECK(import(pipe_like.get()) == CUDA_ERROR_INVALID_VALUE);  // could still be shrunk
}

// Run by the test below with the memory on descriptor 3: adds 1 to every int, on the cores.
TEST_CASE("child: maps shared memory" * doctest::skip()) {
  const HostContext context;
  const Driver& driver = Driver::open(DriverKind::host);
  const DeviceMemory memory = DeviceMemory::import(driver, Fd(3), 4 * kMiB);
  Arena arena(driver, 0, 0);
  arena.map(arena.begin() + 16 * kMiB, memory, Access::read_write);
  const HostModule module("kernels");
  const DeviceArray<int> count(1);
  module.launch("affine", {}, {}, CUdeviceptr{arena.begin() + 16 * kMiB}, std::int64_t{3},
                std::int64_t{1});
  CHECK(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
}

TEST_CASE("memory is shared with another process, at the same address") {
  const HostContext context;
  const Driver& driver = Driver::open(DriverKind::host);
  const DeviceMemory memory = DeviceMemory::create(driver, 0, 4 * kMiB);
  Arena arena(driver, 0, 0);
  const std::uint64_t address = arena.begin() + 16 * kMiB;
  CHECK(arena.begin() == kArenaBase);
  arena.map(address, memory, Access::read_write);
  std::int64_t value = 14;
  REQUIRE(CU(cuMemcpyHtoD)(address, &value, 8) == CUDA_SUCCESS);
  const Fd fd = memory.export_fd();
  CHECK(run_this_test_in_a_child("child: maps shared memory", {}, fd.get()) == 0);
  REQUIRE(CU(cuMemcpyDtoH)(&value, address, 8) == CUDA_SUCCESS);
  CHECK(value == 43);
}
