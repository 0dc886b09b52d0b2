// SPDX-License-Identifier: Apache-2.0
// Memory with an owner: device, managed and host; and what a pointer is.
#include <cstring>

#include "driver/host/capture.h"
#include "driver/host/context.h"
#include "driver/host/graph.h"
#include "driver/host/memory.h"
#include "driver/host/stream.h"

using namespace kjudge;

namespace {

bool attribute(const Range& range, CUpointer_attribute which, std::uint64_t address, void* out) {
  const auto put = [out](auto value) { std::memcpy(out, &value, sizeof(value)); };
  const bool on_device = range.on_device();
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put(range.context);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put(on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put(CUdeviceptr{address});
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (on_device && range.kind != RangeKind::managed) return false;
      put(reinterpret_cast<void*>(address));
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      put(static_cast<unsigned long long>(range.id));
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put(range.kind == RangeKind::managed ? 1u : 0u);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put(int{0});
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      put(CUdeviceptr{range.begin});
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      put(std::size_t{range.size});
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      put(std::size_t{range.mapped_size > 0 ? range.mapped_size : range.size});
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put(1u);
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      put(static_cast<unsigned long long>(
          range.physical == nullptr ? 0 : range.physical->properties.requestedHandleTypes));
      return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      put(range.access);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put(static_cast<void*>(nullptr));
      return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      put(0u);
      return true;
    default:
      return false;
  }
}

constexpr unsigned kHostFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr std::size_t kPitch = 512;

}  // namespace

CUresult CUDAAPI cuMemGetInfo(size_t* available, size_t* total) {
  return context_call(__func__, [&] {
    require(available != nullptr && total != nullptr);
    *total = Memory::get().total();
    *available = Memory::get().available();
  });
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr* address, size_t size) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(address != nullptr);
    forbid_during_capture();
    *address = Memory::get().allocate(&context, size, RangeKind::device);
  });
}

CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                 unsigned element_size) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(address != nullptr && pitch != nullptr && width > 0 && height > 0);
    require(element_size == 4 || element_size == 8 || element_size == 16);
    forbid_during_capture();
    require(width < std::uint64_t{1} << 40, CUDA_ERROR_OUT_OF_MEMORY);
    const std::size_t row = (width + kPitch - 1) / kPitch * kPitch;
    require(height < (std::uint64_t{1} << 46) / row, CUDA_ERROR_OUT_OF_MEMORY);
    *address = Memory::get().allocate(&context, row * height, RangeKind::device);
    *pitch = row;
  });
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(address != nullptr);
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
    forbid_during_capture();
    *address = Memory::get().allocate(&context, size, RangeKind::managed);
  });
}

// As on a GPU, freeing waits for what may still use the memory.
CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  return context_call(__func__, [&](CUctx_st& context) {
    if (address == 0) return;
    forbid_during_capture();
    synchronize(context);
    Memory::get().free(address, {RangeKind::device, RangeKind::managed});
  });
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(address != nullptr && size > 0);
    const auto stream = stream_of(context, handle);
    {
      const std::lock_guard lock(queue_mutex());
      refuse_implicit_use(*stream);
      if (stream->capture != nullptr) {
        AllocWork work = allocation_node(context, size);
        *address = work.params.dptr;
        add_captured(*stream, std::move(work));
        return;
      }
    }
    *address = Memory::get().allocate(&context, size, RangeKind::device);
  });
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    if (address == 0) return;
    submit(stream_of(context, handle), FreeWork{address, false});
  });
}

CUresult CUDAAPI cuMemHostAlloc(void** pointer, size_t size, unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(pointer != nullptr && (flags & ~kHostFlags) == 0);
    forbid_during_capture();
    *pointer =
        reinterpret_cast<void*>(Memory::get().allocate(&context, size, RangeKind::host, flags));
  });
}

CUresult CUDAAPI cuMemAllocHost(void** pointer, size_t size) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(pointer != nullptr);
    forbid_during_capture();
    *pointer = reinterpret_cast<void*>(Memory::get().allocate(&context, size, RangeKind::host, 0));
  });
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(pointer != nullptr);
    forbid_during_capture();
    synchronize(context);
    Memory::get().free(address_of(pointer), {RangeKind::host});
  });
}

