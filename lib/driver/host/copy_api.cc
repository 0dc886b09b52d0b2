// SPDX-License-Identifier: Apache-2.0
// Copies and fills. All become CUDA_MEMCPY3D or memset parameters, the form that graphs hold.
#include <cstring>

#include "driver/host/context.h"
#include "driver/host/graph.h"
#include "driver/host/memory.h"
#include "driver/host/stream.h"

using namespace kjudge;

namespace kjudge {

namespace {

// Bytes from the first to the last that a side of a copy touches.
std::uint64_t extent(const CUDA_MEMCPY3D& p, std::uint64_t pitch, std::uint64_t height) {
  std::uint64_t rows = 0, bytes = 0;
  require(!__builtin_mul_overflow(p.Depth - 1, height, &rows) &&
          !__builtin_add_overflow(rows, p.Height - 1, &rows) &&
          !__builtin_mul_overflow(rows, pitch, &bytes) &&
          !__builtin_add_overflow(bytes, p.WidthInBytes, &bytes));
  return bytes;
}

std::uint64_t start(std::uint64_t base, std::uint64_t x, std::uint64_t y, std::uint64_t z,
                    std::uint64_t pitch, std::uint64_t height) {
  std::uint64_t offset = 0, rows = 0;
  require(!__builtin_mul_overflow(z, height, &rows) && !__builtin_add_overflow(rows, y, &rows) &&
          !__builtin_mul_overflow(rows, pitch, &offset) &&
          !__builtin_add_overflow(offset, x, &offset) &&
          !__builtin_add_overflow(offset, base, &offset));
  return offset;
}

void check_side(CUmemorytype type, std::uint64_t address, std::uint64_t bytes, bool write) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      require(address != 0);
      Memory::get().check(address, bytes, write, true);
      return;
    case CU_MEMORYTYPE_DEVICE:
      Memory::get().check(address, bytes, write, false);
      return;
    case CU_MEMORYTYPE_UNIFIED:
      Memory::get().check(address, bytes, write, true);
      return;
    case CU_MEMORYTYPE_ARRAY:
      fail(CUDA_ERROR_NOT_SUPPORTED);
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

CopyWork checked_copy(const CUDA_MEMCPY3D& params) {
  CopyWork work{params, nullptr};
  CUDA_MEMCPY3D& p = work.params;
  require(p.srcLOD == 0 && p.dstLOD == 0 && p.reserved0 == nullptr && p.reserved1 == nullptr);
  if (p.WidthInBytes == 0 || p.Height == 0 || p.Depth == 0) return work;
  // Pitch and height may be left out where they do not matter.
  if (p.srcPitch == 0) p.srcPitch = p.srcXInBytes + p.WidthInBytes;
  if (p.dstPitch == 0) p.dstPitch = p.dstXInBytes + p.WidthInBytes;
  if (p.srcHeight == 0) p.srcHeight = p.srcY + p.Height;
  if (p.dstHeight == 0) p.dstHeight = p.dstY + p.Height;
  require(p.srcXInBytes <= p.srcPitch && p.WidthInBytes <= p.srcPitch - p.srcXInBytes);
  require(p.dstXInBytes <= p.dstPitch && p.WidthInBytes <= p.dstPitch - p.dstXInBytes);
  require(p.srcY <= p.srcHeight && p.Height <= p.srcHeight - p.srcY);
  require(p.dstY <= p.dstHeight && p.Height <= p.dstHeight - p.dstY);
  const std::uint64_t from_base = p.srcMemoryType == CU_MEMORYTYPE_HOST
                                      ? reinterpret_cast<std::uint64_t>(p.srcHost)
                                      : p.srcDevice;
  const std::uint64_t to_base = p.dstMemoryType == CU_MEMORYTYPE_HOST
                                    ? reinterpret_cast<std::uint64_t>(p.dstHost)
                                    : p.dstDevice;
  check_side(p.srcMemoryType,
             start(from_base, p.srcXInBytes, p.srcY, p.srcZ, p.srcPitch, p.srcHeight),
             extent(p, p.srcPitch, p.srcHeight), false);
  check_side(p.dstMemoryType,
             start(to_base, p.dstXInBytes, p.dstY, p.dstZ, p.dstPitch, p.dstHeight),
             extent(p, p.dstPitch, p.dstHeight), true);
  return work;
}

CopyWork checked_copy(CUdeviceptr to, CUmemorytype to_type, CUdeviceptr from,
                      CUmemorytype from_type, std::size_t bytes) {
  CUDA_MEMCPY3D p{};
  p.dstMemoryType = to_type;
  if (to_type == CU_MEMORYTYPE_HOST) {
    p.dstHost = reinterpret_cast<void*>(to);
  } else {
    p.dstDevice = to;
  }
  p.srcMemoryType = from_type;
  if (from_type == CU_MEMORYTYPE_HOST) {
    p.srcHost = reinterpret_cast<const void*>(from);
  } else {
    p.srcDevice = from;
  }
  p.WidthInBytes = bytes;
  p.Height = p.Depth = 1;
  return checked_copy(p);
}

MemsetWork checked_memset(const CUDA_MEMSET_NODE_PARAMS& params) {
  const CUDA_MEMSET_NODE_PARAMS& p = params;
  require(p.elementSize == 1 || p.elementSize == 2 || p.elementSize == 4);
  require(p.dst % p.elementSize == 0);
  require(p.elementSize == 4 || p.value < 1u << (8 * p.elementSize));
  if (p.width == 0 || p.height == 0) return {params};
  std::uint64_t row = 0, bytes = 0;
  require(!__builtin_mul_overflow(p.width, p.elementSize, &row));
  if (p.height > 1) {
    require(p.pitch >= row && p.pitch % p.elementSize == 0);
    require(!__builtin_mul_overflow(p.pitch, p.height - 1, &bytes));
  }
  require(!__builtin_add_overflow(bytes, row, &bytes));
  Memory::get().check(p.dst, bytes, true, false);
  return {params};
}

}  // namespace kjudge

namespace {

constexpr CUmemorytype kHost = CU_MEMORYTYPE_HOST;
constexpr CUmemorytype kDevice = CU_MEMORYTYPE_DEVICE;
constexpr CUmemorytype kUnified = CU_MEMORYTYPE_UNIFIED;

MemsetWork fill(CUdeviceptr address, size_t pitch, unsigned value, unsigned element_size,
                size_t width, size_t height) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = address;
  params.pitch = pitch;
  params.value = value;
  params.elementSize = element_size;
  params.width = width;
  params.height = height;
  return checked_memset(params);
}

CopyWork copy_2d(const CUDA_MEMCPY2D* copy) {
  require(copy != nullptr);
  CUDA_MEMCPY3D p{};
  p.srcXInBytes = copy->srcXInBytes;
  p.srcY = copy->srcY;
  p.srcMemoryType = copy->srcMemoryType;
  p.srcHost = copy->srcHost;
  p.srcDevice = copy->srcDevice;
  p.srcPitch = copy->srcPitch;
  p.dstXInBytes = copy->dstXInBytes;
  p.dstY = copy->dstY;
  p.dstMemoryType = copy->dstMemoryType;
  p.dstHost = copy->dstHost;
  p.dstDevice = copy->dstDevice;
  p.dstPitch = copy->dstPitch;
  p.WidthInBytes = copy->WidthInBytes;
  p.Height = copy->Height;
  p.Depth = 1;
  return checked_copy(p);
}

CopyWork copy_3d(const CUDA_MEMCPY3D* copy) {
  require(copy != nullptr);
  return checked_copy(*copy);
}

bool pageable(CUmemorytype type, const void* host, CUdeviceptr address) {
  if (type != kHost && type != kUnified) return false;
  const std::uint64_t at = type == kHost ? address_of(host) : address;
  return !Memory::get().find(at).has_value();
}

void submit_as_cuda_does(const std::shared_ptr<CUstream_st>& stream, MemsetWork work) {
  submit(stream, std::move(work));
}

// Host memory that the driver does not know: a source is taken at the call, so that the caller may
// reuse it, and a destination is there when the call returns. In a graph both stay pointers.
void submit_as_cuda_does(const std::shared_ptr<CUstream_st>& stream, CopyWork work) {
  CUDA_MEMCPY3D& p = work.params;
  const bool straight = p.Height == 1 && p.Depth == 1;
  const bool from_pageable = pageable(p.srcMemoryType, p.srcHost, p.srcDevice);
  const bool to_pageable = pageable(p.dstMemoryType, p.dstHost, p.dstDevice);
  bool captured = false;
  {
    const std::lock_guard lock(queue_mutex());
    captured = stream->capture != nullptr;
  }
  if (from_pageable && straight && p.WidthInBytes > 0 && !captured) {
    const auto* from = p.srcMemoryType == kHost ? static_cast<const std::byte*>(p.srcHost)
                                                : reinterpret_cast<const std::byte*>(p.srcDevice);
    work.staged = std::make_shared<std::byte[]>(p.WidthInBytes);
    std::memcpy(work.staged.get(), from + p.srcXInBytes, p.WidthInBytes);
    p.srcMemoryType = kHost;
    p.srcHost = work.staged.get();
    p.srcXInBytes = p.srcY = p.srcZ = 0;
  }
  const Ticket ticket = submit(stream, std::move(work));
  if (!captured && (to_pageable || (from_pageable && !straight))) {
    ticket.wait();
    stream->context.check();
  }
}

// `make` checks and describes; the call is synchronous, or in stream order.
template <class Make>
CUresult now(const char* name, Make&& make) {
  return context_call(name, [&](CUctx_st& context) { submit_and_wait(context, make()); });
}
template <class Make>
CUresult in_stream(const char* name, CUstream handle, Make&& make) {
  return context_call(name, [&](CUctx_st& context) {
    const auto stream = stream_of(context, handle);
    submit_as_cuda_does(stream, make());
  });
}

}  // namespace

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return now(__func__, [&] { return checked_copy(to, kUnified, from, kUnified, bytes); });
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return in_stream(__func__, stream,
                   [&] { return checked_copy(to, kUnified, from, kUnified, bytes); });
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return now(__func__, [&] { return checked_copy(to, kDevice, address_of(from), kHost, bytes); });
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes,
                                   CUstream stream) {
  return in_stream(__func__, stream,
                   [&] { return checked_copy(to, kDevice, address_of(from), kHost, bytes); });
}

CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return now(__func__, [&] { return checked_copy(address_of(to), kHost, from, kDevice, bytes); });
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return in_stream(__func__, stream,
                   [&] { return checked_copy(address_of(to), kHost, from, kDevice, bytes); });
}

CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return now(__func__, [&] { return checked_copy(to, kDevice, from, kDevice, bytes); });
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                   CUstream stream) {
  return in_stream(__func__, stream,
                   [&] { return checked_copy(to, kDevice, from, kDevice, bytes); });
}

CUresult CUDAAPI cuMemcpy2D(const CUDA_MEMCPY2D* copy) {
  return now(__func__, [&] { return copy_2d(copy); });
}

CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return in_stream(__func__, stream, [&] { return copy_2d(copy); });
}

CUresult CUDAAPI cuMemcpy3D(const CUDA_MEMCPY3D* copy) {
  return now(__func__, [&] { return copy_3d(copy); });
}

CUresult CUDAAPI cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return in_stream(__func__, stream, [&] { return copy_3d(copy); });
}

CUresult CUDAAPI cuMemsetD8(CUdeviceptr to, unsigned char value, size_t count) {
  return now(__func__, [&] { return fill(to, 0, value, 1, count, 1); });
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                                 CUstream stream) {
  return in_stream(__func__, stream, [&] { return fill(to, 0, value, 1, count, 1); });
}

