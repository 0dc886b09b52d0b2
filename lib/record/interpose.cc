// SPDX-License-Identifier: Apache-2.0
#include "record/interpose.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>

// The doors to the driver. Programs find its entries by dlsym (Triton, ctypes), by cuGetProcAddress
// (every cudart, static ones inside extensions too), or by linking it; the recorder stands in all
// three: it exports dlsym, and every hooked entry under the driver's own name.
//
// dlsym must not be an ordinary wrapper: glibc takes the caller's return address to find where
// RTLD_NEXT starts, so what is not for us is a jump, and the real dlsym sees the real caller.

#ifndef __x86_64__
#error "the dlsym hook is written for x86-64"
#endif

extern "C" {
__attribute__((used, visibility("hidden"))) void* (*kjudge_real_dlsym)(void*,
                                                                       const char*) = nullptr;
__attribute__((used, visibility("hidden"))) void* kjudge_route_dlsym(void* handle,
                                                                     const char* name);
}

asm(R"(
        .text
        .globl  dlsym
        .type   dlsym, @function
        .p2align 4
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    kjudge_route_dlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jne     1f
        jmp     *kjudge_real_dlsym(%rip)
1:      ret
        .cfi_endproc
        .size   dlsym, .-dlsym
)");

namespace kjudge {
namespace {

struct HookRow {
  const char* entry;
  const char* base;
  int version;
  bool per_thread;
  void* hook;
};

constexpr int kCudaPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

const HookRow kRows[] = {
#define KJ_ROW(entry, base, version, per_thread) \
  {#entry, base, version, per_thread, reinterpret_cast<void*>(&::entry)},
    KJ_HOOKS(KJ_ROW)
#undef KJ_ROW
};

// Calls that give memory: a version of one that is not known here is not there for anybody, since
// it would go past the arena.
bool gives_memory(std::string_view base) {
  return base.substr(0, 8) == "cuMemAll" || base == "cuMemCreate" || base == "cuMemMap" ||
         base == "cuMemAddressReserve";
}

struct Doors {
  Watched watched;
  std::unordered_map<void*, void*> hooks;  // the driver's entry, by whichever door -> ours
  std::string why_not;
};

Doors* open_driver() {
  auto* doors = new Doors;
  const char* library = std::getenv("KJUDGE_DRIVER_LIBRARY");
  const char* kind = std::getenv("KJUDGE_DRIVER");
  if (library == nullptr || kind == nullptr) {
    doors->why_not = "KJUDGE_DRIVER and KJUDGE_DRIVER_LIBRARY are not set";
    return doors;
  }
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    doors->why_not = cat("driver: ", reason ? reason : library);
    return doors;
  }
  Watched& watched = doors->watched;
  watched.get_proc_address = reinterpret_cast<PFN_cuGetProcAddress_v12000>(
      kjudge_real_dlsym(handle, "cuGetProcAddress_v2"));
  try {
    if (watched.get_proc_address == nullptr) {
      throw Error(Fault::device,
                  cat(library, ": no cuGetProcAddress_v2; driver older than CUDA 12"));
    }
    watched.driver =
        Driver::resolve(std::string_view(kind) == "cuda" ? DriverKind::cuda : DriverKind::host,
                        watched.get_proc_address);
    watched.driver.library = library;
  } catch (const std::exception& error) {
    doors->why_not = error.what();
    return doors;
  }

  void** slots = reinterpret_cast<void**>(&watched.entries);
  static_assert(sizeof(HookedEntries) == std::size(kRows) * sizeof(void*));
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    const HookRow& row = kRows[i];
    void* by_name = kjudge_real_dlsym(handle, row.entry);
    void* by_version = nullptr;
    CUdriverProcAddressQueryResult found;
    if (watched.get_proc_address(row.base, &by_version, row.version,
                                 row.per_thread ? kCudaPerThread : CU_GET_PROC_ADDRESS_DEFAULT,
                                 &found) != CUDA_SUCCESS) {
      by_version = nullptr;
    }
    slots[i] = by_name != nullptr ? by_name : by_version;
    // A per-thread variant that is the plain one keeps the plain one's hook, which comes first.
    for (void* entry : {by_name, by_version}) {
      if (entry != nullptr) doors->hooks.emplace(entry, row.hook);
    }
  }
  watched.observed = new Observed(watched.driver);
  return doors;
}

// Opening the driver runs its constructors, which may look up entries themselves: those lookups go
// through unchanged.
thread_local bool opening = false;

const Doors* doors() {
  static std::atomic<Doors*> opened{nullptr};
  static std::mutex mutex;
  if (Doors* known = opened.load(std::memory_order_acquire)) return known;
  if (opening) return nullptr;
  const std::lock_guard lock(mutex);
  if (Doors* known = opened.load(std::memory_order_acquire)) return known;
  opening = true;
  Doors* made = nullptr;
  try {
    made = open_driver();
  } catch (...) {
  }
  opening = false;
  opened.store(made, std::memory_order_release);
  return made;
}

CUresult hook_proc_address(CUresult result, const char* symbol, void** function) {
  if (result != CUDA_SUCCESS || symbol == nullptr || function == nullptr || *function == nullptr) {
    return result;
  }
  if (void* hook = hook_for(*function)) {
    *function = hook;
  } else if (gives_memory(symbol) &&
             std::any_of(std::begin(kRows), std::end(kRows),
                         [&](const HookRow& row) { return !std::strcmp(row.base, symbol); })) {
    *function = nullptr;
    return CUDA_ERROR_NOT_FOUND;
  }
  return result;
}

}  // namespace

