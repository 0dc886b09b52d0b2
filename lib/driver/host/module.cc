// SPDX-License-Identifier: Apache-2.0
#include "driver/host/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>

#include "driver/host/context.h"
#include "driver/host/guard.h"
#include "driver/host/memory.h"
#include "driver/host/pool.h"
#include "elf_image.h"
#include "error.h"
#include "file.h"

namespace kjudge {
namespace {

[[noreturn]] void reject(const std::string& why, CUresult result = CUDA_ERROR_INVALID_IMAGE) {
  log_line("module: " + why);
  fail(result);
}

// dlopen compares names with what is loaded before it looks at the file, and a descriptor's number
// comes again: the same path would find the module loaded from it last time. So each load spells
// the path differently, a number written in "/." and "/".
std::string path_of_descriptor(int fd) {
  static std::atomic<std::uint64_t> loads{1};
  std::string path = "/proc/self/fd";
  for (std::uint64_t number = loads.fetch_add(1); number > 0; number /= 2) {
    path += number % 2 == 1 ? "/." : "/";
  }
  return path + "/" + std::to_string(fd);
}

void check_bytes(std::span<const std::byte> image) {
  try {
    const Elf elf(image);
    Elf64_Ehdr header;
    std::memcpy(&header, image.data(), sizeof(header));
    if (elf.machine() != kElfX86_64) reject("not an x86-64 image");
    if (header.e_type != ET_DYN) reject("not a shared object");
    const auto& symbols = elf.symbols();
    const auto table = std::find_if(symbols.begin(), symbols.end(), [](const ElfSymbol& symbol) {
      return symbol.name == "kjudge_kernel_table" && !symbol.undefined;
    });
    if (table == symbols.end() || table->size != sizeof(kj_kernel_table)) {
      reject("no kernel table of this version; build it with kjudge/host_kernel.h");
    }
  } catch (const Error& error) {
    reject(error.what());
  }
}

// The executable segments of the loaded object that holds `address`.
CodeRange code_around(const void* address) {
  struct Search {
    std::uintptr_t address;
    CodeRange found;
  } search{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* out) {
        Search& wanted = *static_cast<Search*>(out);
        CodeRange code{~std::uintptr_t{0}, 0};
        bool here = false;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          const std::uintptr_t end = begin + segment.p_memsz;
          here = here || (wanted.address >= begin && wanted.address < end);
          if ((segment.p_flags & PF_X) == 0) continue;
          code.begin = std::min(code.begin, begin);
          code.end = std::max(code.end, end);
        }
        if (here) wanted.found = code;
        return here ? 1 : 0;
      },
      &search);
  return search.found;
}

}  // namespace

std::span<const std::byte> image_bytes(const void* image) {
  require(image != nullptr);
  if (!is_elf(image)) reject("not an ELF image");
  try {
    return {static_cast<const std::byte*>(image), elf_size(image)};
  } catch (const Error& error) {
    reject(error.what());
  }
}

