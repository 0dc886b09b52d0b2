// SPDX-License-Identifier: Apache-2.0
#include "web/challenge_text.h"

#include "error.h"
#include "web/fragments.h"

namespace kjudge {
namespace {

void append(std::string& list, const char* separator, const std::string& item) {
  list += cat(list.empty() ? "" : separator, item);
}

std::string limits_text(const Check& check) {
  const std::string per = check.per == Per::row ? " of every row" : "";
  switch (check.kind) {
    case CheckKind::exact:
      return "as expected, bit for bit";
    case CheckKind::close:
      return cat("within ", number_text(check.atol, 6), " + ", number_text(check.rtol, 6),
                 " · |expected|");
    case CheckKind::row_bound:
      return cat("within ", number_text(check.c, 6), " · rms of the row + ",
                 number_text(check.rtol, 6), " · |expected|");
    case CheckKind::rel_l2:
      return cat("relative L2 error", per, " at most ", number_text(check.limit, 6),
                 check.quantile < 1
                     ? cat(", for ", number_text(100 * check.quantile, 4), " % of the rows")
                     : "");
    case CheckKind::cosine:
      return cat("cosine similarity", per, " at least ", number_text(check.limit, 9));
    case CheckKind::codes:
      return cat(number_text(100 * check.same, 4), " % of the codes equal, none further off than ",
                 check.within, check.within == 1 ? " step" : " steps");
    case CheckKind::versus_baseline:
      return cat("relative L2 error of every row at most ", number_text(check.factor, 4),
                 " times the baseline's, or ", number_text(check.floor, 6));
    case CheckKind::custom:
      return cat("error by check.py at most ", number_text(check.limit, 6),
                 check.over_evaluation ? " in the mean of all replays" : "");
  }
  return {};
}

std::string check_text(const Check& check) {
  std::string text = limits_text(check);
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
