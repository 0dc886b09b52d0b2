// SPDX-License-Identifier: Apache-2.0
#include "challenge/tensor_memory.h"

#include <algorithm>

#include "bundle/bundle.h"

namespace kjudge {
namespace {

std::uint64_t allocated(const TensorSpec& tensor) {
  const auto bytes = static_cast<std::uint64_t>(size_bytes(tensor));
  return (bytes + kRegionGranule - 1) / kRegionGranule * kRegionGranule;
}

// Of a submission; a recorded reference writes its outputs in other types.
std::uint64_t shape_bytes(const Shape& shape, bool of_reference) {
  std::uint64_t bytes = 0;
  for (const InputSpec& input : shape.inputs) bytes += allocated(input.tensor);
  for (const OutputSpec& output : shape.outputs) {
    TensorSpec tensor = output.tensor;
    if (of_reference) tensor.dtype = output.expected_dtype;
    bytes += allocated(tensor);
  }
  return bytes;
}

}  // namespace

TensorMemory tensor_memory(const Challenge& challenge) {
  TensorMemory most;
  for (const Shape& one : challenge.shapes) {
    std::uint64_t submission = 0, reference = 0;
    for (const Shape& shape : challenge.shapes) {  // a capture has all of its arch at a time
      if (!runs_on(shape, one.arch)) continue;
      submission += shape_bytes(shape, false);
      if (challenge.reference == ReferenceMode::recorded) reference += shape_bytes(shape, true);
    }
    const std::uint64_t bytes = std::max(submission, reference);
    if (bytes > most.bytes) most = {bytes, one.arch};
  }
  return most;
}

}  // namespace kjudge
