// SPDX-License-Identifier: Apache-2.0

// The bodies of the hooks: one function for each entry, under the driver's own name. Every one goes
// to the driver through the entries saved when it was opened, and none lets an exception out.

#include <algorithm>
#include <filesystem>

#include "file.h"
#include "record/cupti.h"
#include "record/interpose.h"

#define KJ_HOOK extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

namespace kjudge {
namespace {

// Runs `body` with the driver and what was observed so far. A failure becomes the code that the
// driver would give, and the message is kept: the contestant sees only the code.
template <class Entry, class Body>
CUresult hooked(Entry HookedEntries::*entry, Body body) {
  const Watched* watched = kjudge::watched();
  if (watched == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (watched->entries.*entry == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const RecorderCall recorders;
  Observed& observed = *watched->observed;
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::string message;
  std::optional<Rule> rule;
  try {
    return body(*watched, observed, watched->entries.*entry);
  } catch (const Refused& error) {
    result = CUDA_ERROR_NOT_SUPPORTED;
    message = error.what();
    rule = error.rule();
  } catch (const DriverError& error) {
    result = error.result();
    message = error.what();
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "unknown failure";
  }
  try {
    const std::lock_guard lock(observed.mutex);
    observed.call_failure = {result, message, rule};
  } catch (...) {
  }
  return result;
}

CUstream resolve(CUstream stream, bool per_thread) {
  return stream == nullptr && per_thread ? CU_STREAM_PER_THREAD : stream;
}

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

// Notes what a load call gave. The host driver's images are what the call was given. NVIDIA's
// driver chooses, decompresses and compiles: CUPTI shows what it made of `image`, during the call
// or, when it loads lazily, long after; a cubin that is loaded during the call belongs to its
// handle.
template <class Entry, class Call, class CopyImage>
CUresult load_module(Entry HookedEntries::*entry, bool library, Call call, CopyImage copy_image) {
  return hooked(entry, [&](const Watched& watched, Observed& observed, auto real) {
    const std::size_t before = cubins_loaded_by_this_thread();
    const void* handle = nullptr;
    const CUresult result = call(real, &handle);
    if (result != CUDA_SUCCESS) return result;
    std::optional<std::size_t> image;
    if (watched.driver.kind == DriverKind::host) {
      if (auto bytes = copy_image()) image = observed.modules.keep(std::move(*bytes));
    } else {
      const auto cubins = last_cubins_of_this_thread(cubins_loaded_by_this_thread() - before);
      if (cubins.size() == 1) image = observed.modules.keep(*cubins.front().image);
    }
    observed.modules.loaded(handle, image, library);
    return result;
  });
}

template <class Entry, class Call>
CUresult load_image(Entry HookedEntries::*entry, const void* image, bool library, Call call) {
  return load_module(entry, library, call, [&] { return copy_image(image); });
}

template <class Entry, class Call>
CUresult load_file(Entry HookedEntries::*entry, const char* path, bool library, Call call) {
  return load_module(entry, library, call, [&] {
    const std::string text = read_file(path, std::size_t{4} << 30);
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return std::optional(Bytes(bytes, bytes + text.size()));
  });
}

std::string kernel_text(const Driver& driver, CUfunction function) {
  const char* kernel = nullptr;
  if (driver.cuFuncGetName(&kernel, function) != CUDA_SUCCESS) {
    CUfunction of_library = nullptr;  // launches also take a CUkernel
    if (driver.cuKernelGetFunction(&of_library, reinterpret_cast<CUkernel>(function)) ==
        CUDA_SUCCESS) {
      driver.cuFuncGetName(&kernel, of_library);
    }
  }
  return kernel != nullptr ? cat("kernel ", readable_name(kernel)) : "a kernel without a name";
}

// A call that gives `stream` work to do, which a replay does only if it is captured.
template <class Call>
CUresult work(Observed& observed, CUstream stream, const std::function<std::string()>& what,
              Call call) {
  const bool outside = observed.watch.outside(stream, what);
  const CUresult result = call();
  if (outside && result != CUDA_SUCCESS) observed.watch.not_done();
  return result;
}

template <class Entry, class Call>
CUresult launch(Entry HookedEntries::*entry, CUstream stream, CUfunction function, Call call) {
  return hooked(entry, [&](const Watched& watched, Observed& observed, auto real) {
    return work(
        observed, stream, [&] { return kernel_text(watched.driver, function); },
        [&] { return call(real); });
  });
}

template <class Entry>
CUresult launch_graph(Entry HookedEntries::*entry, CUgraphExec graph, CUstream stream,
                      bool per_thread) {
  return hooked(entry, [&](const Watched&, Observed& observed, auto real) {
    return work(
        observed, resolve(stream, per_thread), [] { return std::string("a graph"); },
        [&] { return real(graph, stream); });
  });
}

template <class Entry>
CUresult refuse(Entry HookedEntries::*entry, Rule rule, const char* call) {
  return hooked(entry,
                [&](const Watched&, Observed&, auto) -> CUresult { throw Refused(rule, call); });
}

template <class Entry, class Call>
CUresult own_capture(Entry HookedEntries::*entry, Call call) {
  return hooked(entry, [&](const Watched&, Observed& observed, auto real) {
    observed.watch.own_capture();
    return call(real);
  });
}

}  // namespace
}  // namespace kjudge

using namespace kjudge;
using Real = HookedEntries;

// Memory

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

// Modules. Unloading is put off to the end of the process: graphs captured before may use the code.

KJ_HOOK cuModuleLoad(CUmodule* module, const char* path) {
  return load_file(&Real::cuModuleLoad, path, false, [&](auto real, const void** handle) {
    const CUresult result = real(module, path);
    if (result == CUDA_SUCCESS) *handle = *module;
    return result;
  });
}

KJ_HOOK cuModuleLoadData(CUmodule* module, const void* image) {
  return load_image(&Real::cuModuleLoadData, image, false, [&](auto real, const void** handle) {
    const CUresult result = real(module, image);
    if (result == CUDA_SUCCESS) *handle = *module;
    return result;
  });
}

KJ_HOOK cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                           CUjit_option* options, void** values) {
  return load_image(&Real::cuModuleLoadDataEx, image, false, [&](auto real, const void** handle) {
    const CUresult result = real(module, image, count, options, values);
    if (result == CUDA_SUCCESS) *handle = *module;
    return result;
  });
}

KJ_HOOK cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_image(&Real::cuModuleLoadFatBinary, image, false,
                    [&](auto real, const void** handle) {
                      const CUresult result = real(module, image);
                      if (result == CUDA_SUCCESS) *handle = *module;
                      return result;
                    });
}

