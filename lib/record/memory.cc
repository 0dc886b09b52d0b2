// SPDX-License-Identifier: Apache-2.0
#include "record/memory.h"

#include <algorithm>

namespace kjudge {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

[[noreturn]] void fail(CUresult result, const std::string& message) {
  throw DriverError(result, message, std::source_location::current());
}

// The entry of `ranges` (keyed by address) that holds `address`.
template <class Map>
auto holder(Map& ranges, std::uint64_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  auto candidate = std::prev(after);
  return address - candidate->first < candidate->second.size ? candidate : ranges.end();
}

}  // namespace

int RecordedMemory::current_device() const {
  CUdevice device = 0;
  KJ_DRIVER(driver_, cuCtxGetDevice(&device));
  return device;
}

void RecordedMemory::reserve_arena(int device) {
  const Lock lock(mutex_);
  arena(device);
}

RecordedMemory::ArenaState& RecordedMemory::arena(int device) {
  const auto found = arenas_.find(device);
  if (found != arenas_.end()) return found->second;
  KJ_CHECK(device >= 0 && static_cast<std::uint32_t>(device) < kMaxDevices);
  const std::uint64_t wanted = kArenaBase + static_cast<std::uint64_t>(device) * kArenaSize;
  CUdeviceptr got = 0;
  KJ_DRIVER(driver_, cuMemAddressReserve(&got, kArenaSize, 0, wanted, 0));
  if (got != wanted) {
    driver_.cuMemAddressFree(got, kArenaSize);
    fail(CUDA_ERROR_OUT_OF_MEMORY,
         cat("cuMemAddressReserve: the arena's addresses are taken in this process (asked for ",
             wanted, ", got ", got, ")"));
  }
  return arenas_.emplace(device, ArenaState{wanted, wanted}).first->second;
}

std::uint64_t RecordedMemory::take_addresses(int device, const char* call, std::uint64_t size,
                                             std::uint64_t alignment) {
  ArenaState& arena = this->arena(device);
  const std::uint64_t address = round_up(arena.next, std::max(alignment, kRegionGranule));
  const std::uint64_t end = arena.begin + kArenaSize;
  if (address > end || size > end - address) {
    fail(CUDA_ERROR_OUT_OF_MEMORY,
         cat(call, " of ", size, " bytes: the arena of device ", device,
             " has no addresses left (addresses are never used twice; allocate in prepare, not "
             "in every call of kernel_fn)"));
  }
  arena.next = address + size + kRegionGranule;
  return address;
}

void RecordedMemory::check_limit(const char* call, std::uint64_t bytes) const {
  const Lock lock(mutex_);
  check_limit_locked(call, bytes);
}

void RecordedMemory::check_limit_locked(const char* call, std::uint64_t bytes) const {
  const std::uint64_t size = round_up(bytes, kRegionGranule);
  if (limit_ == 0 || (size <= limit_ && bytes_ <= limit_ - size)) return;
  fail(CUDA_ERROR_OUT_OF_MEMORY,
       cat(call, " of ", bytes, " bytes: ", bytes_, " bytes of device memory are in use, and ",
           limit_,
           " are allowed by the challenge's limits.memory_bytes (allocations count in steps of ",
           kRegionGranule, "); allocate less"));
}

void RecordedMemory::set_taken(const std::string& what, std::uint64_t bytes) {
  const Lock lock(mutex_);
  std::size_t total = limit_;
  if (total == 0) KJ_DRIVER(driver_, cuDeviceTotalMem(&total, current_device()));
  std::uint64_t& taken = taken_[what];
  const std::uint64_t others = bytes_ - taken;
  if (bytes > taken && (others > total || bytes > total - others)) {
    fail(CUDA_ERROR_OUT_OF_MEMORY,
         cat(what, " of ", bytes, " bytes: ", others, " bytes of device memory are in use, and ",
             total,
             limit_ == 0 ? " are there" : " are allowed by the challenge's limits.memory_bytes"));
  }
  bytes_ = others;
  add_bytes(bytes);
  taken = bytes;
}

void RecordedMemory::add_bytes(std::uint64_t bytes) {
  bytes_ += bytes;
  peak_ = std::max(peak_, bytes_);
}

