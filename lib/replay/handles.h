// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "driver/driver.h"

namespace kjudge {

// Owners of the driver's handles. None outlives the context it was made in; all but the context are
// released in silence, for a context that faulted refuses every call.

// The primary context of a device, current in this thread while this lives.
class PrimaryContext {
 public:
  PrimaryContext(const Driver& driver, int device) : driver_(driver) {
    KJ_DRIVER(driver, cuDeviceGet(&device_, device));
    CUcontext context = nullptr;
    KJ_DRIVER(driver, cuDevicePrimaryCtxRetain(&context, device_));
    if (const CUresult result = driver.cuCtxSetCurrent(context); result != CUDA_SUCCESS) {
      driver.cuDevicePrimaryCtxRelease(device_);
      check_driver(driver, result, "cuCtxSetCurrent");
    }
  }
  ~PrimaryContext() {
    driver_.cuCtxSetCurrent(nullptr);
    driver_.cuDevicePrimaryCtxRelease(device_);
  }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  int attribute(CUdevice_attribute id) const {
    int value = 0;
    KJ_DRIVER(driver_, cuDeviceGetAttribute(&value, id, device_));
    return value;
  }

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
};

class Stream {
 public:
  explicit Stream(const Driver& driver) : driver_(driver) {
    KJ_DRIVER(driver, cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0));
  }
  ~Stream() { driver_.cuStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  CUstream get() const { return stream_; }
  void synchronize() const { KJ_DRIVER(driver_, cuStreamSynchronize(stream_)); }
  // From pageable memory, which may go at once; what follows in the stream finds the bytes.
  // cuMemcpyHtoD returns before they are there, and no other stream waits for it.
  void upload(std::uint64_t to, const void* from, std::size_t bytes) const {
    KJ_DRIVER(driver_, cuMemcpyHtoDAsync(to, from, bytes, stream_));
  }

 private:
  const Driver& driver_;
  CUstream stream_ = nullptr;
};

class Event {
 public:
  explicit Event(const Driver& driver) : driver_(&driver) {
    KJ_DRIVER(driver, cuEventCreate(&event_, CU_EVENT_DEFAULT));
  }
  Event(Event&& other) noexcept
      : driver_(other.driver_), event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event() {
    if (event_ != nullptr) driver_->cuEventDestroy(event_);
  }

  CUevent get() const { return event_; }

 private:
  const Driver* driver_;
  CUevent event_ = nullptr;
};

// Host memory that the device sees too.
class PinnedMemory {
 public:
  PinnedMemory(const Driver& driver, std::size_t bytes) : driver_(driver) {
    KJ_DRIVER(driver, cuMemHostAlloc(&memory_, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    KJ_DRIVER(driver, cuMemHostGetDevicePointer(&address_, memory_, 0));
  }
  ~PinnedMemory() { driver_.cuMemFreeHost(memory_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  std::uint64_t address() const { return address_; }

 private:
  const Driver& driver_;
  void* memory_ = nullptr;
  CUdeviceptr address_ = 0;
};

class GraphExec {
 public:
  GraphExec(const Driver& driver, CUgraphExec exec) : driver_(&driver), exec_(exec) {}
  GraphExec(GraphExec&& other) noexcept
      : driver_(other.driver_), exec_(std::exchange(other.exec_, nullptr)) {}
  GraphExec& operator=(GraphExec&&) = delete;
  ~GraphExec() {
    if (exec_ != nullptr) driver_->cuGraphExecDestroy(exec_);
  }

  CUgraphExec get() const { return exec_; }

 private:
  const Driver* driver_;
  CUgraphExec exec_;
};

// A graph under construction.
class GraphHandle {
 public:
  explicit GraphHandle(const Driver& driver) : driver_(driver) {
    KJ_DRIVER(driver, cuGraphCreate(&graph_, 0));
  }
  ~GraphHandle() { driver_.cuGraphDestroy(graph_); }
  GraphHandle(const GraphHandle&) = delete;
  GraphHandle& operator=(const GraphHandle&) = delete;

  CUgraph get() const { return graph_; }

 private:
  const Driver& driver_;
  CUgraph graph_ = nullptr;
};

}  // namespace kjudge
