// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "json_fields.h"

namespace kjudge {

// What Nsight Compute counts while one shape of a bundle is replayed.

struct Metric {
  std::string name, unit;
  Json value;  // a number, or the text that ncu has instead
};

struct KernelProfile {
  std::string name, grid, block;  // "(64, 1, 1)"
  std::vector<Metric> metrics;
};

struct Profile {
  std::string ncu;  // its version
  std::string set;
  std::string challenge, shape, submission, device, driver, kjudge_version;
  std::vector<KernelProfile> kernels;  // as they ran
};

// In PATH, $CUDA_HOME/bin or /usr/local/cuda/bin. Fault::device, saying how to install it.
std::filesystem::path find_ncu();

struct NcuRun {
  std::filesystem::path ncu;
  std::string set = "basic";
  std::vector<std::string> command;  // what is profiled, between cuProfilerStart and -Stop
  std::filesystem::path report;      // where ncu's own report goes; empty: nowhere
};
// Fills what ncu knows: its version, set and kernels. `tick` as in run_to_end(). Fault::device,
// quoting ncu, when it fails or says what is not understood.
Profile run_ncu(const NcuRun& run, const std::function<void()>& tick = {});

// "kjudge-profile/1".
std::string profile_to_json(const Profile& profile);
// Fault::malformed with the file and the path of the field.
Profile profile_from_json(const std::string& text, const std::filesystem::path& path);
JsonFormat profile_json_format();

// A row for each kernel: duration, and how busy multiprocessors and memory were.
std::string profile_table(const Profile& profile);

// Rows of fields. A quoted field may hold commas, line ends and doubled quotes. Fault::malformed
// when a quote is not closed.
std::vector<std::vector<std::string>> parse_csv(std::string_view text);
// Of what `ncu --page raw --csv` prints; lines of ncu's own talk ("==PROF== ...") are passed over.
// Fault::malformed when it is not that.
std::vector<KernelProfile> kernels_from_csv(std::string_view text);

}  // namespace kjudge