std::uint64_t RecordedMemory::allocate(const char* call, std::uint64_t bytes, Role role) {
  const Lock lock(mutex_);
  if (bytes == 0) fail(CUDA_ERROR_INVALID_VALUE, cat(call, " of 0 bytes"));
  if (bytes > kArenaSize) {
    fail(CUDA_ERROR_OUT_OF_MEMORY, cat(call, " of ", bytes, " bytes: more than the ", kArenaSize,
                                       " that a device has addresses for"));
  }
  const int device = current_device();
  const std::uint64_t size = round_up(bytes, kRegionGranule);
  check_limit_locked(call, bytes);

  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  Allocation allocation{0, size, bytes, static_cast<std::uint32_t>(device), role, call};
  const std::string what = cat(call, " of ", bytes, " bytes: cuMemCreate");
  check_driver(driver_, driver_.cuMemCreate(&allocation.handle, size, &properties, 0), what);
  try {
    allocation.address = take_addresses(device, call, size, kRegionGranule);
    KJ_DRIVER(driver_, cuMemMap(allocation.address, size, 0, allocation.handle, 0));
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    const CUresult result = driver_.cuMemSetAccess(allocation.address, size, &access, 1);
    if (result != CUDA_SUCCESS) driver_.cuMemUnmap(allocation.address, size);
    check_driver(driver_, result, cat(call, ": cuMemSetAccess"));
  } catch (...) {
    driver_.cuMemRelease(allocation.handle);
    throw;
  }
  live_[allocation.address] = allocation;
  add_bytes(size);
  return allocation.address;
}

bool RecordedMemory::free(std::uint64_t address, const std::function<void()>& wait) {
  Allocation allocation;
  {
    const Lock lock(mutex_);
    const auto found = live_.find(address);
    if (found == live_.end()) {
      if (!in_arena(address)) return false;
      fail(CUDA_ERROR_INVALID_VALUE, "cuMemFree of an address that is not allocated");
    }
    if (found->second.role != Role::state) {
      fail(CUDA_ERROR_INVALID_VALUE,
           "cuMemFree of an argument of kernel_fn: inputs and outputs are kjudge's; free only what "
           "the "
           "submission allocated");
    }
    if (frees_held_) return true;
    if (found->second.mapped_by_submission) {
      fail(CUDA_ERROR_INVALID_VALUE, "cuMemFree of memory that cuMemMap mapped; use cuMemUnmap");
    }
    allocation = found->second;
    live_.erase(found);
    freed_[address] = allocation;
    bytes_ -= allocation.size;
  }
  // Not under the lock: other threads may have to allocate for their work to end.
  wait();
  driver_.cuMemUnmap(address, allocation.size);
  driver_.cuMemRelease(allocation.handle);
  return true;
}

std::uint64_t RecordedMemory::reserve(std::uint64_t size, std::uint64_t alignment) {
  const Lock lock(mutex_);
  if (size == 0 || size % kRegionGranule != 0 || (alignment & (alignment - 1)) != 0) {
    fail(CUDA_ERROR_INVALID_VALUE,
         cat("cuMemAddressReserve of ", size, " bytes: use multiples of ", kRegionGranule));
  }
  const std::uint64_t address =
      take_addresses(current_device(), "cuMemAddressReserve", size, alignment);
  reservations_[address] = size;
  return address;
}

bool RecordedMemory::unreserve(std::uint64_t address) {
  const Lock lock(mutex_);
  return reservations_.erase(address) != 0;
}

void RecordedMemory::created(CUmemGenericAllocationHandle handle, std::uint64_t size) {
  const Lock lock(mutex_);
  physical_[handle] = Physical{size};
  add_bytes(size);
}

void RecordedMemory::imported(CUmemGenericAllocationHandle handle) {
  const Lock lock(mutex_);
  physical_[handle] = Physical{0, true};
}

void RecordedMemory::released(CUmemGenericAllocationHandle handle) {
  const Lock lock(mutex_);
  const auto found = physical_.find(handle);
  if (found == physical_.end()) return;
  found->second.released = true;
  drop_if_unused(handle);
}

void RecordedMemory::drop_if_unused(CUmemGenericAllocationHandle handle) {
  const auto found = physical_.find(handle);
  if (found == physical_.end() || !found->second.released || !found->second.mappings.empty())
    return;
  bytes_ -= found->second.size;
  physical_.erase(found);
}

void RecordedMemory::make_way(std::uint64_t address, std::uint64_t size) {
  const Lock lock(mutex_);
  for (const std::uint64_t mapping : mappings_in(address, size)) {
    if (unmapped_later_.contains(mapping)) unmap_one(mapping);
  }
}

void RecordedMemory::mapped(std::uint64_t address, std::uint64_t size, std::uint64_t offset,
                            CUmemGenericAllocationHandle handle) {
  const Lock lock(mutex_);
  if (!in_arena(address)) return;  // and so refused where a graph uses it
  Allocation allocation{address, size, size, 0, Role::state, "cuMemMap", handle, true};
  allocation.device = static_cast<std::uint32_t>((address - kArenaBase) / kArenaSize);
  const auto found = physical_.find(handle);
  if (found == physical_.end()) {
    allocation.aliased = true;  // a handle of memory that is mapped: cuMemCreate did not give it
  } else {
    Physical& physical = found->second;
    allocation.imported = physical.imported;
    for (const auto& [other, range] : physical.mappings) {
      if (offset >= range.second || range.first >= offset + size) continue;
      allocation.aliased = live_.at(other).aliased = true;
    }
    physical.mappings[address] = {offset, offset + size};
  }
  live_[address] = allocation;
}

