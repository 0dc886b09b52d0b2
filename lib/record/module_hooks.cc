// SPDX-License-Identifier: Apache-2.0

// Hooks of what loads code and of what is set for its functions.

#include "file.h"
#include "record/cupti.h"
#include "record/hooked.h"

namespace kjudge {
namespace {

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

}  // namespace
}  // namespace kjudge

using namespace kjudge;
using Real = HookedEntries;

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
