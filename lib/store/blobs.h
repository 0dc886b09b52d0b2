// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace kjudge {

// Files that are kept once, however often they were handed in or recorded: a blob,
// RESULTS/blobs/sha256/ab/cdef..., is a hard link to a file of that content, and all files of that
// content are links to it. So nobody who reads a results directory needs to know of blobs, none of
// them is ever missing, and one whose only link is its own belongs to nothing.

// Makes `file`, which nobody reads yet and whose hash is `sha256`, one with its blob. Where the
// file system has no more links to give, or none at all, it stays a file of its own.
void share_file(const std::filesystem::path& results, const std::filesystem::path& file,
                const std::string& sha256);
// The same for every file below `folder`, but for programs: their mode is a link's too.
void share_files(const std::filesystem::path& results, const std::filesystem::path& folder);

// Removes `file` and its blob, if no other file has the same content.
void remove_shared(const std::filesystem::path& results, const std::filesystem::path& file);

// A second name of `file`, or a copy where there can be none; false when there is no `file`.
bool link_or_copy(const std::filesystem::path& file, const std::filesystem::path& to);

}  // namespace kjudge
