// SPDX-License-Identifier: Apache-2.0
#include "judge/profile.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include "judge/report.h"
#include "process.h"
#include "unicode.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// --set full runs a kernel some 40 times.
constexpr auto kNcuLimit = std::chrono::minutes(60);
constexpr std::size_t kNcuOutput = std::size_t{256} << 20;
constexpr std::size_t kQuoted = 2000;
constexpr std::size_t kKernelName = 4096;  // written out, a short symbol can be megabytes

constexpr const char* kDuration = "gpu__time_duration.sum";

std::string quoted(std::string_view output) {
  if (output.find_first_not_of(" \n") == output.npos) return "; ncu said nothing";
  const bool cut = output.size() > kQuoted;
  if (cut) output.remove_prefix(output.size() - kQuoted);
  return cat("; ncu said:\n", cut ? "[...]" : "", printable(output));
}

[[noreturn]] void fail(const std::string& what, std::string_view output) {
  if (output.find("ERR_NVGPUCTRPERM") != output.npos) {
    throw Error(Fault::device,
                "ncu may not read the GPU's performance counters (ERR_NVGPUCTRPERM); run as root, "
                "in a container with CAP_SYS_ADMIN, or let everybody: put 'options nvidia "
                "NVreg_RestrictProfilingToAdminUsers=0' into a file of /etc/modprobe.d and load "
                "the driver again; see https://developer.nvidia.com/ERR_NVGPUCTRPERM");
  }
  throw Error(Fault::device, cat(what, quoted(output)));
}

// C: numbers with a point, whatever the user's language.
Finished run_program(const fs::path& program, std::vector<std::string> arguments,
                     const std::function<void()>& tick) {
  ChildOptions child;
  child.program = program;
  child.arguments = std::move(arguments);
  child.environment = {{"LC_ALL", "C"}};
  return run_to_end(child, kNcuLimit, kNcuOutput, [&] {
    if (tick) tick();
    return true;
  });
}

std::string checked_output(const fs::path& ncu, const std::vector<std::string>& arguments,
                           const std::function<void()>& tick) {
  Finished finished = run_program(ncu, arguments, tick);
  if (!finished.status) fail(cat(ncu.string(), " did not end within an hour"), finished.output);
  if (!finished.status->ok() || finished.output.find("ERR_NVGPUCTRPERM") != std::string::npos) {
    fail(cat(ncu.string(), " failed: ", describe(*finished.status)), finished.output);
  }
  return std::move(finished.output);
}

// "Version 2025.3.1.0 (build 36398880) (public-release)", after a title and a copyright.
std::string version_of(const std::string& output) {
  const auto at = output.find("Version ");
  const auto begin = at == output.npos ? 0 : at + 8;
  return output.substr(begin, output.find_first_of(" \r\n", begin) - begin);
}

// "1,234.5" is a number too: some versions group digits.
Json value_of(std::string text) {
  std::string digits = text;
  std::erase(digits, ',');
  const char* end = digits.data() + digits.size();
  std::int64_t whole = 0;
  if (const auto read = std::from_chars(digits.data(), end, whole);
      read.ec == std::errc() && read.ptr == end) {
    return Json{whole};
  }
  double number = 0;
  const auto read = std::from_chars(digits.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && number - number == 0) return Json{number};
  return Json{std::move(text)};
}

std::string name_of(std::string kernel) {
  if (kernel.size() <= kKernelName) return kernel;
  return cat(whole_characters(std::string_view(kernel).substr(0, kKernelName - 3)), "...");
}

// The others are named in words ("Kernel Name", "CC") and say where the kernel ran.
bool is_metric(const std::string& column) {
  return !column.empty() && column.front() >= 'a' && column.front() <= 'z' &&
         column.find(' ') == std::string::npos;
}

std::optional<double> number(const KernelProfile& kernel, std::string_view metric_name) {
  for (const Metric& metric : kernel.metrics) {
    if (metric.name != metric_name) continue;
    if (const auto* whole = std::get_if<std::int64_t>(&metric.value.value)) {
      return static_cast<double>(*whole);
    }
    if (const auto* real = std::get_if<double>(&metric.value.value)) return *real;
  }
  return std::nullopt;
}

// Of the first that ncu counted: names change between its versions.
std::string percent(const KernelProfile& kernel, std::initializer_list<const char*> metric_names) {
  for (const char* metric_name : metric_names) {
    const auto value = number(kernel, cat(metric_name, ".avg.pct_of_peak_sustained_elapsed"));
    if (!value) continue;
    const std::string text = std::to_string(*value);
    return text.substr(0, text.find('.') + 2);
  }
  return "-";
}

std::string duration(const KernelProfile& kernel) {
  const auto value = number(kernel, kDuration);
  if (!value) return "-";
  for (const Metric& metric : kernel.metrics) {
    if (metric.name != kDuration) continue;
    for (const auto& [unit, ns] : {std::pair("n", 1.), std::pair("u", 1e3), std::pair("m", 1e6)}) {
      // "ns", "nsecond"
      if (metric.unit.starts_with(cat(unit, "s"))) return duration_text(*value * ns);
    }
    return cat(std::to_string(*value), " ", printable(metric.unit));
  }
  return "-";
}

}  // namespace

