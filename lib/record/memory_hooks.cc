// SPDX-License-Identifier: Apache-2.0

// Hooks of what gives memory and takes it back, and of limits that are memory.

#include <algorithm>

#include "record/hooked.h"

namespace kjudge {
namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

template <class Entry>
CUresult allocate_async(Entry HookedEntries::*entry, const char* call, CUdeviceptr* address,
                        size_t bytes) {
  return hooked(entry, [&](const Watched&, Observed& observed, auto) {
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    // Memory that is there at once keeps the promise to be there when the stream gets to it.
    *address = observed.memory.allocate(call, bytes);
    return CUDA_SUCCESS;
  });
}

template <class Entry>
CUresult free_async(Entry HookedEntries::*entry, CUdeviceptr address, CUstream stream) {
  return hooked(entry, [&](const Watched& watched, Observed& observed, auto real) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    watched.driver.cuStreamIsCapturing(stream, &status);
    // Freed inside a capture of the submission's own: its graph uses it, so it stays.
    if (status != CU_STREAM_CAPTURE_STATUS_NONE && observed.memory.find(address)) {
      return CUDA_SUCCESS;
    }
    if (observed.memory.free(address, [&] { watched.driver.cuStreamSynchronize(stream); })) {
      return CUDA_SUCCESS;
    }
    return real(address, stream);
  });
}

template <class Entry>
CUresult refuse(Entry HookedEntries::*entry, Rule rule, const char* call) {
  return hooked(entry,
                [&](const Watched&, Observed&, auto) -> CUresult { throw Refused(rule, call); });
}

}  // namespace
}  // namespace kjudge

using namespace kjudge;
using Real = HookedEntries;

KJ_HOOK cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return allocate_async(&Real::cuMemAlloc_v2, "cuMemAlloc", address, bytes);
}

KJ_HOOK cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                           unsigned) {
  if (pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  constexpr size_t kPitch = 512;  // what the driver itself aligns rows to
  size_t padded = 0, bytes = 0;
  if (__builtin_add_overflow(width, kPitch - 1, &padded)) return CUDA_ERROR_INVALID_VALUE;
  padded = padded / kPitch * kPitch;
  if (__builtin_mul_overflow(padded, height, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result =
      allocate_async(&Real::cuMemAllocPitch_v2, "cuMemAllocPitch", address, bytes);
  if (result == CUDA_SUCCESS) *pitch = padded;
  return result;
}

KJ_HOOK cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream) {
  return allocate_async(&Real::cuMemAllocAsync, "cuMemAllocAsync", address, bytes);
}

KJ_HOOK cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream) {
  return allocate_async(&Real::cuMemAllocAsync_ptsz, "cuMemAllocAsync", address, bytes);
}

KJ_HOOK cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool, CUstream) {
  return allocate_async(&Real::cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", address, bytes);
}

KJ_HOOK cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool, CUstream) {
  return allocate_async(&Real::cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", address,
                        bytes);
}

KJ_HOOK cuMemFree_v2(CUdeviceptr address) {
  return hooked(&Real::cuMemFree_v2, [&](const Watched& watched, Observed& observed, auto real) {
    if (address == 0) return CUDA_SUCCESS;
    if (observed.memory.free(address, [&] { watched.driver.cuCtxSynchronize(); })) {
      return CUDA_SUCCESS;
    }
    const CUresult result = real(address);  // managed memory
    if (result == CUDA_SUCCESS) observed.memory.host_range_removed(address);
    return result;
  });
}

KJ_HOOK cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return free_async(&Real::cuMemFreeAsync, address, stream);
}

KJ_HOOK cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return free_async(&Real::cuMemFreeAsync_ptsz, address, resolve(stream, true));
}

