// SPDX-License-Identifier: Apache-2.0
#include "driver/host/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "driver/host/entry.h"

namespace kjudge {
namespace {

constexpr std::uint64_t kPage = 4096;
// Where NVIDIA's driver honours the hint of cuMemAddressReserve, measured: sizes and addresses from
// 32 MiB in steps of 32 MiB, in this window.
constexpr std::uint64_t kHintGranule = 32u << 20;
constexpr std::uint64_t kHintBegin = 0x1000'0000'0000, kHintEnd = 0x7e00'0000'0000;

std::uint64_t round_up(std::uint64_t size, std::uint64_t granule) {
  return (size + granule - 1) / granule * granule;
}

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

int protection(CUmemAccess_flags access) {
  switch (access) {
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
      return PROT_READ;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
      return PROT_READ | PROT_WRITE;
    default:
      return PROT_NONE;
  }
}

std::uint64_t physical_ram() {
  struct sysinfo machine {};
  sysinfo(&machine);
  std::uint64_t bytes = std::uint64_t{machine.totalram} * machine.mem_unit;
  // A container's limit, where there is one: beyond it the kernel kills instead of refusing.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::uint64_t limit = 0;
    if (std::ifstream(path) >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

// Makes pages present, as a device's memory is, so that the first kernel that touches them is not
// the one that pays. Failing is not an error: the pages then come when they are used.
void populate(Range& range, CUmemAccess_flags access) {
  bool& done = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? range.populated_for_write
                                                            : range.populated_for_read;
  if (access == CU_MEM_ACCESS_FLAGS_PROT_NONE || done) return;
  done = true;
#ifdef MADV_POPULATE_READ
  madvise(pointer(range.begin), range.mapped_size,
          access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
#endif
}

// Private, so that large pages are had where shared memory has none; nobody can share it, for a
// child of fork() does not get it.
int sharing(RangeKind kind) { return kind == RangeKind::host ? MAP_SHARED : MAP_PRIVATE; }

void advise(const Range& range) {
  madvise(pointer(range.begin), range.mapped_size, MADV_HUGEPAGE);
  // A child of fork() has no use for device memory, must not keep it and must not copy it.
  if (range.on_device()) madvise(pointer(range.begin), range.mapped_size, MADV_DONTFORK);
}

std::uint64_t map_anywhere(std::uint64_t size, std::uint64_t alignment) {
  // Asks for more than needed and gives the ends back.
  const std::uint64_t length = size + alignment;
  void* found =
      mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(found != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
  const auto begin = reinterpret_cast<std::uint64_t>(found);
  const std::uint64_t aligned = round_up(begin, alignment);
  if (aligned > begin) munmap(found, aligned - begin);
  if (aligned + size < begin + length)
    munmap(pointer(aligned + size), begin + length - aligned - size);
  return aligned;
}

void keep_reserved(std::uint64_t address, std::uint64_t size) {
  // In place of what is there, so that no other mmap of the process can slip into the hole.
  void* kept = mmap(pointer(address), size, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  require(kept != MAP_FAILED, CUDA_ERROR_OPERATING_SYSTEM);
}

}  // namespace

Physical::Physical(int fd_, std::uint64_t size_, bool imported_,
                   const CUmemAllocationProp& properties_)
    : fd(fd_), size(size_), imported(imported_), properties(properties_) {}

Physical::~Physical() {
  close(fd);
  if (!imported) Memory::get().give_back(size);
}

Memory& Memory::get() {
  static Memory& memory = *new Memory;
  return memory;
}

Memory::Memory() : total_(physical_ram()) {
  if (const char* limit = std::getenv("KJUDGE_HOST_MEMORY"); limit != nullptr) {
    char* end = nullptr;
    errno = 0;
    const unsigned long long bytes = std::strtoull(limit, &end, 10);
    if (errno != 0 || end == limit || *end != '\0' || bytes == 0) {
      log_line(std::string("KJUDGE_HOST_MEMORY=") + limit +
               ": expected a number of bytes; ignored");
    } else {
      total_ = bytes;
    }
  }
}

void Memory::take(std::uint64_t size) {
  std::uint64_t used = used_.load();
  do {
    require(size <= total_ - used, CUDA_ERROR_OUT_OF_MEMORY);
  } while (!used_.compare_exchange_weak(used, used + size));
}

void Memory::give_back(std::uint64_t size) { used_.fetch_sub(size); }

std::uint64_t Memory::available() { return total_ - used_.load(); }

std::uint64_t Memory::reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint) {
  require(size > 0 && size % kGranule == 0 && size < kHintEnd);
  require(alignment == 0 || (alignment & (alignment - 1)) == 0);
  alignment = std::max(alignment, kGranule);
  require(alignment < kHintEnd);
  const std::lock_guard lock(mutex_);
  std::uint64_t address = 0;
  if (size >= kHintGranule && hint % kHintGranule == 0 && hint % alignment == 0 &&
      hint >= kHintBegin && hint < kHintEnd && size <= kHintEnd - hint) {
    void* found = mmap(pointer(hint), size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (found == pointer(hint)) {
      address = hint;
    } else if (found != MAP_FAILED) {
      munmap(found, size);  // a kernel before 4.17 takes the flag for a hint
    }
  }
  if (address == 0) address = map_anywhere(size, alignment);
  reservations_.emplace(address, size);
  return address;
}

void Memory::release_reservation(std::uint64_t address, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  const auto found = reservations_.find(address);
  require(found != reservations_.end() && found->second == size);
  const auto inside = ranges_.lower_bound(address);
  require(inside == ranges_.end() || inside->first >= address + size);
  munmap(pointer(address), size);
  reservations_.erase(found);
}

CUmemGenericAllocationHandle Memory::create(std::uint64_t size,
                                            const CUmemAllocationProp& properties) {
  require(size > 0 && size % kGranule == 0);
  take(size);
  const int fd = memfd_create("kjudge device memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) {
    if (fd >= 0) close(fd);
    give_back(size);
    fail(CUDA_ERROR_OPERATING_SYSTEM);
  }
  // An importer who could shrink it would turn our loads into SIGBUS.
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  auto made = std::make_shared<Physical>(fd, size, false, properties);
  const std::lock_guard lock(mutex_);
  const CUmemGenericAllocationHandle handle = next_handle_++;
  handles_.emplace(handle, Held{std::move(made)});
  return handle;
}

CUmemGenericAllocationHandle Memory::import(int theirs) {
  // Only a memfd has seals; only one of ours has these and a whole number of granules.
  const int seals = fcntl(theirs, F_GET_SEALS);
  require(seals >= 0 && (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) == (F_SEAL_SHRINK | F_SEAL_GROW));
  struct stat status {};
  require(fstat(theirs, &status) == 0 && status.st_size > 0 &&
          static_cast<std::uint64_t>(status.st_size) % kGranule == 0);
  const int fd = fcntl(theirs, F_DUPFD_CLOEXEC, 0);
  require(fd >= 0, CUDA_ERROR_OPERATING_SYSTEM);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  auto made =
      std::make_shared<Physical>(fd, static_cast<std::uint64_t>(status.st_size), true, properties);
  const std::lock_guard lock(mutex_);
  const CUmemGenericAllocationHandle handle = next_handle_++;
  handles_.emplace(handle, Held{std::move(made)});
  return handle;
}

CUmemGenericAllocationHandle Memory::retain(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto range = at(address);
  require(range != ranges_.end() && range->second.kind == RangeKind::mapped);
  for (auto& [handle, held] : handles_) {
    if (held.physical == range->second.physical) {
      ++held.count;
      return handle;
    }
  }
  const CUmemGenericAllocationHandle handle = next_handle_++;
  handles_.emplace(handle, Held{range->second.physical});
  return handle;
}

void Memory::release(CUmemGenericAllocationHandle handle) {
  std::shared_ptr<Physical> last;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  require(found != handles_.end());
  if (--found->second.count > 0) return;
  last = std::move(found->second.physical);
  handles_.erase(found);
}

std::shared_ptr<Physical> Memory::physical(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  require(found != handles_.end());
  return found->second.physical;
}

std::map<std::uint64_t, Range>::iterator Memory::at(std::uint64_t address) {
  auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return ranges_.end();
  --next;
  return address - next->first < next->second.size ? next : ranges_.end();
}

bool Memory::inside(const Spans& spans, std::uint64_t address, std::uint64_t size) {
  auto next = spans.upper_bound(address);
  if (next == spans.begin()) return false;
  --next;
  return address - next->first < next->second && size <= next->second - (address - next->first);
}

void Memory::map(std::uint64_t address, std::uint64_t size, CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(mutex_);
  const auto held = handles_.find(handle);
  require(held != handles_.end());
  require(size > 0 && size % kGranule == 0 && address % kGranule == 0);
  require(size <= held->second.physical->size && inside(reservations_, address, size));
  const auto next = ranges_.lower_bound(address);
  require(next == ranges_.end() || next->first >= address + size);
  require(at(address) == ranges_.end());
  Range range;
  range.begin = address;
  range.size = range.mapped_size = size;
  range.kind = RangeKind::mapped;
  range.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  range.physical = held->second.physical;
  range.id = next_id_++;
  const auto added = ranges_.emplace(address, range).first;
  if (mmap(pointer(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, range.physical->fd, 0) ==
      MAP_FAILED) {
    ranges_.erase(added);
    fail(CUDA_ERROR_OPERATING_SYSTEM);
  }
  advise(range);
}

void Memory::unmap(std::uint64_t address, std::uint64_t size) {
  std::vector<Range> gone;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  // A whole number of whole mappings, without holes.
  std::uint64_t end = address;
  auto last = ranges_.find(address);
  const auto first = last;
  while (last != ranges_.end() && last->first == end && end < address + size &&
         last->second.kind == RangeKind::mapped) {
    end += last->second.size;
    ++last;
  }
  require(size > 0 && end == address + size);
  keep_reserved(address, size);
  for (auto range = first; range != last; ++range) gone.push_back(std::move(range->second));
  ranges_.erase(first, last);
}

void Memory::set_access(std::uint64_t address, std::uint64_t size, CUmemAccess_flags access) {
  const std::lock_guard lock(mutex_);
  std::uint64_t end = address;
  const auto first = ranges_.find(address);
  auto last = first;
  while (last != ranges_.end() && last->first == end && end < address + size &&
         last->second.kind == RangeKind::mapped) {
    end += last->second.size;
    ++last;
  }
  require(size > 0 && end == address + size);
  for (auto range = first; range != last; ++range) {
    Range& mapping = range->second;
    require(mprotect(pointer(mapping.begin), mapping.mapped_size, protection(access)) == 0,
            CUDA_ERROR_OPERATING_SYSTEM);
    mapping.access = access;
    populate(mapping, access);
  }
}

std::uint64_t Memory::allocate(CUcontext owner, std::uint64_t size, RangeKind kind,
                               unsigned flags) {
  require(size > 0);
  require(size < kHintEnd, CUDA_ERROR_OUT_OF_MEMORY);
  const bool counted = kind == RangeKind::device || kind == RangeKind::managed;
  Range range;
  range.size = size;
  range.mapped_size = round_up(size, kPage);
  range.kind = kind;
  range.context = owner;
  range.flags = flags;
  if (counted) take(range.mapped_size);
  try {
    range.begin = map_anywhere(range.mapped_size, size >= kGranule ? kGranule : 64 * 1024);
    if (mmap(pointer(range.begin), range.mapped_size, PROT_READ | PROT_WRITE,
             sharing(kind) | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
      munmap(pointer(range.begin), range.mapped_size);
      fail(CUDA_ERROR_OUT_OF_MEMORY);
    }
  } catch (...) {
    if (counted) give_back(range.mapped_size);
    throw;
  }
  advise(range);
  populate(range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  add(range);
  return range.begin;
}

std::uint64_t Memory::reserve_for_graph(std::uint64_t size) {
  size = round_up(size, kGranule);
  const std::uint64_t address = reserve(size, 0, 0);
  const std::lock_guard lock(mutex_);
  graph_addresses_.emplace(address, size);
  return address;
}

void Memory::release_for_graph(std::uint64_t address) {
  std::uint64_t size = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto range = ranges_.find(address); range != ranges_.end()) {
      destroy(range->second);
      ranges_.erase(range);
    }
    size = graph_addresses_.at(address);
    graph_addresses_.erase(address);
  }
  release_reservation(address, size);
}

void Memory::allocate_at(CUcontext owner, std::uint64_t address, std::uint64_t size) {
  Range range;
  range.begin = address;
  range.size = size;
  range.mapped_size = round_up(size, kGranule);
  range.context = owner;
  range.graph_owned = true;
  require(!find(address).has_value());
  take(range.mapped_size);
  if (mmap(pointer(address), range.mapped_size, PROT_READ | PROT_WRITE,
           sharing(range.kind) | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    give_back(range.mapped_size);
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  advise(range);
  populate(range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  add(range);
}

void Memory::add(const Range& range) {
  const std::lock_guard lock(mutex_);
  const auto next = ranges_.lower_bound(range.begin);
  require(at(range.begin) == ranges_.end() &&
              (next == ranges_.end() || next->first >= range.begin + range.size),
          CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  const auto added = ranges_.emplace(range.begin, range).first;
  added->second.id = next_id_++;
}

void Memory::destroy(const Range& range) {
  switch (range.kind) {
    case RangeKind::device:
    case RangeKind::managed:
      give_back(range.mapped_size);
      if (range.graph_owned) {
        keep_reserved(range.begin, range.mapped_size);
        return;
      }
      [[fallthrough]];
    case RangeKind::host:
      munmap(pointer(range.begin), range.mapped_size);
      return;
    case RangeKind::mapped:
    case RangeKind::registered:
    case RangeKind::variable:
      return;
  }
}

void Memory::free(std::uint64_t address, std::initializer_list<RangeKind> kinds) {
  const std::lock_guard lock(mutex_);
  const auto found = ranges_.find(address);
  require(found != ranges_.end() &&
          std::find(kinds.begin(), kinds.end(), found->second.kind) != kinds.end());
  destroy(found->second);
  ranges_.erase(found);
}

void Memory::free_all_of(CUcontext owner) {
  const std::lock_guard lock(mutex_);
  for (auto range = ranges_.begin(); range != ranges_.end();) {
    if (range->second.context == owner) {
      destroy(range->second);
      range = ranges_.erase(range);
    } else {
      ++range;
    }
  }
}

std::optional<Range> Memory::find(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto found = at(address);
  if (found == ranges_.end()) return std::nullopt;
  return found->second;
}

void Memory::check(std::uint64_t address, std::uint64_t size, bool write, bool host_too) {
  const std::lock_guard lock(mutex_);
  require(address + size >= address);
  auto range = at(address);
  if (range == ranges_.end()) {
    if (inside(graph_addresses_, address, size)) return;
    require(host_too && !inside(reservations_, address, 1));
    return;
  }
  const CUmemAccess_flags needed =
      write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ;
  for (std::uint64_t end = address + size;;) {
    require((range->second.access & needed) == needed);
    const std::uint64_t covered = range->second.begin + range->second.size;
    if (covered >= end) return;
    ++range;
    require(range != ranges_.end() && range->first == covered);
  }
}

}  // namespace kjudge