// Ascending addresses of what is mapped in part of the range.
std::vector<std::uint64_t> RecordedMemory::mappings_in(std::uint64_t address,
                                                       std::uint64_t size) const {
  std::vector<std::uint64_t> found;
  for (const auto& [begin, allocation] : live_) {
    if (begin >= address && begin - address >= size) break;
    if (allocation.end() > address) found.push_back(begin);
  }
  return found;
}

void RecordedMemory::unmap_one(std::uint64_t address) {
  const Allocation allocation = live_.at(address);
  KJ_DRIVER(driver_, cuMemUnmap(address, allocation.size));
  const auto physical = physical_.find(allocation.handle);
  if (physical != physical_.end()) physical->second.mappings.erase(address);
  drop_if_unused(allocation.handle);
  freed_[address] = allocation;
  live_.erase(address);
  unmapped_later_.erase(address);
}

bool RecordedMemory::unmap(std::uint64_t address, std::uint64_t size) {
  const Lock lock(mutex_);
  const std::vector<std::uint64_t> mappings = mappings_in(address, size);
  if (mappings.empty()) return false;
  for (const std::uint64_t mapping : mappings) {
    const Allocation& allocation = live_.at(mapping);
    if (!allocation.mapped_by_submission) {
      fail(CUDA_ERROR_INVALID_VALUE, cat("cuMemUnmap of ", allocation.requested, " bytes of ",
                                         allocation.call, ": unmap only what cuMemMap mapped"));
    }
    if (mapping < address || allocation.end() - address > size) {
      fail(CUDA_ERROR_INVALID_VALUE,
           cat("cuMemUnmap of part of a mapping of ", allocation.size, " bytes: unmap all of it"));
    }
  }
  for (const std::uint64_t mapping : mappings) {
    if (frees_held_) {
      unmapped_later_.insert(mapping);
    } else {
      unmap_one(mapping);
    }
  }
  return true;
}

void RecordedMemory::check_access(std::uint64_t address, const CUmemAccessDesc& access) const {
  if (!in_arena(address) || access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return;
  if (access.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return;
  const auto device = static_cast<int>((address - kArenaBase) / kArenaSize);
  if (access.location.id != device) return;
  fail(CUDA_ERROR_NOT_SUPPORTED,
       cat("cuMemSetAccess takes access to memory away from its own device: a replay reads and "
           "writes all of it; leave it CU_MEM_ACCESS_FLAGS_PROT_READWRITE"));
}

void RecordedMemory::host_range_added(HostRange range) {
  const Lock lock(mutex_);
  host_[range.address] = range;
  if (range.managed) add_bytes(range.size);
}

void RecordedMemory::host_range_removed(std::uint64_t address) {
  const Lock lock(mutex_);
  const auto found = host_.find(address);
  if (found == host_.end()) return;
  if (found->second.managed) bytes_ -= found->second.size;
  host_.erase(found);
}

std::pair<Allocation, RecordedMemory::Live::const_iterator> RecordedMemory::run_from(
    Live::const_iterator first) const {
  Allocation run = first->second;
  auto next = std::next(first);
  if (!run.mapped_by_submission) return {run, next};
  for (; next != live_.end() && next->first == run.end() && next->second.mapped_by_submission;
       ++next) {
    run.size += next->second.size;
    run.requested += next->second.requested;
    run.imported = run.imported || next->second.imported;
    run.aliased = run.aliased || next->second.aliased;
  }
  return {run, next};
}

std::optional<Allocation> RecordedMemory::find(std::uint64_t address) const {
  const Lock lock(mutex_);
  auto first = holder(live_, address);
  if (first == live_.end()) return std::nullopt;
  while (first->second.mapped_by_submission && first != live_.begin() &&
         std::prev(first)->second.mapped_by_submission &&
         std::prev(first)->second.end() == first->first) {
    --first;
  }
  return run_from(first).first;
}

std::optional<Allocation> RecordedMemory::find_freed(std::uint64_t address) const {
  const Lock lock(mutex_);
  const auto found = holder(freed_, address);
  return found == freed_.end() ? std::nullopt : std::optional(found->second);
}

void RecordedMemory::set_role(std::uint64_t address, Role role) {
  const Lock lock(mutex_);
  live_.at(address).role = role;
}

std::vector<Allocation> RecordedMemory::live() const {
  const Lock lock(mutex_);
  std::vector<Allocation> all;
  for (auto at = live_.begin(); at != live_.end();) {
    const auto [run, next] = run_from(at);
    all.push_back(run);
    at = next;
  }
  return all;
}

std::vector<HostRange> RecordedMemory::host_ranges() const {
  const Lock lock(mutex_);
  std::vector<HostRange> all;
  for (const auto& [address, range] : host_) all.push_back(range);
  return all;
}

bool RecordedMemory::in_arena(std::uint64_t address) const {
  return address >= kArenaBase && address - kArenaBase < kArenaSize * kMaxDevices;
}

}  // namespace kjudge