KJ_HOOK cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return hooked(&Real::cuMemAllocManaged, [&](const Watched&, Observed& observed, auto real) {
    if (observed.watch.is_open()) {
      throw Refused(Rule::managed_memory, cat("cuMemAllocManaged of ", bytes, " bytes"));
    }
    observed.memory.check_limit("cuMemAllocManaged", bytes);
    const CUresult result = real(address, bytes, flags);
    if (result == CUDA_SUCCESS) {
      observed.memory.host_range_added({*address, bytes, "cuMemAllocManaged", true});
    }
    return result;
  });
}

KJ_HOOK cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment, CUdeviceptr,
                            unsigned long long) {
  return hooked(&Real::cuMemAddressReserve, [&](const Watched&, Observed& observed, auto) {
    if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *address = observed.memory.reserve(size, alignment);
    return CUDA_SUCCESS;
  });
}

KJ_HOOK cuMemAddressFree(CUdeviceptr address, size_t size) {
  return hooked(&Real::cuMemAddressFree, [&](const Watched&, Observed& observed, auto real) {
    return observed.memory.unreserve(address) ? CUDA_SUCCESS : real(address, size);
  });
}

KJ_HOOK cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                    const CUmemAllocationProp* properties, unsigned long long flags) {
  return hooked(&Real::cuMemCreate, [&](const Watched&, Observed& observed, auto real) {
    observed.memory.check_limit("cuMemCreate", size);
    const CUresult result = real(handle, size, properties, flags);
    if (result == CUDA_SUCCESS) observed.memory.created(*handle, size);
    return result;
  });
}

KJ_HOOK cuMemRelease(CUmemGenericAllocationHandle handle) {
  return hooked(&Real::cuMemRelease, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(handle);
    if (result == CUDA_SUCCESS) observed.memory.released(handle);
    return result;
  });
}

KJ_HOOK cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return hooked(&Real::cuMemMap, [&](const Watched&, Observed& observed, auto real) {
    observed.memory.make_way(address, size);
    const CUresult result = real(address, size, offset, handle, flags);
    if (result == CUDA_SUCCESS) observed.memory.mapped(address, size, offset, handle);
    return result;
  });
}

KJ_HOOK cuMemUnmap(CUdeviceptr address, size_t size) {
  return hooked(&Real::cuMemUnmap, [&](const Watched&, Observed& observed, auto real) {
    return observed.memory.unmap(address, size) ? CUDA_SUCCESS : real(address, size);
  });
}

KJ_HOOK cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* access,
                       size_t count) {
  return hooked(&Real::cuMemSetAccess, [&](const Watched&, Observed& observed, auto real) {
    for (size_t i = 0; access != nullptr && i < count; ++i) {
      observed.memory.check_access(address, access[i]);
    }
    return real(address, size, access, count);
  });
}

KJ_HOOK cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                       CUmemAllocationHandleType type) {
  return hooked(&Real::cuMemImportFromShareableHandle,
                [&](const Watched&, Observed& observed, auto real) {
                  const CUresult result = real(handle, os_handle, type);
                  if (result == CUDA_SUCCESS) observed.memory.imported(*handle);
                  return result;
                });
}

KJ_HOOK cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return hooked(&Real::cuMemHostAlloc, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(pointer, bytes, flags);
    if (result == CUDA_SUCCESS) {
      observed.memory.host_range_added({address_of(*pointer), bytes, "cuMemHostAlloc"});
    }
    return result;
  });
}

KJ_HOOK cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return hooked(&Real::cuMemAllocHost_v2, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(pointer, bytes);
    if (result == CUDA_SUCCESS) {
      observed.memory.host_range_added({address_of(*pointer), bytes, "cuMemAllocHost"});
    }
    return result;
  });
}

KJ_HOOK cuMemFreeHost(void* pointer) {
  return hooked(&Real::cuMemFreeHost, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(pointer);
    if (result == CUDA_SUCCESS) observed.memory.host_range_removed(address_of(pointer));
    return result;
  });
}

KJ_HOOK cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  return hooked(&Real::cuMemHostRegister_v2, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(pointer, bytes, flags);
    if (result == CUDA_SUCCESS) {
      observed.memory.host_range_added({address_of(pointer), bytes, "cuMemHostRegister"});
    }
    return result;
  });
}

