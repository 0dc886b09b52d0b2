// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/host/entry.h"
#include "driver/host/handles.h"

// A context: streams, memory and modules with one owner, and one sticky error. Contexts share the
// process's addresses, so they do not protect memory from each other as a GPU's contexts do.
struct CUctx_st : std::enable_shared_from_this<CUctx_st> {
  CUctx_st(int device_, unsigned flags_, bool primary_);

  const int device;
  unsigned flags;
  const bool primary;
  const unsigned long long id;
  // CUDA_SUCCESS until something breaks the context, then that error for good. It also stops what
  // runs (guard.h).
  std::atomic<CUresult> error{CUDA_SUCCESS};

  // Guarded by kjudge::queue_mutex().
  std::shared_ptr<CUstream_st> legacy;
  std::map<std::thread::id, std::shared_ptr<CUstream_st>> per_thread;
  std::vector<std::shared_ptr<CUstream_st>> streams;  // all that may have work, legacy among them

  std::mutex settings_mutex;
  std::map<CUlimit, std::size_t> limits;
  CUfunc_cache cache_config = CU_FUNC_CACHE_PREFER_NONE;

  // Throws the sticky error.
  void check() const { kjudge::require(error.load() == CUDA_SUCCESS, error.load()); }
};

namespace kjudge {

// One lock for the state of all queues, events and captures. Never held while waiting.
std::mutex& queue_mutex();

// Stops all that runs in the context, waits, frees its streams, memory and modules.
void destroy_context(const std::shared_ptr<CUctx_st>& context);
// Waits for all work in the context; throws its sticky error.
void synchronize(CUctx_st& context);

// All devices are this machine's processors; KJUDGE_HOST_DEVICES says how many there seem to be.
inline constexpr int kMostDevices = 16;
int device_count();
void check_device(int device);

// Of calls that CUDA counts as unsafe while a capture is going on (allocation, synchronous copies,
// module loading): STREAM_CAPTURE_UNSUPPORTED, and the capture is invalidated, as the calling
// thread's capture mode and the captures of other threads have it.
void forbid_during_capture();

}  // namespace kjudge
