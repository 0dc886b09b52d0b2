// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "judge/pipeline.h"

namespace kjudge {

// The made-up inputs of a capture that a challenge's inputs.py has a part in: its code does not run
// where a contestant's does. For each shape that needs it a folder of its name below `folder`, with
// a file per input, the tensor's bytes. Fault::package when inputs.py fails, or makes other values
// of the same seed.
void write_made_up_inputs(const Driver& driver, const Challenge& challenge,
                          const CaptureOptions& options, std::uint64_t seed,
                          const std::filesystem::path& folder);

}  // namespace kjudge
