// SPDX-License-Identifier: Apache-2.0
#include "challenge/shape_request.h"

#include <string>

#include "driver/fill_kind.h"
#include "error.h"

namespace kjudge {
namespace {

Json text(std::string_view value) { return Json{std::string(value)}; }

Json number(std::integral auto value) { return Json{static_cast<std::int64_t>(value)}; }

Json generator_request(const Generator& generator) {
  const std::string_view kind = name(generator.kind);
  KJ_CHECK(!kind.empty());
  return Json{Json::Object{{"kind", text(kind)},
                           {"a", Json{generator.a}},
                           {"b", Json{generator.b}},
                           {"c", Json{generator.c}},
                           {"row", number(generator.row)},
                           {"size", number(generator.size)},
                           {"other", text(name(generator.other))},
                           {"key_of", text(generator.key_of)},
                           {"source", text(generator.source)}}};
}

Json::Object tensor_request(const TensorSpec& tensor) {
  Json::List dims;
  for (std::int64_t dim : tensor.dims) dims.push_back(number(dim));
  return {{"name", text(tensor.name)}, {"dtype", text(name(tensor.dtype))}, {"dims", Json{dims}}};
}

}  // namespace

Json shape_request(const Shape& shape, OutputTypes types) {
  Json::Object dims, scalars;
  for (const auto& [dim, size] : shape.dims) dims.push_back({dim, number(size)});
  for (const Scalar& scalar : shape.scalars) {
    scalars.push_back(
        {scalar.name, std::visit([](auto value) { return Json{value}; }, scalar.value)});
  }
  // The made-up inputs are drawn as those of the first regime are, from another seed.
  KJ_CHECK(!shape.regimes.empty() && shape.regimes[0].generators.size() == shape.inputs.size());
  Json::List inputs, outputs;
  for (std::size_t i = 0; i < shape.inputs.size(); ++i) {
    const Generator& generator = shape.regimes[0].generators[i];
    Json::Object input = tensor_request(shape.inputs[i].tensor);
    input.push_back({"inout", Json{shape.inputs[i].inout}});
    input.push_back({"generator", generator_request(generator)});
    inputs.push_back(Json{std::move(input)});
  }
  for (const OutputSpec& output : shape.outputs) {
    TensorSpec tensor = output.tensor;
    if (types == OutputTypes::expected) tensor.dtype = output.expected_dtype;
    outputs.push_back(Json{tensor_request(tensor)});
  }
  return Json{Json::Object{{"name", text(shape.name)},
                           {"timed", Json{shape.timed}},
                           {"arch", text(shape.arch)},
                           {"dtype", text(shape.dtype)},
                           {"dims", Json{std::move(dims)}},
                           {"scalars", Json{std::move(scalars)}},
                           {"inputs", Json{std::move(inputs)}},
                           {"outputs", Json{std::move(outputs)}}}};
}

}  // namespace kjudge
