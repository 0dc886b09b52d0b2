// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace kjudge {

inline std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// Device memory of the host driver: physical memory is a memfd, a mapping is an mmap of it at the
// address asked for, a reservation is a PROT_NONE mapping that keeps the range, access rights are
// mprotect. One table says what every driver-owned address is.

inline constexpr std::uint64_t kGranule = 2u << 20;

// What cuMemCreate makes. Counted against the device's memory unless it came from elsewhere.
struct Physical {
  Physical(int fd_, std::uint64_t size_, bool imported_, const CUmemAllocationProp& properties_);
  ~Physical();
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;

  const int fd;
  const std::uint64_t size;
  const bool imported;
  const CUmemAllocationProp properties;
};

enum class RangeKind { mapped, device, managed, host, registered, variable };

// Memory the driver knows: [begin, begin + size).
struct Range {
  std::uint64_t begin = 0, size = 0;
  RangeKind kind = RangeKind::device;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUcontext context = nullptr;         // the owner; null for VMM mappings
  std::shared_ptr<Physical> physical;  // of RangeKind::mapped
  unsigned flags = 0;                  // of host memory: CU_MEMHOSTALLOC_*
  std::uint64_t id = 0;                // never used twice
  std::uint64_t mapped_size = 0;       // size in pages, what munmap wants
  bool populated_for_read = false, populated_for_write = false;
  bool graph_owned = false;  // made by a graph's alloc node: its address stays reserved

  bool on_device() const { return kind != RangeKind::host && kind != RangeKind::registered; }
};

class Memory {
 public:
  static Memory& get();

  std::uint64_t total() const { return total_; }
  std::uint64_t available();

  std::uint64_t reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint);
  void release_reservation(std::uint64_t address, std::uint64_t size);

  CUmemGenericAllocationHandle create(std::uint64_t size, const CUmemAllocationProp& properties);
  CUmemGenericAllocationHandle import(int fd);
  CUmemGenericAllocationHandle retain(std::uint64_t address);
  void release(CUmemGenericAllocationHandle handle);
  std::shared_ptr<Physical> physical(CUmemGenericAllocationHandle handle);

  void map(std::uint64_t address, std::uint64_t size, CUmemGenericAllocationHandle handle);
  void unmap(std::uint64_t address, std::uint64_t size);
  void set_access(std::uint64_t address, std::uint64_t size, CUmemAccess_flags access);

  // cuMemAlloc and its kin: memory with an owner and full access.
  std::uint64_t allocate(CUcontext owner, std::uint64_t size, RangeKind kind, unsigned flags = 0);
  // Of a graph's alloc node: the address exists before the memory does, for nodes to refer to.
  std::uint64_t reserve_for_graph(std::uint64_t size);
  void release_for_graph(std::uint64_t address);
  void allocate_at(CUcontext owner, std::uint64_t address, std::uint64_t size);
  void add(const Range& range);  // memory that is there already: registered host memory, variables
  // Frees or forgets the range that begins at `address` and is one of `kinds`.
  void free(std::uint64_t address, std::initializer_list<RangeKind> kinds);
  void free_all_of(CUcontext owner);

  std::optional<Range> find(std::uint64_t address);
  // INVALID_VALUE unless all of [address, address + size) may be read or written: driver memory
  // with that access, the addresses of a graph's allocation, or, with `host_too`, memory the driver
  // knows nothing of.
  void check(std::uint64_t address, std::uint64_t size, bool write, bool host_too);

 private:
  Memory();
  std::map<std::uint64_t, Range>::iterator at(std::uint64_t address);
  using Spans = std::map<std::uint64_t, std::uint64_t>;
  static bool inside(const Spans& spans, std::uint64_t address, std::uint64_t size);
  void take(std::uint64_t size);  // from the device's memory: OUT_OF_MEMORY
  void give_back(std::uint64_t size);
  void destroy(const Range& range);

  friend struct Physical;

  std::mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;
  std::map<std::uint64_t, std::uint64_t> reservations_;
  std::map<std::uint64_t, std::uint64_t> graph_addresses_;  // those reservations that graphs made
  struct Held {
    std::shared_ptr<Physical> physical;
    unsigned count = 1;
  };
  std::unordered_map<CUmemGenericAllocationHandle, Held> handles_;
  std::uint64_t total_ = 0;
  std::atomic<std::uint64_t> used_{0};
  std::uint64_t next_handle_ = 0x1000, next_id_ = 1;
};

}  // namespace kjudge
