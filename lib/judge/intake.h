// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "store/results.h"

namespace kjudge {

// What happens, one line each, for people.
using ReportLine = std::function<void(const std::string&)>;

// What has the name of a submission and was not taken, so that it has no number.
struct RefusedHandIn {
  std::string name;  // of the file or folder
  std::string message;
};

struct IntakeFrom {
  std::filesystem::path folder;
  VariantRequest variant;  // as SubmissionIdentity has it
  int after = 0;           // as ResultsDirectory::HandIn has it
};
// Puts every submission of the folder (each .py or .cu file, each archive and each folder
// with submission.py or submission.cu, in the order of their names; run = name without .py, .cu or
// an archive's suffix) into the queue for the challenge. What is refused at the door has a line and
// is returned, in the order of the names; what is no submission has a line. What the results
// directory has no place for, as the file of its run is damaged, is reported to `left_out`.
// Fault::usage when there is no such folder.
std::vector<RefusedHandIn> take_in(ResultsDirectory& results, const Challenge& challenge,
                                   const IntakeFrom& from,
                                   const std::vector<SubmissionIdentity>& present,
                                   const ReportLine& line,
                                   const ResultsDirectory::Report& left_out);

}  // namespace kjudge