KJ_HOOK cuMemHostUnregister(void* pointer) {
  return hooked(&Real::cuMemHostUnregister, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(pointer);
    if (result == CUDA_SUCCESS) observed.memory.host_range_removed(address_of(pointer));
    return result;
  });
}

// Memory that no recording can hold, and that no pointer tells of: whoever asks for it is told so.

KJ_HOOK cuArrayCreate_v2(CUarray*, const CUDA_ARRAY_DESCRIPTOR*) {
  return refuse(&Real::cuArrayCreate_v2, Rule::cuda_array, "cuArrayCreate");
}

KJ_HOOK cuArray3DCreate_v2(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*) {
  return refuse(&Real::cuArray3DCreate_v2, Rule::cuda_array, "cuArray3DCreate");
}

KJ_HOOK cuMipmappedArrayCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned) {
  return refuse(&Real::cuMipmappedArrayCreate, Rule::cuda_array, "cuMipmappedArrayCreate");
}

KJ_HOOK cuTexObjectCreate(CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*,
                          const CUDA_RESOURCE_VIEW_DESC*) {
  return refuse(&Real::cuTexObjectCreate, Rule::cuda_array, "cuTexObjectCreate");
}

KJ_HOOK cuSurfObjectCreate(CUsurfObject*, const CUDA_RESOURCE_DESC*) {
  return refuse(&Real::cuSurfObjectCreate, Rule::cuda_array, "cuSurfObjectCreate");
}

KJ_HOOK cuMemPoolImportPointer(CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*) {
  return refuse(&Real::cuMemPoolImportPointer, Rule::imported_memory, "cuMemPoolImportPointer");
}

namespace {

// How many bytes of device memory one of `limit` is; 0: it is about no memory. The stack is there
// for every thread that the device holds.
std::uint64_t bytes_per_unit(const Driver& driver, CUlimit limit) {
  if (limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE) return 1;
  if (limit != CU_LIMIT_STACK_SIZE) return 0;
  CUdevice device = 0;
  KJ_DRIVER(driver, cuCtxGetDevice(&device));
  int processors = 0, threads = 0;
  KJ_DRIVER(driver,
            cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  KJ_DRIVER(driver, cuDeviceGetAttribute(
                        &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
  return static_cast<std::uint64_t>(processors) * static_cast<std::uint64_t>(threads);
}

const char* name_of(CUlimit limit) {
  return limit == CU_LIMIT_STACK_SIZE         ? "cuCtxSetLimit: stacks"
         : limit == CU_LIMIT_MALLOC_HEAP_SIZE ? "cuCtxSetLimit: a heap of device code"
                                              : "cuCtxSetLimit: a buffer of printf";
}

}  // namespace

KJ_HOOK cuCtxSetLimit(CUlimit limit, size_t value) {
  return hooked(&Real::cuCtxSetLimit, [&](const Watched& watched, Observed& observed, auto real) {
    // What the driver takes unasked is not the submission's.
    std::size_t unasked = 0, before = 0;
    const std::uint64_t unit = bytes_per_unit(watched.driver, limit);
    if (unit != 0) {
      KJ_DRIVER(watched.driver, cuCtxGetLimit(&before, limit));
      const std::lock_guard lock(observed.mutex);
      unasked = observed.unasked_limits.emplace(limit, before).first->second;
    }
    const auto take = [&](std::size_t wanted) {
      if (unit == 0) return;
      std::uint64_t bytes = 0;
      const std::size_t more = wanted - std::min(wanted, unasked);
      if (__builtin_mul_overflow(more, unit, &bytes)) bytes = ~std::uint64_t{0};
      observed.memory.set_taken(name_of(limit), bytes);
    };
    take(value);
    const CUresult result = real(limit, value);
    if (result != CUDA_SUCCESS) {
      take(before);
      return result;
    }
    const std::lock_guard lock(observed.mutex);
    observed.limits[limit] = value;
    return result;
  });
}
