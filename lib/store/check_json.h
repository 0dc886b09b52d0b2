// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "json_fields.h"
#include "store/check_store.h"

namespace kjudge {

// What `kjudge fsck --json` prints.
Json check_json(const StoreCheck& check);
JsonFormat check_json_format();
// "damage", "left over".
std::string_view name(StoreFinding::Kind kind);

}  // namespace kjudge