LoadedImage::LoadedImage(std::span<const std::byte> image) {
  check_bytes(image);
  const Fd file(memfd_create("kjudge module", MFD_CLOEXEC));
  require(file.valid(), CUDA_ERROR_OPERATING_SYSTEM);
  for (std::size_t written = 0; written < image.size();) {
    const ssize_t count = write(file.get(), image.data() + written, image.size() - written);
    if (count < 0 && errno == EINTR) continue;
    require(count > 0, CUDA_ERROR_OPERATING_SYSTEM);
    written += static_cast<std::size_t>(count);
  }
  library_ = dlopen(path_of_descriptor(file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* reason = dlerror();
    const std::string text = reason == nullptr ? "dlopen failed" : reason;
    reject(text, text.find("undefined symbol") != std::string::npos
                     ? CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
                     : CUDA_ERROR_INVALID_IMAGE);
  }
  try {
    auto* table = static_cast<kj_kernel_table*>(dlsym(library_, "kjudge_kernel_table"));
    if (table == nullptr || table->magic != KJ_TABLE_MAGIC || table->version != KJ_TABLE_VERSION) {
      reject("the kernel table is of another version; rebuild it with this kjudge/host_kernel.h");
    }
    if (table->begin != nullptr) kernels_ = {table->begin, table->end};
    table->threads = core_count();
    code_ = code_around(table);
    std::set<std::string_view> names;
    for (const kj_kernel_entry& kernel : kernels_) {
      if (kernel.name == nullptr || kernel.run == nullptr ||
          kernel.parameter_count > KJ_MAX_PARAMETERS) {
        reject("the kernel table is damaged");
      }
      if (!names.insert(kernel.name).second) {
        reject(std::string("kernel ") + kernel.name + " is defined twice");
      }
    }
    for (const ElfVariable& variable : Elf(image).variables()) {
      const std::string name(variable.name);
      void* address = dlsym(library_, name.c_str());
      if (address == nullptr || variable.size == 0) continue;
      Range range;
      range.begin = reinterpret_cast<std::uint64_t>(address);
      range.size = variable.size;
      range.kind = RangeKind::variable;
      Memory::get().add(range);
      variables_.emplace(name, Variable{range.begin, range.size});
    }
  } catch (...) {
    for (const auto& [name, variable] : variables_) {
      Memory::get().free(variable.address, {RangeKind::variable});
    }
    dlclose(library_);
    throw;
  }
}

LoadedImage::~LoadedImage() {
  try {
    for (const auto& [name, variable] : variables_) {
      Memory::get().free(variable.address, {RangeKind::variable});
    }
  } catch (const Failure&) {
  }
  dlclose(library_);
}

std::shared_ptr<CUmod_st> load_module(CUctx_st& context, std::span<const std::byte> image) {
  install_fault_handlers();
  auto module = std::make_shared<CUmod_st>();
  module->image = std::make_shared<LoadedImage>(image);
  module->context = &context;
  for (const kj_kernel_entry& kernel : module->image->kernels()) {
    auto function = std::make_shared<CUfunc_st>();
    function->name = kernel.name;
    function->run = kernel.run;
    function->image = module->image;
    function->module = module.get();
    for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
      const std::size_t alignment = std::max<std::size_t>(kernel.alignments[i], 1);
      const std::size_t offset = (function->argument_bytes + alignment - 1) / alignment * alignment;
      function->parameters.push_back({offset, kernel.sizes[i]});
      function->argument_bytes = offset + kernel.sizes[i];
    }
    module->by_name.emplace(function->name, function.get());
    module->functions.push_back(std::move(function));
  }
  for (const auto& function : module->functions) handles<CUfunc_st>().add(function);
  handles<CUmod_st>().add(module);
  return module;
}

namespace {

void unload(const std::shared_ptr<CUmod_st>& module) {
  for (const auto& function : module->functions) {
    if (handles<CUfunc_st>().find(function.get()) != nullptr) {
      handles<CUfunc_st>().remove(function.get());
    }
  }
}

}  // namespace

void unload_module(CUmodule handle) { unload(handles<CUmod_st>().remove(handle)); }

void unload_all_of(CUctx_st& context) {
  for (const auto& module : handles<CUmod_st>().all()) {
    if (module->context == &context) unload_module(module.get());
  }
  for (const auto& library : handles<CUlib_st>().all()) {
    const std::lock_guard lock(library->mutex);
    library->modules.erase(&context);
  }
}

std::shared_ptr<CUmod_st> module_of(CUctx_st& context, CUlib_st& library) {
  const std::lock_guard lock(library.mutex);
  if (const auto found = library.modules.find(&context); found != library.modules.end()) {
    return handles<CUmod_st>().get(found->second);
  }
  auto module = load_module(context, library.image);
  for (const auto& kernel : library.kernels) {
    if (const auto function = module->by_name.find(kernel->name);
        function != module->by_name.end()) {
      function->second->kernel = kernel.get();
    }
  }
  library.modules.emplace(&context, module.get());
  return module;
}

std::shared_ptr<CUfunc_st> function_of(CUctx_st& context, CUkernel handle) {
  const auto kernel = handles<CUkern_st>().get(handle);
  const auto library = handles<CUlib_st>().get(kernel->library);
  const auto module = module_of(context, *library);
  const auto found = module->by_name.find(kernel->name);
  require(found != module->by_name.end(), CUDA_ERROR_NOT_FOUND);
  return handles<CUfunc_st>().get(found->second);
}

std::shared_ptr<CUfunc_st> function_of(CUctx_st& context, CUfunction handle) {
  if (auto function = handles<CUfunc_st>().find(handle)) return function;
  return function_of(context, reinterpret_cast<CUkernel>(handle));
}

int attribute_of(CUfunc_st& function, CUfunction_attribute attribute) {
  const std::lock_guard lock(function.mutex);
  if (const auto found = function.attributes.set.find(attribute);
      found != function.attributes.set.end()) {
    return found->second;
  }
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return kMaxThreadsPerBlock;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return kDefaultSharedBytes;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return CU_SHAREDMEM_CARVEOUT_DEFAULT;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return 0;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void set_attribute(CUfunc_st& function, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      require(value >= 0 && value <= kMaxSharedBytes);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100);
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      require(value == 0 || value == 1);
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      require(value >= 0 && value <= 2);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      fail(CUDA_ERROR_NOT_PERMITTED);
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  const std::lock_guard lock(function.mutex);
  function.attributes.set[attribute] = value;
}

}  // namespace kjudge
