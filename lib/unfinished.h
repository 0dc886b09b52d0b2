// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace kjudge {

// What is being written in a folder has a name of this kind until it is whole and renamed:
// ".new-", the process that writes it, and what follows.
std::string unfinished_name(const std::string& more);
bool is_unfinished(const std::filesystem::path& path);

// Removes from `folder` what processes of this machine that have ended did not finish, and those of
// other machines when it is a day old.
void sweep_unfinished(const std::filesystem::path& folder);

}  // namespace kjudge
