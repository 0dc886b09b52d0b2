// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "json_fields.h"
#include "score/score.h"

namespace kjudge {

// The result file: {"format": "kjudge-result/1", facts..., "score": derived}. Printed by
// print_json (json.h), fields in a fixed order: the same facts, the same bytes.
std::string result_to_json(const Evaluation& evaluation);

// Reads the facts back; the derived score in the file is ignored. Fault::malformed with the file,
// the path of the field, what was expected and what was found. Unknown fields are errors.
Evaluation result_from_json(const std::string& text, const std::filesystem::path& path);

// What the file has as "score".
Json score_to_json(const Score& score);

// From the table that reads and writes it.
JsonFormat result_json_format();

// The word of a verdict.
Kind<Verdict> verdict_kind();
// The names of the arms whose times have two modes.
Field<ShapeScore> two_modes_field();

}  // namespace kjudge
