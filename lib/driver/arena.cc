// SPDX-License-Identifier: Apache-2.0
#include "driver/arena.h"

#include <algorithm>
#include <utility>

namespace kjudge {
namespace {

std::uint64_t round_to_granule(std::uint64_t size) {
  return std::max<std::uint64_t>((size + kRegionGranule - 1) / kRegionGranule, 1) * kRegionGranule;
}

CUmemAccess_flags flags(Access access) {
  switch (access) {
    case Access::none:
      return CU_MEM_ACCESS_FLAGS_PROT_NONE;
    case Access::read:
      return CU_MEM_ACCESS_FLAGS_PROT_READ;
    case Access::read_write:
      return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

void set_device_access(const Driver& driver, int device, std::uint64_t address, std::uint64_t size,
                       Access access) {
  CUmemAccessDesc descriptor{};
  descriptor.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  descriptor.location.id = device;
  descriptor.flags = flags(access);
  KJ_DRIVER(driver, cuMemSetAccess(address, size, &descriptor, 1));
}

}  // namespace

DeviceMemory DeviceMemory::create(const Driver& driver, int device, std::uint64_t size) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  DeviceMemory memory;
  memory.size_ = round_to_granule(size);
  KJ_DRIVER(driver, cuMemCreate(&memory.handle_, memory.size_, &properties, 0));
  memory.driver_ = &driver;
  return memory;
}

DeviceMemory DeviceMemory::import(const Driver& driver, const Fd& fd, std::uint64_t size) {
  DeviceMemory memory;
  memory.size_ = round_to_granule(size);
  KJ_DRIVER(driver,
            cuMemImportFromShareableHandle(
                &memory.handle_, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd.get())),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  memory.driver_ = &driver;
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)),
      handle_(std::exchange(other.handle_, 0)),
      size_(std::exchange(other.size_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(handle_, other.handle_);
  std::swap(size_, other.size_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (driver_ != nullptr) driver_->cuMemRelease(handle_);
}

Fd DeviceMemory::export_fd() const {
  KJ_CHECK(driver_ != nullptr);
  int fd = -1;
  KJ_DRIVER(*driver_, cuMemExportToShareableHandle(&fd, handle_,
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  return Fd(fd);
}

Arena::Arena(const Driver& driver, int device, int range) : driver_(driver), device_(device) {
  KJ_CHECK(range >= 0 && static_cast<std::uint32_t>(range) < kMaxDevices);
  const std::uint64_t wanted = kArenaBase + static_cast<std::uint64_t>(range) * kArenaSize;
  CUdeviceptr got = 0;
  KJ_DRIVER(driver, cuMemAddressReserve(&got, kArenaSize, 0, wanted, 0));
  if (got != wanted) {
    driver.cuMemAddressFree(got, kArenaSize);
    throw Error(Fault::device,
                cat("the driver gave address ", got, " for the arena where ", wanted,
                    " was asked for; something in this process already uses that range"));
  }
  begin_ = wanted;
}

// An unmapping does not wait for copies on their way there, not even for those of a cuMemcpyHtoD
// that has returned: they would fault.
Arena::~Arena() {
  driver_.cuCtxSynchronize();
  for (const auto& [address, size] : mapped_) driver_.cuMemUnmap(address, size);
  driver_.cuMemAddressFree(begin_, kArenaSize);
}

void Arena::map(std::uint64_t address, const DeviceMemory& memory, Access access) {
  KJ_CHECK(address >= begin_ && address % kRegionGranule == 0);
  KJ_CHECK(memory.size() <= end() - address);
  KJ_DRIVER(driver_, cuMemMap(address, memory.size(), 0, memory.handle(), 0));
  mapped_[address] = memory.size();
  set_device_access(driver_, device_, address, memory.size(), access);
}

void Arena::set_access(std::uint64_t address, Access access) {
  set_device_access(driver_, device_, address, mapped_.at(address), access);
}

Mapping::Mapping(const Driver& driver, int device, const DeviceMemory& memory, Access access)
    : driver_(&driver), device_(device), size_(memory.size()) {
  CUdeviceptr address = 0;
  KJ_DRIVER(driver, cuMemAddressReserve(&address, size_, 0, 0, 0));
  address_ = address;
  KJ_DRIVER(driver, cuMemMap(address_, size_, 0, memory.handle(), 0));
  set_device_access(driver, device, address_, size_, access);
}

Mapping::Mapping(Mapping&& other) noexcept
    : driver_(std::exchange(other.driver_, nullptr)),
      device_(other.device_),
      address_(std::exchange(other.address_, 0)),
      size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

void Mapping::set_access(Access access) {
  set_device_access(*driver_, device_, address_, size_, access);
}

Mapping::~Mapping() {
  if (driver_ == nullptr) return;
  driver_->cuCtxSynchronize();  // as above
  driver_->cuMemUnmap(address_, size_);
  driver_->cuMemAddressFree(address_, size_);
}

}  // namespace kjudge
