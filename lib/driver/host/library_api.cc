// SPDX-License-Identifier: Apache-2.0
// Libraries and their kernels: modules that no context owns.
#include <algorithm>
#include <set>
#include <string>

#include "driver/host/context.h"
#include "driver/host/module.h"
#include "error.h"
#include "file.h"

using namespace kjudge;

namespace {

// The kernels' names come from loading it once: what is wrong with an image is said here, not at a
// kernel's first use.
CUlibrary make_library(std::span<const std::byte> image) {
  auto library = std::make_shared<CUlib_st>();
  library->image.assign(image.begin(), image.end());
  const LoadedImage trial(image);
  for (const kj_kernel_entry& entry : trial.kernels()) {
    auto kernel = std::make_shared<CUkern_st>();
    kernel->library = library.get();
    kernel->name = entry.name;
    library->kernels.push_back(std::move(kernel));
  }
  for (const auto& kernel : library->kernels) handles<CUkern_st>().add(kernel);
  return handles<CUlib_st>().add(std::move(library));
}

std::shared_ptr<CUfunc_st> function_on(CUkernel kernel, CUdevice device) {
  check_device(device);
  return function_of(*usable_context(), kernel);
}

}  // namespace

CUresult CUDAAPI cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                                   unsigned, CUlibraryOption*, void**, unsigned) {
  return device_call(__func__, [&] {
    require(library != nullptr);
    forbid_during_capture();
    *library = make_library(image_bytes(code));
  });
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**,
                                       unsigned, CUlibraryOption*, void**, unsigned) {
  return device_call(__func__, [&] {
    require(library != nullptr && path != nullptr);
    forbid_during_capture();
    std::string bytes;
    try {
      bytes = read_file(path);
    } catch (const Error& error) {
      log_line(error.what());
      fail(CUDA_ERROR_FILE_NOT_FOUND);
    }
    *library = make_library(std::as_bytes(std::span(bytes)));
  });
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary handle) {
  return device_call(__func__, [&] {
    const auto library = handles<CUlib_st>().get(handle);
    forbid_during_capture();
    std::map<CUcontext, CUmodule> modules;
    {
      const std::lock_guard lock(library->mutex);
      modules.swap(library->modules);
    }
    for (const auto& [owner, module] : modules) {
      if (const auto context = handles<CUctx_st>().find(owner)) synchronize(*context);
      unload_module(module);
    }
    for (const auto& kernel : library->kernels) handles<CUkern_st>().remove(kernel.get());
    handles<CUlib_st>().remove(handle);
  });
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  return device_call(__func__, [&] {
    require(kernel != nullptr && name != nullptr);
    const auto library = handles<CUlib_st>().get(handle);
    for (const auto& candidate : library->kernels) {
      if (candidate->name == name) {
        *kernel = candidate.get();
        return;
      }
    }
    fail(CUDA_ERROR_NOT_FOUND);
  });
}

CUresult CUDAAPI cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  return device_call(__func__, [&] {
    require(count != nullptr);
    *count = static_cast<unsigned>(handles<CUlib_st>().get(handle)->kernels.size());
  });
}

CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary handle) {
  return device_call(__func__, [&] {
    require(kernels != nullptr || count == 0);
    const auto library = handles<CUlib_st>().get(handle);
    const std::size_t n = std::min<std::size_t>(count, library->kernels.size());
    for (std::size_t i = 0; i < n; ++i) kernels[i] = library->kernels[i].get();
  });
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(module != nullptr);
    *module = module_of(context, *handles<CUlib_st>().get(handle)).get();
  });
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                                    const char* name) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(name != nullptr && (address != nullptr || bytes != nullptr));
    const auto module = module_of(context, *handles<CUlib_st>().get(handle));
    const auto found = module->image->variables().find(std::string_view(name));
    require(found != module->image->variables().end(), CUDA_ERROR_NOT_FOUND);
    if (address != nullptr) *address = found->second.address;
    if (bytes != nullptr) *bytes = found->second.size;
  });
}

CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr*, size_t*, CUlibrary handle, const char* name) {
  return context_call(__func__, [&] {
    require(name != nullptr);
    handles<CUlib_st>().get(handle);
    fail(CUDA_ERROR_NOT_FOUND);  // a host module has no managed variables
  });
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(function != nullptr);
    *function = function_of(context, kernel).get();
  });
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return device_call(__func__, [&] {
    require(library != nullptr);
    *library = handles<CUkern_st>().get(kernel)->library;
  });
}

CUresult CUDAAPI cuKernelGetName(const char** name, CUkernel kernel) {
  return device_call(__func__, [&] {
    require(name != nullptr);
    *name = handles<CUkern_st>().get(kernel)->name.c_str();
  });
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(offset != nullptr);
    const auto function = function_of(context, kernel);
    require(index < function->parameters.size());
    *offset = function->parameters[index].offset;
    if (size != nullptr) *size = function->parameters[index].size;
  });
}

CUresult CUDAAPI cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                      CUdevice device) {
  return context_call(__func__, [&] {
    require(value != nullptr);
    *value = attribute_of(*function_on(kernel, device), attribute);
  });
}

CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                      CUdevice device) {
  return context_call(__func__,
                      [&] { set_attribute(*function_on(kernel, device), attribute, value); });
}

CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  return context_call(__func__, [&] {
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    const auto function = function_on(kernel, device);
    const std::lock_guard lock(function->mutex);
    function->attributes.cache_config = config;
  });
}