CUresult CUDAAPI cuMemHostRegister(void* pointer, size_t size, unsigned flags) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(pointer != nullptr && size > 0);
    require((flags & ~(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                       CU_MEMHOSTREGISTER_READ_ONLY)) == 0);
    forbid_during_capture();
    Range range;
    range.begin = address_of(pointer);
    range.size = size;
    range.kind = RangeKind::registered;
    range.context = &context;
    range.flags = flags;
    if ((flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0) range.access = CU_MEM_ACCESS_FLAGS_PROT_READ;
    Memory::get().add(range);
  });
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  return context_call(__func__, [&](CUctx_st& context) {
    const auto range = Memory::get().find(address_of(pointer));
    require(range.has_value() && range->kind == RangeKind::registered,
            CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    synchronize(context);
    Memory::get().free(range->begin, {RangeKind::registered});
  });
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* address, void* pointer, unsigned flags) {
  return context_call(__func__, [&] {
    require(address != nullptr && flags == 0);
    const auto range = Memory::get().find(address_of(pointer));
    require(range.has_value() && !range->on_device());
    *address = address_of(pointer);
  });
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned* flags, void* pointer) {
  return context_call(__func__, [&] {
    require(flags != nullptr);
    const auto range = Memory::get().find(address_of(pointer));
    require(range.has_value() && range->kind == RangeKind::host);
    *flags = range->flags;
  });
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  return context_call(__func__, [&] {
    const auto range = Memory::get().find(address);
    require(range.has_value(), CUDA_ERROR_NOT_FOUND);
    if (base != nullptr) *base = range->begin;
    if (size != nullptr) *size = range->size;
  });
}

CUresult CUDAAPI cuPointerGetAttribute(void* value, CUpointer_attribute which,
                                       CUdeviceptr address) {
  return context_call(__func__, [&] {
    require(value != nullptr);
    const auto range = Memory::get().find(address);
    require(range.has_value() && attribute(*range, which, address, value));
  });
}

// A pointer nobody knows gets zeros, not an error: that is how a caller asks what it has.
CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** values,
                                        CUdeviceptr address) {
  return context_call(__func__, [&] {
    require(count == 0 || (which != nullptr && values != nullptr));
    const auto range = Memory::get().find(address);
    for (unsigned i = 0; i < count; ++i) {
      require(values[i] != nullptr);
      if (range.has_value() && attribute(*range, which[i], address, values[i])) continue;
      switch (which[i]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
          std::memset(values[i], 0, 4);
          break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
          const int none = CU_DEVICE_INVALID;
          std::memcpy(values[i], &none, sizeof(none));
          break;
        }
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
          std::memset(values[i], 0, 8);
          break;
        default:
          fail(CUDA_ERROR_INVALID_VALUE);
      }
    }
  });
}

// There are none, as on a device without image support.

CUresult CUDAAPI cuArrayCreate(CUarray*, const CUDA_ARRAY_DESCRIPTOR*) {
  return context_call(__func__, [] { fail(CUDA_ERROR_NOT_SUPPORTED); });
}

CUresult CUDAAPI cuArray3DCreate(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*) {
  return context_call(__func__, [] { fail(CUDA_ERROR_NOT_SUPPORTED); });
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*,
                                        unsigned) {
  return context_call(__func__, [] { fail(CUDA_ERROR_NOT_SUPPORTED); });
}

CUresult CUDAAPI cuTexObjectCreate(CUtexObject*, const CUDA_RESOURCE_DESC*,
                                   const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*) {
  return context_call(__func__, [] { fail(CUDA_ERROR_NOT_SUPPORTED); });
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject*, const CUDA_RESOURCE_DESC*) {
  return context_call(__func__, [] { fail(CUDA_ERROR_NOT_SUPPORTED); });
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*) {
  return context_call(__func__, [] { fail(CUDA_ERROR_NOT_SUPPORTED); });
}
