// SPDX-License-Identifier: Apache-2.0
// Virtual memory: these calls need a device, not a context, and work in a broken one.
#include "driver/host/memory.h"

#include <fcntl.h>

#include "driver/host/context.h"
#include "driver/host/entry.h"

using namespace kjudge;

namespace {

void check_properties(const CUmemAllocationProp* properties) {
  require(properties != nullptr);
  require(properties->type == CU_MEM_ALLOCATION_TYPE_PINNED);
  require(properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  check_device(properties->location.id);
  require(properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE ||
              properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
          CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace

CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* granularity,
                                               const CUmemAllocationProp* properties,
                                               CUmemAllocationGranularity_flags) {
  return device_call(__func__, [&] {
    require(granularity != nullptr);
    check_properties(properties);
    *granularity = kGranule;
  });
}

CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment,
                                     CUdeviceptr hint, unsigned long long flags) {
  return device_call(__func__, [&] {
    require(address != nullptr && flags == 0);
    *address = Memory::get().reserve(size, alignment, hint);
  });
}

CUresult CUDAAPI cuMemAddressFree(CUdeviceptr address, size_t size) {
  return device_call(__func__, [&] { Memory::get().release_reservation(address, size); });
}

CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                             const CUmemAllocationProp* properties, unsigned long long flags) {
  return device_call(__func__, [&] {
    require(handle != nullptr && flags == 0);
    check_properties(properties);
    *handle = Memory::get().create(size, *properties);
  });
}

CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  return device_call(__func__, [&] { Memory::get().release(handle); });
}

CUresult CUDAAPI cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return device_call(__func__, [&] {
    require(flags == 0 && offset == 0);
    Memory::get().map(address, size, handle);
  });
}

CUresult CUDAAPI cuMemUnmap(CUdeviceptr address, size_t size) {
  return device_call(__func__, [&] { Memory::get().unmap(address, size); });
}

CUresult CUDAAPI cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* access,
                                size_t count) {
  return device_call(__func__, [&] {
    require(access != nullptr && count > 0);
    for (size_t i = 0; i < count; ++i) {
      require(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
      check_device(access[i].location.id);
      require(access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
              access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
              access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
      Memory::get().set_access(address, size, access[i].flags);
    }
  });
}

CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                CUdeviceptr address) {
  return device_call(__func__, [&] {
    require(flags != nullptr && location != nullptr);
    require(location->type == CU_MEM_LOCATION_TYPE_DEVICE);
    check_device(location->id);
    const auto range = Memory::get().find(address);
    require(range.has_value() && range->kind == RangeKind::mapped);
    *flags = range->access;
  });
}

CUresult CUDAAPI cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags) {
  return device_call(__func__, [&] {
    require(shareable != nullptr && flags == 0);
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    const auto physical = Memory::get().physical(handle);
    require(physical->properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    const int fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0);
    require(fd >= 0, CUDA_ERROR_OPERATING_SYSTEM);
    *static_cast<int*>(shareable) = fd;
  });
}

CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                void* shareable, CUmemAllocationHandleType type) {
  return device_call(__func__, [&] {
    require(handle != nullptr);
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    const auto fd = reinterpret_cast<std::intptr_t>(shareable);
    require(fd >= 0 && fd <= 0x7fffffff);
    *handle = Memory::get().import(static_cast<int>(fd));
  });
}

CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return device_call(__func__, [&] {
    require(handle != nullptr);
    *handle = Memory::get().retain(reinterpret_cast<std::uint64_t>(address));
  });
}

CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                        CUmemGenericAllocationHandle handle) {
  return device_call(__func__, [&] {
    require(properties != nullptr);
    *properties = Memory::get().physical(handle)->properties;
  });
}