KJ_HOOK cuModuleUnload(CUmodule module) {
  return hooked(&Real::cuModuleUnload, [&](const Watched&, Observed& observed, auto real) {
    return observed.modules.is_loaded(module) ? CUDA_SUCCESS : real(module);
  });
}

KJ_HOOK cuLibraryUnload(CUlibrary library) {
  return hooked(&Real::cuLibraryUnload, [&](const Watched&, Observed& observed, auto real) {
    return observed.modules.is_loaded(library) ? CUDA_SUCCESS : real(library);
  });
}

KJ_HOOK cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options,
                          void** jit_values, unsigned jit_count, CUlibraryOption* options,
                          void** values, unsigned count) {
  return load_image(&Real::cuLibraryLoadData, image, true, [&](auto real, const void** handle) {
    const CUresult result =
        real(library, image, jit_options, jit_values, jit_count, options, values, count);
    if (result == CUDA_SUCCESS) *handle = *library;
    return result;
  });
}

KJ_HOOK cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                              void** jit_values, unsigned jit_count, CUlibraryOption* options,
                              void** values, unsigned count) {
  return load_file(&Real::cuLibraryLoadFromFile, path, true, [&](auto real, const void** handle) {
    const CUresult result =
        real(library, path, jit_options, jit_values, jit_count, options, values, count);
    if (result == CUDA_SUCCESS) *handle = *library;
    return result;
  });
}

