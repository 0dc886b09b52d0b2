// SPDX-License-Identifier: Apache-2.0
// Modules and functions.
#include <algorithm>
#include <string>

#include "driver/host/context.h"
#include "driver/host/module.h"
#include "error.h"
#include "file.h"

using namespace kjudge;

namespace {

std::string file_bytes(const char* path) {
  require(path != nullptr);
  try {
    return read_file(path);
  } catch (const Error& error) {
    log_line(error.what());
    fail(CUDA_ERROR_FILE_NOT_FOUND);
  }
}

}  // namespace

CUresult CUDAAPI cuModuleLoadData(CUmodule* module, const void* image) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(module != nullptr);
    forbid_during_capture();
    *module = load_module(context, image_bytes(image)).get();
  });
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                    void**) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(module != nullptr);
    forbid_during_capture();
    *module = load_module(context, image_bytes(image)).get();
  });
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(module != nullptr);
    forbid_during_capture();
    *module = load_module(context, image_bytes(image)).get();
  });
}

CUresult CUDAAPI cuModuleLoad(CUmodule* module, const char* path) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(module != nullptr);
    forbid_during_capture();
    const std::string bytes = file_bytes(path);
    *module = load_module(context, std::as_bytes(std::span(bytes))).get();
  });
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  return context_call(__func__, [&](CUctx_st& context) {
    handles<CUmod_st>().get(module);
    forbid_during_capture();
    synchronize(context);
    unload_module(module);
  });
}

CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return device_call(__func__, [&] {
    require(mode != nullptr);
    *mode = CU_MODULE_EAGER_LOADING;
  });
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return context_call(__func__, [&] {
    require(function != nullptr && name != nullptr);
    const auto module = handles<CUmod_st>().get(handle);
    const auto found = module->by_name.find(std::string_view(name));
    require(found != module->by_name.end(), CUDA_ERROR_NOT_FOUND);
    *function = found->second;
  });
}

CUresult CUDAAPI cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  return context_call(__func__, [&] {
    require(count != nullptr);
    *count = static_cast<unsigned>(handles<CUmod_st>().get(handle)->functions.size());
  });
}

CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction* functions, unsigned count,
                                            CUmodule handle) {
  return context_call(__func__, [&] {
    require(functions != nullptr || count == 0);
    const auto module = handles<CUmod_st>().get(handle);
    const std::size_t n = std::min<std::size_t>(count, module->functions.size());
    for (std::size_t i = 0; i < n; ++i) functions[i] = module->functions[i].get();
  });
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                                   const char* name) {
  return context_call(__func__, [&] {
    require(name != nullptr && (address != nullptr || bytes != nullptr));
    const auto module = handles<CUmod_st>().get(handle);
    const auto found = module->image->variables().find(std::string_view(name));
    require(found != module->image->variables().end(), CUDA_ERROR_NOT_FOUND);
    if (address != nullptr) *address = found->second.address;
    if (bytes != nullptr) *bytes = found->second.size;
  });
}

CUresult CUDAAPI cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(value != nullptr);
    *value = attribute_of(*function_of(context, handle), attribute);
  });
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return context_call(__func__, [&](CUctx_st& context) {
    set_attribute(*function_of(context, handle), attribute, value);
  });
}

CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL);
    const auto function = function_of(context, handle);
    const std::lock_guard lock(function->mutex);
    function->attributes.cache_config = config;
  });
}

CUresult CUDAAPI cuFuncGetModule(CUmodule* module, CUfunction handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(module != nullptr);
    *module = function_of(context, handle)->module;
  });
}

CUresult CUDAAPI cuFuncGetName(const char** name, CUfunction handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(name != nullptr);
    *name = function_of(context, handle)->name.c_str();
  });
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(offset != nullptr);
    const auto function = function_of(context, handle);
    require(index < function->parameters.size());
    *offset = function->parameters[index].offset;
    if (size != nullptr) *size = function->parameters[index].size;
  });
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  return context_call(__func__, [&](CUctx_st& context) { function_of(context, handle); });
}

CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(state != nullptr);
    function_of(context, handle);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
  });
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle,
                                                             int threads, size_t shared_bytes) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(blocks != nullptr && threads > 0);
    function_of(context, handle);
    *blocks = threads <= kMaxThreadsPerBlock && shared_bytes <= kMaxSharedBytes ? 1 : 0;
  });
}
