// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/arena.h"
#include "driver/kernel_module.h"
#include "replay/handles.h"

namespace kjudge {

// What a process of a replay has on its device, made in this order: the arena is reserved before
// the driver can have put anything at its address.
struct DeviceSide {
  // `range`: of the arena.
  DeviceSide(const Driver& its_driver, int its_number, int range)
      : driver(its_driver),
        number(its_number),
        context(driver, number),
        arena(driver, number, range),
        kernels(driver),
        stream(driver) {}

  const Driver& driver;
  const int number;
  PrimaryContext context;
  Arena arena;
  KernelModule kernels;
  Stream stream;
};

struct DeviceBuffer {
  DeviceMemory memory;
  Mapping mapping;
};
inline DeviceBuffer make_buffer(const DeviceSide& side, std::uint64_t size, Access access) {
  DeviceBuffer buffer;
  buffer.memory = DeviceMemory::create(side.driver, side.number, size);
  buffer.mapping = Mapping(side.driver, side.number, buffer.memory, access);
  return buffer;
}

}  // namespace kjudge