namespace {

// Where a variable lies, once the submission was told: of a library that is loaded lazily nothing
// else is known before a graph uses it.
template <class Handle>
CUresult get_variable(CUresult (CUDAAPI* HookedEntries::*entry)(CUdeviceptr*, size_t*, Handle,
                                                                const char*),
                      CUdeviceptr* address, size_t* bytes, Handle handle, const char* name) {
  return hooked(entry, [&](const Watched&, Observed& observed, auto real) {
    CUdeviceptr where = 0;
    size_t size = 0;
    const CUresult result = real(&where, &size, handle, name);
    if (result != CUDA_SUCCESS) return result;
    observed.modules.told_variable({name, where, size});
    if (address != nullptr) *address = where;
    if (bytes != nullptr) *bytes = size;
    return result;
  });
}

}  // namespace

KJ_HOOK cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                             const char* name) {
  return get_variable(&Real::cuModuleGetGlobal_v2, address, bytes, module, name);
}

KJ_HOOK cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                           const char* name) {
  return get_variable(&Real::cuLibraryGetGlobal, address, bytes, library, name);
}

// Settings that the driver cannot be asked for afterwards.

KJ_HOOK cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return hooked(&Real::cuFuncSetAttribute, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(function, attribute, value);
    if (result == CUDA_SUCCESS) observed.modules.set_attribute(function, attribute, value);
    return result;
  });
}

KJ_HOOK cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                             CUdevice device) {
  return hooked(&Real::cuKernelSetAttribute, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(attribute, value, kernel, device);
    if (result == CUDA_SUCCESS) observed.modules.set_attribute(kernel, attribute, value);
    return result;
  });
}

KJ_HOOK cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return hooked(&Real::cuFuncSetCacheConfig, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(function, config);
    if (result == CUDA_SUCCESS) observed.modules.set_cache_config(function, config);
    return result;
  });
}

KJ_HOOK cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  return hooked(&Real::cuKernelSetCacheConfig, [&](const Watched&, Observed& observed, auto real) {
    const CUresult result = real(kernel, config, device);
    if (result == CUDA_SUCCESS) observed.modules.set_cache_config(kernel, config);
    return result;
  });
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

// Launches and captures

KJ_HOOK cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                       void** extra) {
  return launch(&Real::cuLaunchKernel, stream, function, [&](auto real) {
    return real(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  });
}

KJ_HOOK cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void** params, void** extra) {
  return launch(&Real::cuLaunchKernel_ptsz, resolve(stream, true), function, [&](auto real) {
    return real(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  });
}

KJ_HOOK cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                  unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                  CUstream stream, void** params) {
  return launch(&Real::cuLaunchCooperativeKernel, stream, function, [&](auto real) {
    return real(function, gx, gy, gz, bx, by, bz, shared, stream, params);
  });
}

KJ_HOOK cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                       unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                       CUstream stream, void** params) {
  return launch(
      &Real::cuLaunchCooperativeKernel_ptsz, resolve(stream, true), function,
      [&](auto real) { return real(function, gx, gy, gz, bx, by, bz, shared, stream, params); });
}

namespace {

template <class Entry>
CUresult launch_with_config(Entry HookedEntries::*entry, const CUlaunchConfig* config,
                            CUfunction function, void** params, void** extra, bool per_thread) {
  return hooked(entry, [&](const Watched& watched, Observed& observed, auto real) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUstream stream = resolve(config->hStream, per_thread);
    const CUresult result = work(
        observed, stream, [&] { return kernel_text(watched.driver, function); },
        [&] { return real(config, function, params, extra); });
    if (result == CUDA_SUCCESS) observed.watch.launched(stream, {config->attrs, config->numAttrs});
    return result;
  });
}

}  // namespace

