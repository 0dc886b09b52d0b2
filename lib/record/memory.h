// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "driver/driver.h"

namespace kjudge {

// One piece of mapped device memory in an arena.
struct Allocation {
  std::uint64_t address = 0, size = 0;  // multiples of kRegionGranule
  std::uint64_t requested = 0;          // bytes asked for
  std::uint32_t device = 0;
  Role role = Role::state;
  const char* call = "";  // that made it
  CUmemGenericAllocationHandle handle = 0;
  bool mapped_by_submission = false;  // with cuMemMap: `handle` is the submission's
  bool imported = false;              // its physical memory came from another process
  bool aliased = false;               // its physical memory lies at another address too

  std::uint64_t end() const { return address + size; }
};

// Host memory that a device can read, or managed memory.
struct HostRange {
  std::uint64_t address = 0, size = 0;
  const char* call = "";
  bool managed = false;
};

// All device memory of the process. Every allocation is a mapping of its own at an address that is
// never used again, with an unmapped granule after it, so that an overrun is a fault and a pointer
// past the end is no pointer to the next one. Any thread. Failures are DriverErrors; nothing falls
// back to the driver's own allocator, whose addresses no other process can have.
class RecordedMemory {
 public:
  explicit RecordedMemory(const Driver& driver) : driver_(driver) {}

  // Reserves a device's arena; its context must be current. No effect the second time.
  void reserve_arena(int device);
  void set_limit(std::uint64_t bytes) { limit_ = bytes; }

  std::uint64_t allocate(const char* call, std::uint64_t bytes, Role role = Role::state);
  // False when `address` is none of ours. `wait` is called before memory goes. While frees are held
  // the memory stays: a graph being captured uses it.
  bool free(std::uint64_t address, const std::function<void()>& wait);
  void hold_frees(bool hold) { frees_held_ = hold; }

  // The submission's own use of cuMemAddressReserve, cuMemCreate, cuMemMap, ...
  std::uint64_t reserve(std::uint64_t size, std::uint64_t alignment);
  bool unreserve(std::uint64_t address);
  void check_limit(const char* call, std::uint64_t bytes) const;
  // Device memory that the driver takes for something else, such as a context's heap: `bytes` is
  // what it takes from now on. Fails where that is over the limit.
  void set_taken(const std::string& what, std::uint64_t bytes);
  void created(CUmemGenericAllocationHandle handle, std::uint64_t size);
  void imported(CUmemGenericAllocationHandle handle);
  void released(CUmemGenericAllocationHandle handle);
  // Before something is mapped there: what was unmapped while frees were held goes now.
  void make_way(std::uint64_t address, std::uint64_t size);
  void mapped(std::uint64_t address, std::uint64_t size, std::uint64_t offset,
              CUmemGenericAllocationHandle handle);
  // False when nothing is mapped there.
  bool unmap(std::uint64_t address, std::uint64_t size);
  // Fails where memory in an arena would become unreadable to a recording.
  void check_access(std::uint64_t address, const CUmemAccessDesc& access) const;

  void host_range_added(HostRange range);
  void host_range_removed(std::uint64_t address);

  // The submission's mappings that touch are one allocation here: a tensor can lie across them
  // (torch's expandable segments).
  std::optional<Allocation> find(std::uint64_t address) const;
  void set_role(std::uint64_t address, Role role);
  std::vector<Allocation> live() const;  // ascending
  std::vector<HostRange> host_ranges() const;
  // Bytes freed of the allocation that once held `address`; nullopt when none did.
  std::optional<Allocation> find_freed(std::uint64_t address) const;
  bool in_arena(std::uint64_t address) const;
  std::uint64_t peak_bytes() const { return peak_; }

 private:
  struct ArenaState {
    std::uint64_t begin = 0, next = 0;
  };
  // Memory of cuMemCreate or an import: it lives as long as its handle or a mapping of it.
  struct Physical {
    std::uint64_t size = 0;
    bool imported = false, released = false;
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>>
        mappings;  // address -> offsets
  };

  int current_device() const;
  ArenaState& arena(int device);
  std::uint64_t take_addresses(int device, const char* call, std::uint64_t size,
                               std::uint64_t alignment);
  void check_limit_locked(const char* call, std::uint64_t bytes) const;
  void add_bytes(std::uint64_t bytes);
  void drop_if_unused(CUmemGenericAllocationHandle handle);
  // The run of touching mappings that begins at or holds `first`, and what follows it.
  using Live = std::map<std::uint64_t, Allocation>;
  std::pair<Allocation, Live::const_iterator> run_from(Live::const_iterator first) const;
  std::vector<std::uint64_t> mappings_in(std::uint64_t address, std::uint64_t size) const;
  void unmap_one(std::uint64_t address);

  const Driver& driver_;
  mutable std::recursive_mutex mutex_;
  std::map<int, ArenaState> arenas_;
  Live live_, freed_;
  std::map<std::uint64_t, std::uint64_t> reservations_;  // address -> size, the submission's own
  std::map<CUmemGenericAllocationHandle, Physical> physical_;
  std::set<std::uint64_t> unmapped_later_;
  std::map<std::uint64_t, HostRange> host_;
  std::map<std::string, std::uint64_t> taken_;
  std::uint64_t limit_ = 0, bytes_ = 0, peak_ = 0;
  std::atomic<bool> frees_held_{false};
};

}  // namespace kjudge
