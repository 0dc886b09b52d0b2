// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "record/cupti.h"
#include "record/interpose.h"

// What the bodies of the hooks share: memory_hooks.cc, module_hooks.cc and launch_hooks.cc hold one
// function for each entry, under the driver's own name. Every one goes to the driver through the
// entries saved when it was opened, and none lets an exception out.

#define KJ_HOOK extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

namespace kjudge {

// Runs `body` with the driver and what was observed so far. A failure becomes the code that the
// driver would give, and the message is kept: the contestant sees only the code.
template <class Entry, class Body>
CUresult hooked(Entry HookedEntries::*entry, Body body) {
  const Watched* watched = kjudge::watched();
  if (watched == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (watched->entries.*entry == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const RecorderCall recorders;
  Observed& observed = *watched->observed;
  CUresult result = CUDA_ERROR_UNKNOWN;
  std::string message;
  std::optional<Rule> rule;
  try {
    return body(*watched, observed, watched->entries.*entry);
  } catch (const Refused& error) {
    result = CUDA_ERROR_NOT_SUPPORTED;
    message = error.what();
    rule = error.rule();
  } catch (const DriverError& error) {
    result = error.result();
    message = error.what();
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "unknown failure";
  }
  try {
    const std::lock_guard lock(observed.mutex);
    observed.call_failure = {result, message, rule};
  } catch (...) {
  }
  return result;
}

inline CUstream resolve(CUstream stream, bool per_thread) {
  return stream == nullptr && per_thread ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace kjudge
