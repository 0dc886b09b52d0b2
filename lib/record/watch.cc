// SPDX-License-Identifier: Apache-2.0
#include "record/watch.h"

#include <utility>

namespace kjudge {

void CaptureWatch::open(CUstream) {
  const std::lock_guard lock(mutex_);
  report_ = {};
  open_ = true;
}

CaptureReport CaptureWatch::close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  report_.own_capture = std::exchange(own_capture_, false);
  return report_;
}

bool CaptureWatch::outside(CUstream stream, const std::function<std::string()>& what) {
  if (!open_) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // The legacy stream answers with an error while another stream is captured: not part of it.
  const CUresult result = driver_.cuStreamIsCapturing(stream, &status);
  if (result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    check_driver(driver_, result, "cuStreamIsCapturing");
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) return false;
  }
  std::string name = what();
  const std::lock_guard lock(mutex_);
  if (report_.outside_work++ == 0) report_.first_outside = std::move(name);
  return true;
}

void CaptureWatch::not_done() {
  const std::lock_guard lock(mutex_);
  if (report_.outside_work > 0) --report_.outside_work;
}

void CaptureWatch::own_capture() {
  const std::lock_guard lock(mutex_);
  own_capture_ = true;
}

bool CaptureWatch::take_own_capture() {
  const std::lock_guard lock(mutex_);
  return std::exchange(own_capture_, false);
}

}  // namespace kjudge
