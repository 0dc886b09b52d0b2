// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bundle/bundle.h"

namespace kjudge {

// The recorder's second pair of eyes on NVIDIA's driver. CUPTI tells two things that the hooks
// cannot: the cubin that the driver really loaded (chosen from fat binaries, decompressed, compiled
// from PTX, often long after the load call), and whether a call for memory went past the hooks.

// A cubin as the driver loaded it. CUPTI does not say into which module; what is known is the
// object that the call during which it happened was given.
struct LoadedCubin {
  std::shared_ptr<const Bytes> image;
  const void* owner = nullptr;  // CUkernel, CUfunction or CUlibrary; null for a load call's own
};

// Subscribes through the CUPTI library that is loaded already, else the one that KJUDGE_CUPTI
// names, else libcupti.so.13. Called by the driver at cuInit, by way of InitializeInjection.
// Nothing is ever unsubscribed or destroyed: the driver calls back until the process is gone. `why`
// of the failure is kept for cupti_failure().
void subscribe_to_driver();

// Empty when CUPTI watches; else why not.
std::string cupti_failure();

std::vector<LoadedCubin> loaded_cubins();

// How many of loaded_cubins() this thread has loaded: those that a call loads come in between.
std::size_t cubins_loaded_by_this_thread();
// The last `count` of them, oldest first.
std::vector<LoadedCubin> last_cubins_of_this_thread(std::size_t count);

// Calls for memory, by name, that reached the driver without passing the recorder.
std::vector<std::string> calls_past_the_hooks();

// While one lives, this thread's calls are the recorder's own.
class RecorderCall {
 public:
  RecorderCall() { ++depth_; }
  ~RecorderCall() { --depth_; }
  RecorderCall(const RecorderCall&) = delete;
  RecorderCall& operator=(const RecorderCall&) = delete;
  static bool active() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

}  // namespace kjudge
