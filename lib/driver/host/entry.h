// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "driver/host/fault.h"

namespace kjudge {

// Thrown inside the host driver, turned into the result of the API call by the functions below;
// nothing is thrown out of the library.
struct Failure {
  CUresult result;
};

[[noreturn]] inline void fail(CUresult result) { throw Failure{result}; }
inline void require(bool holds, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
  if (!holds) fail(otherwise);
}

// Line on stderr when KJUDGE_HOST_LOG=1.
void log_line(const std::string& text);

// cuInit: takes the fault signals.
void start();
// "CUDA_ERROR_INVALID_VALUE" and what it means; null for a number that is no error.
const char* error_name(CUresult result);
const char* error_text(CUresult result);
// Whether the driver exports a call of this name, without its version.
bool is_entry(const std::string& call);

// True once cuInit was called, and not in a child of fork(), which has none of the threads.
bool initialized();

// The calling thread's current context; INVALID_CONTEXT without one, its sticky error if it is
// broken.
std::shared_ptr<CUctx_st> usable_context();

template <class Body, class... Arguments>
CUresult answer(Body&& body, Arguments&&... arguments) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body, Arguments...>>) {
      std::forward<Body>(body)(std::forward<Arguments>(arguments)...);
      return CUDA_SUCCESS;
    } else {
      return std::forward<Body>(body)(std::forward<Arguments>(arguments)...);
    }
  } catch (const Failure& failure) {
    return failure.result;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    try {
      log_line(error.what());
    } catch (...) {
    }
    return CUDA_ERROR_UNKNOWN;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// Every exported entry is one of these three. A call of the process works at any time; of the
// device, after cuInit; of the context, with a current context that is not broken.
template <class Body>
CUresult process_call(const char* name, Body&& body) noexcept {
  if (const CUresult asked = injected_fault(name); asked != CUDA_SUCCESS) return asked;
  return answer(std::forward<Body>(body));
}

template <class Body>
CUresult device_call(const char* name, Body&& body) noexcept {
  if (const CUresult asked = injected_fault(name); asked != CUDA_SUCCESS) return asked;
  if (!initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  return answer(std::forward<Body>(body));
}

template <class Body>
CUresult context_call(const char* name, Body&& body) noexcept {
  if (const CUresult asked = injected_fault(name); asked != CUDA_SUCCESS) return asked;
  if (!initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  return answer([&] {
    const std::shared_ptr<CUctx_st> context = usable_context();
    if constexpr (std::is_invocable_v<Body, CUctx_st&>) {
      return body(*context);
    } else {
      return body();
    }
  });
}

}  // namespace kjudge
