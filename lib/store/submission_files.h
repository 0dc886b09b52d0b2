// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace kjudge {

// What a contestant handed in, as a folder that kjudge owns.
struct SubmissionFiles {
  std::string sha256;  // of every path and its bytes, in the order of the paths
  std::uint64_t bytes = 0;
  std::size_t count = 0;
};

// Copies `from` to the new folder `to`: a file becomes submission.py, or submission.cu when it
// ends in .cu; a folder is copied whole but for __pycache__, __MACOSX and names that begin with a
// dot; an archive (archive.h) is taken as the folder that it holds. Modes are 0644, or 0755 for
// what was executable. Fault::usage when `from` is not there; Fault::submission, naming the file
// and the rule, for links, devices, names that break NameRules (file_names.h), more than
// `limit_bytes`, what unpack_archive refuses, and a folder without submission.py or submission.cu
// at its root.
SubmissionFiles copy_submission(const std::filesystem::path& from, const std::filesystem::path& to,
                                std::uint64_t limit_bytes);

// Of a folder that copy_submission made. Fault::submission for what it would never make.
SubmissionFiles read_submission_files(const std::filesystem::path& folder);

// Which file of a folder is called: "submission.py", else "submission.cu"; "": it has neither.
std::string entry_file(const std::filesystem::path& folder);

}  // namespace kjudge