fs::path find_ncu() {
  std::vector<fs::path> folders;
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home != 0) {
    folders.push_back(fs::path(home) / "bin");
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& folder : folders) {
    const fs::path program = folder / "ncu";
    std::error_code error;  // a folder that may not be looked into has none for us
    if (fs::is_regular_file(program, error) && ::access(program.c_str(), X_OK) == 0) return program;
  }
  throw Error(Fault::device,
              "no ncu in PATH, $CUDA_HOME/bin or /usr/local/cuda/bin; install Nsight Compute, with "
              "NVIDIA's repository: apt-get install cuda-nsight-compute-13-0");
}

std::vector<std::vector<std::string>> parse_csv(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  std::size_t at = 0;
  while (at < text.size()) {
    std::vector<std::string>& row = rows.emplace_back();
    for (bool more = true; more;) {
      std::string& field = row.emplace_back();
      if (at < text.size() && text[at] == '"') {
        for (++at;; ++at) {
          if (at == text.size()) throw Error(Fault::malformed, "csv: a quote is not closed");
          if (text[at] == '"' && text.substr(at + 1, 1) != "\"") break;
          if (text[at] == '"') ++at;
          field += text[at];
        }
        ++at;
      }
      const auto end = std::min(text.find_first_of(",\n", at), text.size());
      field += text.substr(at, end - at);
      more = end < text.size() && text[end] == ',';
      if (!more && !field.empty() && field.back() == '\r') field.pop_back();
      at = end + 1;
    }
  }
  return rows;
}

// A row of names, a row of units, a row for each kernel.
std::vector<KernelProfile> kernels_from_csv(std::string_view text) {
  auto rows = parse_csv(text);
  std::erase_if(rows, [](const std::vector<std::string>& row) {
    return row.front().starts_with("==") || (row.size() == 1 && row.front().empty());
  });
  const auto header =
      std::find_if(rows.begin(), rows.end(), [](const std::vector<std::string>& row) {
        return std::find(row.begin(), row.end(), "Kernel Name") != row.end();
      });
  if (header == rows.end()) throw Error(Fault::malformed, "ncu's table has no column Kernel Name");
  if (header + 1 == rows.end()) throw Error(Fault::malformed, "ncu's table has no row of units");
  const std::vector<std::string>&names = *header, &units = *(header + 1);
  std::vector<KernelProfile> kernels;
  for (auto row = header + 1; row != rows.end(); ++row) {
    if (row->size() != names.size()) {
      throw Error(Fault::malformed, cat("a row of ncu's table has ", row->size(),
                                        " fields, its header has ", names.size()));
    }
    if (row == header + 1) continue;
    KernelProfile& kernel = kernels.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "Kernel Name") kernel.name = name_of((*row)[i]);
      if (names[i] == "Grid Size") kernel.grid = (*row)[i];
      if (names[i] == "Block Size") kernel.block = (*row)[i];
      if (!is_metric(names[i]) || (*row)[i].empty()) continue;
      kernel.metrics.push_back({names[i], units[i], value_of((*row)[i])});
    }
  }
  return kernels;
}

Profile run_ncu(const NcuRun& run, const std::function<void()>& tick) {
  const TempDir folder;
  const fs::path report = folder.path() / "profile.ncu-rep";
  Profile profile;
  profile.set = run.set;
  profile.ncu = version_of(checked_output(run.ncu, {"--version"}, tick));

  // Clocks as they are in a contest. From the program's own word on: what runs before is kjudge's.
  std::vector<std::string> arguments = {"--graph-profiling",
                                        "node",
                                        "--clock-control",
                                        "none",
                                        "--set",
                                        run.set,
                                        "--profile-from-start",
                                        "off",
                                        "--export",
                                        report.string(),
                                        "--target-processes",
                                        "all"};
  arguments.insert(arguments.end(), run.command.begin(), run.command.end());
  const std::string talk = checked_output(run.ncu, arguments, tick);
  if (!fs::exists(report)) fail("ncu wrote no report", talk);

  const std::string csv = checked_output(
      run.ncu, {"--import", report.string(), "--page", "raw", "--csv", "--print-units", "base"},
      tick);
  try {
    profile.kernels = kernels_from_csv(csv);
  } catch (const Error& error) {
    fail(cat("the output of ncu ", profile.ncu, " is not understood: ", error.what()), csv);
  }
  if (profile.kernels.empty()) fail("ncu saw no kernel", talk);
  if (!run.report.empty()) write_file_atomically(run.report, read_file(report, kNcuOutput));
  return profile;
}

std::string profile_table(const Profile& profile) {
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "grid", "block", "duration", "SM %", "memory %", "DRAM %"}};
  for (const KernelProfile& kernel : profile.kernels) {
    rows.push_back({printable(kernel.name), printable(kernel.grid), printable(kernel.block),
                    duration(kernel), percent(kernel, {"sm__throughput"}),
                    percent(kernel, {"gpu__compute_memory_throughput"}),
                    percent(kernel, {"gpu__dram_throughput", "dram__throughput"})});
  }
  return cat("shape ", profile.shape, ", ncu ", printable(profile.ncu), ", set ", profile.set, "\n",
             aligned(rows));
}

}  // namespace kjudge
