// SPDX-License-Identifier: Apache-2.0
#include "web/challenge_text.h"

#include "error.h"
#include "web/fragments.h"

namespace kjudge {
namespace {

void append(std::string& list, const char* separator, const std::string& item) {
  list += cat(list.empty() ? "" : separator, item);
}

std::string check_text(const Check& check) {
  std::string text = check.kind == CheckKind::exact
                         ? "as expected, bit for bit"
                         : cat("within ", number_text(check.atol, 6), " + ",
                               number_text(check.rtol, 6), " · |expected|");
  if (check.max_mismatched > 0) {
    text += cat(", but for ", number_text(100 * check.max_mismatched, 4), " % of the elements");
  }
  if (check.signed_zero) text += ", with the sign of zero";
  return text;
}

std::string tensor_text(const TensorSpec& tensor) {
  std::string dims;
  for (const std::int64_t size : tensor.dims) append(dims, " × ", std::to_string(size));
  return cat(tensor.name, ": ", name(tensor.dtype), " [", dims, "]");
}

}  // namespace

std::string checks_text(const Shape& shape) {
  std::string text;
  for (const OutputSpec& output : shape.outputs) {
    for (const Check& check : output.checks) {
      append(text, "; ", cat(output.tensor.name, ": ", check_text(check)));
    }
  }
  return text;
}

std::string regimes_text(const Shape& shape) {
  std::string text;
  for (const Regime& regime : shape.regimes) {
    append(text, ", ", shape.timed ? cat(regime.name, " ", regime.pairs_per_round) : regime.name);
  }
  return text;
}

std::string inputs_text(const Shape& shape) {
  std::string text;
  for (const InputSpec& input : shape.inputs) {
    append(text, "; ", cat(tensor_text(input.tensor), input.inout ? ", also written" : ""));
  }
  return text;
}

std::string outputs_text(const Shape& shape) {
  std::string text;
  for (const OutputSpec& output : shape.outputs) append(text, "; ", tensor_text(output.tensor));
  return text;
}

std::string dims_text(const Shape& shape) {
  std::string text;
  for (const auto& [dimension, size] : shape.dims) append(text, ", ", cat(dimension, " ", size));
  return text;
}

}  // namespace kjudge
