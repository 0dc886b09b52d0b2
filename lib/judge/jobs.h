// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "judge/intake.h"
#include "process.h"

namespace kjudge {

// This program several times side by side, each with arguments of its own; where one judge with one
// device is one process, that is how several devices are used at the same time.
struct JobEnd {
  ExitStatus status;
  std::string output;  // what it wrote on stdout
};
// What they write on stderr comes as lines, without "kjudge: ", and of lines that say the same only
// the first: several find the same things. An interrupt goes to all of them, who end as if it had
// been theirs; then Interrupted is thrown.
std::vector<JobEnd> run_jobs(const std::vector<std::vector<std::string>>& jobs,
                             const ReportLine& line);

}  // namespace kjudge
