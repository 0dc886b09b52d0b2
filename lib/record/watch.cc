// SPDX-License-Identifier: Apache-2.0
#include "record/watch.h"

#include <utility>

namespace kjudge {

void CaptureWatch::open(CUstream) {
  const std::lock_guard lock(mutex_);
  report_ = {};
  given_.clear();
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

void CaptureWatch::launched(CUstream stream, std::span<const CUlaunchAttribute> attributes) {
  if (!open_ || attributes.empty()) return;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;  // asked for: else edges with data would be an error
  std::size_t count = 0;
  const CUresult result =
      driver_.cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &edges, &count);
  // A launch that was not captured has been noted before it, and one that broke the capture shows
  // at its end.
  if (result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE || count != 1) return;
  const std::lock_guard lock(mutex_);
  for (const CUlaunchAttribute& attribute : attributes) given_.emplace(nodes[0], attribute.id);
}

bool CaptureWatch::was_given(CUgraphNode node, CUlaunchAttributeID id) const {
  const std::lock_guard lock(mutex_);
  return given_.contains({node, id});
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
