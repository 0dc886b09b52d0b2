// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "json_fields.h"
#include "store/identity.h"

namespace kjudge {

// What `kjudge token --json` prints: kjudge-added-token/1 of add, the only place that a token
// stands in, and kjudge-tokens/1 of list.
Json added_token_json(const std::string& name, const std::string& token);
Json tokens_json(std::vector<Token> tokens);
std::vector<JsonFormat> tokens_json_formats();

}  // namespace kjudge
