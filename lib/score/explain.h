// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "replay/evaluation.h"

namespace kjudge {

// How the score of an evaluation follows from its times, step by step in numbers, for people. With
// what it prints and a calculator anyone gets the same score.
std::string explanation(const Evaluation& evaluation);

}  // namespace kjudge
