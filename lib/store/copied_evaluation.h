// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "replay/evaluation.h"

namespace kjudge {

// An evaluation that another submission gets too, or that moves to where it counts.

// Whether its recording lies in its folder, or the mark that it was pruned; or it never had one.
// The recording of a submission that was not to be kept is removed.
bool has_its_recording(const std::filesystem::path& evaluation, const Evaluation& facts);

// Gives the folder `to` all that lies beside the result and the log in an evaluation's folder:
// recording or mark, hash of the kernels, secret, profiles.
void link_evaluation(const std::filesystem::path& evaluation, const std::filesystem::path& to);

}  // namespace kjudge
