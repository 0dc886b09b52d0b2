// SPDX-License-Identifier: Apache-2.0
#include "judge/agreement.h"

#include <algorithm>
#include <set>
#include <vector>

#include "error.h"

namespace kjudge {
namespace {

struct Expected {
  Role role;
  TensorSpec spec;
};

std::vector<Expected> expected_tensors(const Shape& shape, Outputs outputs) {
  std::vector<Expected> expected;
  for (const InputSpec& input : shape.inputs) {
    expected.push_back({input.inout ? Role::inout : Role::input, input.tensor});
  }
  for (const OutputSpec& output : shape.outputs) {
    expected.push_back({Role::output, output.tensor});
    if (outputs == Outputs::as_expected) expected.back().spec.dtype = output.expected_dtype;
  }
  return expected;
}

std::string describe(Role role, const TensorSpec& spec) {
  std::string dims;
  for (std::int64_t dim : spec.dims) dims += cat(dims.empty() ? "" : " x ", dim);
  return cat(name(role), " ", spec.name, " ", name(spec.dtype), " [", dims, "]");
}

void check_shape(const Bundle& bundle, std::uint32_t index, const Shape& shape, Outputs outputs) {
  std::vector<const Tensor*> found;
  for (const Tensor& tensor : bundle.tensors) {
    if (tensor.shape == index) found.push_back(&tensor);
  }
  const auto expected = expected_tensors(shape, outputs);
  for (const Expected& want : expected) {
    const auto tensor = std::find_if(found.begin(), found.end(), [&](const Tensor* candidate) {
      return candidate->spec.name == want.spec.name;
    });
    if (tensor == found.end()) {
      throw Error(Fault::malformed,
                  cat("shape ", shape.name, ": no ", describe(want.role, want.spec)));
    }
    const TensorSpec& have = (*tensor)->spec;
    if ((*tensor)->role != want.role || have.dtype != want.spec.dtype ||
        have.dims != want.spec.dims || have.strides != contiguous_strides(have.dims)) {
      throw Error(Fault::malformed,
                  cat("shape ", shape.name, ": expected a contiguous ",
                      describe(want.role, want.spec), ", found ", describe((*tensor)->role, have)));
    }
  }
  if (found.size() != expected.size()) {
    throw Error(Fault::malformed, cat("shape ", shape.name, ": expected ", expected.size(),
                                      " tensors, found ", found.size()));
  }
}

}  // namespace

void check_agreement(const Bundle& bundle, const Challenge& challenge, const VariantRequest& only,
                     Outputs outputs) {
  std::set<std::string> recorded;
  for (std::uint32_t i = 0; i < bundle.shapes.size(); ++i) {
    const std::string& shape_name = bundle.shapes[i].name;
    const auto shape =
        std::find_if(challenge.shapes.begin(), challenge.shapes.end(),
                     [&](const Shape& candidate) { return candidate.name == shape_name; });
    if (shape == challenge.shapes.end()) {
      throw Error(Fault::malformed, cat("shape ", shape_name, ": challenge ", challenge.name,
                                        " version ", challenge.version, " has no such shape"));
    }
    if (!recorded.insert(shape_name).second) {
      throw Error(Fault::malformed, cat("shape ", shape_name, ": recorded more than once"));
    }
    check_shape(bundle, i, *shape, outputs);
  }
  for (const Shape& shape : challenge.shapes) {
    if (only.takes(shape) && !recorded.contains(shape.name)) {
      throw Error(Fault::malformed, cat("shape ", shape.name, ": not recorded"));
    }
  }
}

}  // namespace kjudge
