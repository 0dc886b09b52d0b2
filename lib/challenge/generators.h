// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "challenge/challenge_format.h"

namespace kjudge {

// An input's generator as it stands in the file, absent or not, and where a message says it does.
struct PlacedGenerator {
  std::optional<GeneratorFile> generator;
  std::string at;
};

// Never returns: throws `message` about the field at `at`.
using FailAt = std::function<void(const std::string& at, const std::string& message)>;

// Generators of one regime of a shape whose dims and inputs are resolved, one per input, with
// defaults filled in. Fails unless the values are what the author asked for: none infinite, cut off
// or rounded to a whole, and tensors that belong together fit.
std::vector<Generator> resolve_generators(const Shape& shape, const std::string& shape_at,
                                          const std::vector<PlacedGenerator>& placed,
                                          const FailAt& fail);

// All but address, key, which is that of generator.key_of, and source.
FillParams fill_params(const Generator& generator, const TensorSpec& tensor);

// Whether inputs.py has a part in a regime.
bool uses_python(const Regime& regime);

// The order in which to fill by kernels: those that read another input after all others.
std::vector<std::size_t> fill_order(const std::vector<Generator>& generators);

}  // namespace kjudge
