// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace kjudge {

// What a submission says of itself in comments among the first lines of its submission.py or
// submission.cu. They are part of what is handed in, so whoever has the files has them:
//   # kjudge_label: Qwen3, 10 attempts      shown beside its run
//   # kjudge_license: Apache-2.0            its code may be published under these terms
struct SubmissionNotes {
  std::string label, license;  // printable; empty: none
  bool operator==(const SubmissionNotes&) const = default;
};

// Of a folder of files; without notes where there are none, or no such file.
SubmissionNotes read_submission_notes(const std::filesystem::path& files);

}  // namespace kjudge
