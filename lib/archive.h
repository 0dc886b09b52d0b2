// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "error.h"
#include "file_names.h"

namespace kjudge {

struct ArchiveLimits {
  NameLimits names;
  std::uint64_t bytes = std::uint64_t{1} << 30;  // of all files, unpacked
  // Unpacked bytes for each byte of the archive, once more than `free_of_ratio` is unpacked.
  // Sources compress to a tenth, a bomb to a thousandth.
  std::uint64_t ratio = 200, free_of_ratio = 1 << 20;
  // What is left out is read over: entries, and bytes of a tar's, to which the ratio applies too.
  std::size_t left_out_count = 50'000;
  std::uint64_t left_out_bytes = 512 << 20;
};

// By its name: .tar, .tar.gz, .tgz, .tar.zst or .zip.
bool is_archive(const std::filesystem::path& path);
// The name without that suffix.
std::string archive_stem(const std::filesystem::path& path);

// Unpacks an archive, read as hostile bytes, into the new folder `to`: folders with mode 0755,
// files with 0644, or 0755 for what was executable; times and owners are not taken over. Whatever
// is left_out_path() is read over. Throws `fault` with the archive's name, the entry and the rule
// for names that break NameRules, for anything but files and folders (links, devices, FIFOs),
// setuid and setgid bits of files, encryption, more than one compression, all beyond the limits, an
// archive without files and damaged ones: cut anywhere, with bytes after their end, with a checksum
// that is wrong, a zip with other names than its central directory has. Then `to` is gone.
// Fault::host when `to` exists or cannot be written, or the archive not be read.
void unpack_archive(const std::filesystem::path& archive, const std::filesystem::path& to,
                    const ArchiveLimits& limits, Fault fault);

struct ArchiveFile {
  std::string name;  // relative, with '/'
  std::string bytes;
  bool executable = false;
};

// Whether tar has room for a name: 100 bytes, or 255 where a '/' stands in the right place.
bool fits_archive(std::string_view name);

// The bytes of a tar.zst: sorted by name, times and owners 0, modes 0644 or 0755, zstd at one level
// in one thread with a checksum. The same files give the same bytes (with the same libzstd).
// Fault::usage for a name that does not fit.
std::string make_archive(std::vector<ArchiveFile> files);

}  // namespace kjudge