KJ_HOOK cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                         void** extra) {
  return launch_with_config(&Real::cuLaunchKernelEx, config, function, params, extra, false);
}

KJ_HOOK cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** params,
                              void** extra) {
  return launch_with_config(&Real::cuLaunchKernelEx_ptsz, config, function, params, extra, true);
}

KJ_HOOK cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return launch_graph(&Real::cuGraphLaunch, graph, stream, false);
}

KJ_HOOK cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return launch_graph(&Real::cuGraphLaunch_ptsz, graph, stream, true);
}

KJ_HOOK cuStreamBeginCapture(CUstream stream) {
  return own_capture(&Real::cuStreamBeginCapture, [&](auto real) { return real(stream); });
}

KJ_HOOK cuStreamBeginCapture_ptsz(CUstream stream) {
  return own_capture(&Real::cuStreamBeginCapture_ptsz, [&](auto real) { return real(stream); });
}

KJ_HOOK cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCapture_v2, [&](auto real) { return real(stream, mode); });
}

KJ_HOOK cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCapture_v2_ptsz,
                     [&](auto real) { return real(stream, mode); });
}

KJ_HOOK cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                    const CUgraphEdgeData* edges, size_t count,
                                    CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCaptureToGraph,
                     [&](auto real) { return real(stream, graph, nodes, edges, count, mode); });
}

KJ_HOOK cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                         const CUgraphEdgeData* edges, size_t count,
                                         CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCaptureToGraph_ptsz,
                     [&](auto real) { return real(stream, graph, nodes, edges, count, mode); });
}

KJ_HOOK cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return own_capture(&Real::cuStreamEndCapture, [&](auto real) { return real(stream, graph); });
}

KJ_HOOK cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return own_capture(&Real::cuStreamEndCapture_ptsz,
                     [&](auto real) { return real(stream, graph); });
}

// Copies, fills and the like. Their hooks differ in nothing but the arguments that they pass on, so
// one template is all of them; what is exported under each one's name is a jump there.

namespace {

template <class Signature>
struct WorkHook;

template <class... Arguments>
struct WorkHook<CUresult(Arguments...)> {
  template <auto Entry, class Name, bool per_thread>
  static CUresult CUDAAPI call(Arguments... arguments) {
    return hooked(Entry, [&](const Watched&, Observed& observed, auto real) {
      return work(
          observed, resolve(stream_of(arguments...), per_thread),
          [] { return std::string(Name::text); }, [&] { return real(arguments...); });
    });
  }

  // The one argument that is a stream; calls without one use the default stream.
  static CUstream stream_of(const Arguments&... arguments) {
    CUstream stream = nullptr;
    const auto take = [&](const auto& argument) {
      if constexpr (std::is_same_v<decltype(argument), const CUstream&>) stream = argument;
    };
    (take(arguments), ...);
    return stream;
  }
};

}  // namespace

#define KJ_WORK_HOOK(entry, base, version, per_thread)                                        \
  struct entry##_name {                                                                       \
    static constexpr const char* text = base;                                                 \
  };                                                                                          \
  extern "C" {                                                                                \
  __attribute__((used, visibility("hidden"))) decltype(&::entry) kjudge_hook_##entry =        \
      &WorkHook<decltype(::entry)>::call<&Real::entry, entry##_name, per_thread>;             \
  }                                                                                           \
  asm("       .text\n        .globl " #entry "\n        .type " #entry ", @function\n" #entry \
      ":\n        endbr64\n        jmp *kjudge_hook_" #entry "(%rip)\n        .size " #entry  \
      ", .-" #entry "\n");
KJ_WORK_HOOKS(KJ_WORK_HOOK)