void* Watched::optional_entry(const char* name, int version) const {
  void* function = nullptr;
  CUdriverProcAddressQueryResult found;
  const CUresult result = get_proc_address(name, &function, version, 0, &found);
  return result == CUDA_SUCCESS ? function : nullptr;
}

const Watched* watched(std::string* why) {
  const Doors* known = doors();
  if (known == nullptr || !known->why_not.empty()) {
    if (why != nullptr) *why = known ? known->why_not : "the driver cannot be opened";
    return nullptr;
  }
  return &known->watched;
}

void* hook_for(void* found) {
  const Doors* known = doors();
  if (known == nullptr) return nullptr;
  const auto hook = known->hooks.find(found);
  return hook == known->hooks.end() ? nullptr : hook->second;
}

}  // namespace kjudge

extern "C" void* kjudge_route_dlsym(void* handle, const char* name) {
  if (kjudge_real_dlsym == nullptr) {
    // 2.34 moved it into libc; 2.2.5 is what came before. Either is the real one.
    void* real = ::dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (real == nullptr) real = ::dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (real == nullptr) {
      constexpr char kMessage[] = "kjudge: recorder: this C library has no dlsym\n";
      [[maybe_unused]] auto written = ::write(2, kMessage, sizeof(kMessage) - 1);
      std::abort();
    }
    kjudge_real_dlsym = reinterpret_cast<void* (*)(void*, const char*)>(real);
  }
  if (name == nullptr || name[0] != 'c' || name[1] != 'u') return nullptr;
  const bool hooked = std::any_of(std::begin(kjudge::kRows), std::end(kjudge::kRows),
                                  [&](const auto& row) { return !std::strcmp(row.entry, name); });
  if (!hooked) return nullptr;
  // Only what the watched driver itself exports; another library's symbol of that name is its own.
  void* found = kjudge_real_dlsym(handle, name);
  return found != nullptr ? kjudge::hook_for(found) : nullptr;
}

extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const kjudge::Watched* watched = kjudge::watched();
  if (watched == nullptr || watched->entries.cuGetProcAddress == nullptr) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  return kjudge::hook_proc_address(
      watched->entries.cuGetProcAddress(symbol, function, version, flags), symbol, function);
}

extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status) {
  const kjudge::Watched* watched = kjudge::watched();
  if (watched == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  const CUresult result = kjudge::hook_proc_address(
      watched->entries.cuGetProcAddress_v2(symbol, function, version, flags, status), symbol,
      function);
  if (result == CUDA_ERROR_NOT_FOUND && status != nullptr) {
    *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  }
  return result;
}
