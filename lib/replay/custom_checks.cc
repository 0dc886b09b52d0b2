// SPDX-License-Identifier: Apache-2.0
#include "replay/custom_checks.h"

#include <algorithm>
#include <cmath>

namespace kjudge {
namespace {

std::uint64_t expected_bytes(const OutputSpec& output) {
  TensorSpec tensor = output.tensor;
  tensor.dtype = output.expected_dtype;
  return static_cast<std::uint64_t>(size_bytes(tensor));
}

std::uint64_t out_bytes(const OutputSpec& output) {
  return static_cast<std::uint64_t>(size_bytes(output.tensor));
}

DeviceChecks::Failure failure_of(const OutputSpec& output, const Check& check, double error,
                                 const std::string& text) {
  DeviceChecks::Failure failure;
  failure.facts.output = output.tensor.name;
  failure.facts.check = name(check.kind);
  failure.facts.elements = static_cast<std::uint64_t>(element_count(output.tensor.dims));
  failure.facts.rows = RowFailure{1, 1, 0, error, check.limit, std::nullopt};
  failure.message = describe(failure.facts, check);
  if (!text.empty()) failure.message += cat("; ", text);
  return failure;
}

}  // namespace

bool uses_custom_check(const Shape& shape) {
  return std::any_of(shape.outputs.begin(), shape.outputs.end(), [](const OutputSpec& output) {
    return std::any_of(output.checks.begin(), output.checks.end(),
                       [](const Check& check) { return check.kind == CheckKind::custom; });
  });
}

CustomChecks::CustomChecks(DeviceSide& side, const Challenge& challenge,
                           std::vector<const Shape*> shapes,
                           const std::vector<std::vector<const DeviceMemory*>>& inputs,
                           Channel::Idle idle)
    : side_(side), shapes_(std::move(shapes)) {
  std::vector<ChallengePython::SharedShape> shared;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    Side& made = sides_.emplace_back();
    ChallengePython::SharedShape& of_shape = shared.emplace_back();
    of_shape.shape = shapes_[s];
    if (!uses_custom_check(*shapes_[s])) continue;
    for (std::size_t o = 0; o < shapes_[s]->outputs.size(); ++o) {
      const OutputSpec& output = shapes_[s]->outputs[o];
      for (const Check& check : output.checks) {
        if (check.kind == CheckKind::custom) made.customs.push_back({o, &check, {}});
      }
      const auto buffer = [&](std::uint64_t bytes) {
        return make_buffer(side_, std::max<std::uint64_t>(bytes, 1), Access::read_write);
      };
      made.expected.push_back(buffer(expected_bytes(output)));
      made.out.push_back(buffer(out_bytes(output)));
    }
    of_shape.tensors = inputs[s];
    for (const DeviceBuffer& buffer : made.expected) of_shape.tensors.push_back(&buffer.memory);
    for (const DeviceBuffer& buffer : made.out) of_shape.tensors.push_back(&buffer.memory);
  }
  python_ = std::make_unique<ChallengePython>(
      side_.driver, side_.number, challenge, ChallengePython::File::check, shared, std::move(idle));
}

std::optional<DeviceChecks::Failure> CustomChecks::check(
    std::size_t shape, std::size_t regime, ArmName arm,
    std::span<const DeviceChecks::Place> places) {
  Side& side = sides_[shape];
  if (side.customs.empty()) return std::nullopt;
  const std::vector<OutputSpec>& outputs = shapes_[shape]->outputs;
  const auto copy = [&](const DeviceBuffer& to, std::uint64_t from, std::uint64_t bytes) {
    if (bytes == 0) return;
    KJ_DRIVER(side_.driver,
              cuMemcpyDtoDAsync(to.mapping.address(), from, bytes, side_.stream.get()));
  };
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    copy(side.expected[o], places[o].expected, expected_bytes(outputs[o]));
    copy(side.out[o], places[o].out, out_bytes(outputs[o]));
  }
  side_.stream.synchronize();

  std::optional<DeviceChecks::Failure> failure;
  for (Custom& custom : side.customs) {
    const ChallengePython::Judgement judged = python_->judge(shape, regime, custom.output);
    if (custom.check->over_evaluation) {
      Custom::Sum& sum = custom.sums[static_cast<std::size_t>(arm)];
      sum.error += judged.error;
      ++sum.replays;
    } else if (!failure && !(judged.error <= custom.check->limit)) {
      failure = failure_of(outputs[custom.output], *custom.check, judged.error, judged.text);
    }
  }
  return failure;
}

std::optional<DeviceChecks::Failure> CustomChecks::check_means(std::size_t shape,
                                                               ArmName arm) const {
  for (const Custom& custom : sides_[shape].customs) {
    const Custom::Sum& sum = custom.sums[static_cast<std::size_t>(arm)];
    if (!custom.check->over_evaluation || sum.replays == 0) continue;
    const double mean = sum.error / static_cast<double>(sum.replays);
    if (mean <= custom.check->limit) continue;
    return failure_of(shapes_[shape]->outputs[custom.output], *custom.check, mean,
                      cat("the mean of ", sum.replays, " replays"));
  }
  return std::nullopt;
}

}  // namespace kjudge
