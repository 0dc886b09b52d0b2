// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "bundle/bundle.h"
#include "driver/driver.h"
#include "file.h"

namespace kjudge {

// Physical device memory that can be sent to another process as a file descriptor. Contents of new
// memory are undefined on a GPU, zero on the host driver.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  // `size` is rounded up to kRegionGranule.
  static DeviceMemory create(const Driver& driver, int device, std::uint64_t size);
  static DeviceMemory import(const Driver& driver, const Fd& fd, std::uint64_t size);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  Fd export_fd() const;
  CUmemGenericAllocationHandle handle() const { return handle_; }
  std::uint64_t size() const { return size_; }

 private:
  const Driver* driver_ = nullptr;
  CUmemGenericAllocationHandle handle_ = 0;
  std::uint64_t size_ = 0;
};

enum class Access { none, read, read_write };

// A device's range of addresses: one reservation at kArenaBase + range * kArenaSize, the same in
// every process, so that pointers recorded in one are true in another. `range` is the number that
// the device had where they were recorded: a sandbox, or the same recording on another device, has
// other numbers. Made right after the context exists. Fault::device when the range is taken (the
// driver treats the address as a hint). Not thread-safe.
class Arena {
 public:
  Arena(const Driver& driver, int device, int range);
  ~Arena();  // unmaps everything
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + kArenaSize; }

  // Maps `memory` at `address` inside the arena, all of it.
  void map(std::uint64_t address, const DeviceMemory& memory, Access access);
  void set_access(std::uint64_t address, Access access);

 private:
  const Driver& driver_;
  int device_;
  std::uint64_t begin_ = 0;
  std::map<std::uint64_t, std::uint64_t> mapped_;  // address -> size
};

// A mapping anywhere else, for memory whose address nobody recorded. Owns its reservation.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Driver& driver, int device, const DeviceMemory& memory, Access access);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  std::uint64_t address() const { return address_; }
  void set_access(Access access);

 private:
  const Driver* driver_ = nullptr;
  int device_ = 0;
  std::uint64_t address_ = 0, size_ = 0;
};

}  // namespace kjudge