CUresult CUDAAPI cuMemsetD16(CUdeviceptr to, unsigned short value, size_t count) {
  return now(__func__, [&] { return fill(to, 0, value, 2, count, 1); });
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count,
                                  CUstream stream) {
  return in_stream(__func__, stream, [&] { return fill(to, 0, value, 2, count, 1); });
}

CUresult CUDAAPI cuMemsetD32(CUdeviceptr to, unsigned value, size_t count) {
  return now(__func__, [&] { return fill(to, 0, value, 4, count, 1); });
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return in_stream(__func__, stream, [&] { return fill(to, 0, value, 4, count, 1); });
}

CUresult CUDAAPI cuMemsetD2D8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                              size_t height) {
  return now(__func__, [&] { return fill(to, pitch, value, 1, width, height); });
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                   size_t height, CUstream stream) {
  return in_stream(__func__, stream, [&] { return fill(to, pitch, value, 1, width, height); });
}

CUresult CUDAAPI cuMemsetD2D16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                               size_t height) {
  return now(__func__, [&] { return fill(to, pitch, value, 2, width, height); });
}

CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value,
                                    size_t width, size_t height, CUstream stream) {
  return in_stream(__func__, stream, [&] { return fill(to, pitch, value, 2, width, height); });
}

CUresult CUDAAPI cuMemsetD2D32(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                               size_t height) {
  return now(__func__, [&] { return fill(to, pitch, value, 4, width, height); });
}

CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                                    size_t height, CUstream stream) {
  return in_stream(__func__, stream, [&] { return fill(to, pitch, value, 4, width, height); });
}

CUresult CUDAAPI cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) {
  return now(__func__, [&] { return copy_2d(copy); });
}
