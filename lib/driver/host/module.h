// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/host/guard.h"
#include "driver/host/handles.h"
#include "driver/host/include/kjudge/host_kernel.h"

namespace kjudge {

// A loaded shared object: a private copy with its own variables, unloaded with the last user, so
// that a graph outlives the module it was captured from.
class LoadedImage {
 public:
  // INVALID_IMAGE for bytes that are no module of the host driver; SHARED_OBJECT_SYMBOL_NOT_FOUND
  // when it needs a symbol that nobody has. Checked as bytes first: loading runs its constructors.
  explicit LoadedImage(std::span<const std::byte> image);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  std::span<const kj_kernel_entry> kernels() const { return kernels_; }
  CodeRange code() const { return code_; }
  // Address and size of a KJ_VARIABLE.
  struct Variable {
    std::uint64_t address = 0, size = 0;
  };
  const std::map<std::string, Variable, std::less<>>& variables() const { return variables_; }

 private:
  void* library_ = nullptr;
  std::span<const kj_kernel_entry> kernels_;
  CodeRange code_;
  std::map<std::string, Variable, std::less<>> variables_;
};

struct Parameter {
  std::size_t offset = 0, size = 0;
};

// The attributes of a function that can be set; the rest are constants of the device.
struct FunctionAttributes {
  std::map<CUfunction_attribute, int> set;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;
};

// The bytes of the image at `image`, a pointer from an API call.
std::span<const std::byte> image_bytes(const void* image);

}  // namespace kjudge

struct CUfunc_st {
  std::string name;
  void (*run)(const kj_block*, const void*) = nullptr;
  std::vector<kjudge::Parameter> parameters;
  std::size_t argument_bytes = 0;
  std::shared_ptr<kjudge::LoadedImage> image;
  CUmodule module = nullptr;
  CUkernel kernel = nullptr;  // when the module is a library's

  std::mutex mutex;
  kjudge::FunctionAttributes attributes;
};

struct CUmod_st {
  std::shared_ptr<kjudge::LoadedImage> image;
  CUcontext context = nullptr;
  std::vector<std::shared_ptr<CUfunc_st>> functions;  // in the order of the table
  std::map<std::string, CUfunc_st*, std::less<>> by_name;
};

// A library: an image that is loaded into a context when it is first used there.
struct CUkern_st {
  CUlibrary library = nullptr;
  std::string name;
};

struct CUlib_st : std::enable_shared_from_this<CUlib_st> {
  std::vector<std::byte> image;
  std::vector<std::shared_ptr<CUkern_st>> kernels;
  std::mutex mutex;
  std::map<CUcontext, CUmodule> modules;
};

namespace kjudge {

std::shared_ptr<CUmod_st> load_module(CUctx_st& context, std::span<const std::byte> image);
// For the current context; loads where needed.
std::shared_ptr<CUmod_st> module_of(CUctx_st& context, CUlib_st& library);
// A CUfunction, or a CUkernel cast to one.
std::shared_ptr<CUfunc_st> function_of(CUctx_st& context, CUfunction handle);
std::shared_ptr<CUfunc_st> function_of(CUctx_st& context, CUkernel handle);
int attribute_of(CUfunc_st& function, CUfunction_attribute attribute);
void set_attribute(CUfunc_st& function, CUfunction_attribute attribute, int value);
void unload_module(CUmodule handle);
void unload_all_of(CUctx_st& context);

inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr int kDefaultSharedBytes = 48 * 1024;
inline constexpr int kMaxSharedBytes = 1024 * 1024;

}  // namespace kjudge
