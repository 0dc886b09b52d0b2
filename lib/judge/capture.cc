// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <fstream>
#include <utility>

#include "decimal.h"
#include "judge/agreement.h"
#include "judge/capture_protocol.h"
#include "judge/capture_steps.h"
#include "judge/device.h"
#include "judge/interrupt.h"
#include "judge/made_up_inputs.h"
#include "judge/pipeline.h"
#include "judge/report.h"
#include "judge/sandbox.h"
#include "process.h"
#include "store/random.h"
#include "store/submission_files.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStatusLimit = 4u << 20;
// What a submission may have on disk at any time beside its bundle, in a sandbox.
constexpr std::uint64_t kDiskBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kDiskFiles = 200'000;

// Of seconds that were measured: rounded up, so that what is over a limit is more than it as text.
std::string measured(double seconds) { return decimal(std::ceil(seconds * 1000) / 1000); }

// A submission's failure found by kjudge itself while it captures.
struct CaptureFailure {
  Verdict verdict;
  std::string message;
};

// `temporary`: what the contestant's processes leave there goes with the work folder.
std::map<std::string, std::string> child_environment(const Driver& driver,
                                                     const fs::path& temporary) {
  const fs::path library = library_directory();
  return {{"KJUDGE_DRIVER", std::string(name(driver.kind))},
          {"KJUDGE_DRIVER_LIBRARY", driver.library.string()},
          {"KJUDGE_LIBRARY_DIR", library.string()},
          {"KJUDGE_INCLUDE_DIR", (library.parent_path().parent_path() / "include").string()},
          {"PYTHONDONTWRITEBYTECODE", "1"},
          {"TMPDIR", temporary.string()},
          {"KERNELS_TOKEN", ""}};  // the contestant's own code must not need it: it is a secret
}

// Where the contestant's code of one capture runs, and on what.
struct Place {
  const Sandbox* sandbox = nullptr;
  std::vector<fs::path> writable;
  std::uint64_t disk_bytes = 0;

  Finished run(const ChildOptions& child, std::vector<fs::path> readable, double limit,
               std::size_t output_limit, const std::function<bool()>& in_time = {}) const;

 private:
  void check_disk() const;
};

Finished Place::run(const ChildOptions& child, std::vector<fs::path> readable, double limit,
                    std::size_t output_limit, const std::function<bool()>& in_time) const {
  const std::chrono::duration<double> seconds(limit);
  auto checked = std::chrono::steady_clock::now();
  const auto tick = [&] {
    check_interrupt();
    if (std::chrono::steady_clock::now() - checked >= std::chrono::milliseconds(250)) {
      check_disk();
      checked = std::chrono::steady_clock::now();
    }
    return !in_time || in_time();
  };
  if (sandbox == nullptr) return run_to_end(child, seconds, output_limit, tick);
  return sandbox->run(child, {std::move(readable), writable, disk_bytes}, seconds, output_limit,
                      tick);
}

// Files may come and go while this looks, which must not keep it from looking at the others; and
// none may be where it cannot look, such as below a path that is too long.
void Place::check_disk() const {
  std::uint64_t bytes = 0, files = 0;
  std::vector<fs::path> folders = writable;
  while (!folders.empty()) {
    const fs::path folder = std::move(folders.back());
    folders.pop_back();
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      struct stat status {};
      const fs::path& path = at->path();
      if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) continue;
        error.assign(errno, std::generic_category());
        break;
      }
      if (S_ISDIR(status.st_mode)) folders.push_back(path);
      bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
      if (++files > kDiskFiles || bytes > disk_bytes) {
        throw CaptureFailure{Verdict::refused,
                             cat("the submission wrote more than ", disk_bytes >> 20, " MiB or ",
                                 kDiskFiles, " files; write less, or to TMPDIR")};
      }
    }
    if (error == std::errc::permission_denied || error == std::errc::filename_too_long) {
      throw CaptureFailure{Verdict::refused,
                           cat("the submission made files that cannot be looked at (",
                               error.message(), "); keep its folders readable, and not too deep")};
    }
    const bool is_gone = error == std::errc::no_such_file_or_directory ||
                         error == std::errc::not_a_directory ||
                         error == std::errc::too_many_symbolic_link_levels;
    if (error && !is_gone) throw Error(Fault::host, cat(folder.string(), ": ", error.message()));
  }
}

// The dynamic linker takes a space or colon for the end of the name, and "$" for a word of its own:
// where the path has one, a link to it in `folder`.
fs::path preloadable(const fs::path& library, const fs::path& folder) {
  constexpr std::string_view kSpecial = " :$";
  if (library.native().find_first_of(kSpecial) == std::string::npos) return library;
  const fs::path link = folder / "recorder.so";
  if (link.native().find_first_of(kSpecial) != std::string::npos) {
    throw Error(Fault::usage,
                cat("kjudge lies in ", library.parent_path().string(), " and TMPDIR is ",
                    folder.parent_path().string(),
                    ": one of them must be a path without spaces, colons and dollar signs, for "
                    "the dynamic linker takes no other; set TMPDIR"));
  }
  fs::create_symlink(library, link);
  return link;
}

// The first line of build.sh, read before it can change itself.
struct FirstLine {
  std::string program = "/bin/sh";  // that is to run the file
  bool ends_in_return = false;
};

FirstLine first_line(const fs::path& script) {
  std::string start(256, '\0');  // of which the system reads no more
  std::ifstream file(script, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(file.gcount()));
  start.resize(std::min(start.find('\n'), start.size()));
  FirstLine line;
  line.ends_in_return = start.ends_with('\r');
  if (start.starts_with("#!")) {
    const std::size_t from = start.find_first_not_of(" \t", 2);
    if (from != start.npos) {
      line.program = start.substr(from, start.find_first_of(" \t", from) - from);
    }
  }
  return line;
}

// The shell starts build.sh, so that it fails alike with a sandbox and without, and is the shell's
// to run where its first line names no program.
constexpr std::string_view kNotThere = "kjudge: build.sh cannot be started\n";
constexpr const char* kStart =
    R"([ -f "$1" ] && [ -x "$1" ] || { printf %s "$2"; exit 127; }; exec "$0")";

std::string why_build_failed(const Finished& built, const FirstLine& line) {
  const std::string returns =
      "its first line ends in a carriage return, as lines do on Windows: save it with the line "
      "ends of Unix";
  if (built.output == kNotThere) {
    return cat("build.sh cannot be started: ",
               line.ends_in_return ? returns
                                   : cat("its first line names ", printable(line.program),
                                         ", and there is no such program; name one that there is"));
  }
  return cat("build.sh failed: ", describe(*built.status), "; ",
             line.ends_in_return ? returns + "; " : "", "its output is in the log");
}

void run_build(const Driver& driver, const Challenge& challenge, const fs::path& folder,
               const fs::path& entry, const Place& place, CaptureOutcome& outcome) {
  const fs::path script = folder / "build.sh";
  if (!fs::exists(script)) return;
  ChildOptions child;
  child.directory = folder;
  child.environment = child_environment(driver, folder.parent_path() / "tmp");
  const bool executable =
      (fs::status(script).permissions() & fs::perms::owner_exec) != fs::perms::none;
  const FirstLine line = first_line(script);
  child.program = "/bin/sh";
  child.arguments = {script.string()};
  if (executable)
    child.arguments = {"-c", kStart, script.string(), line.program, std::string(kNotThere)};

  const auto built = place.run(child, {}, challenge.limits.build_s, challenge.limits.output_bytes);
  outcome.phases.push_back({"build", built.seconds});
  if (!built.output.empty()) outcome.log += "--- build.sh\n" + built.output;
  if (!built.status) {
    throw CaptureFailure{Verdict::timeout, cat("build.sh did not end within its limit of ",
                                               decimal(challenge.limits.build_s),
                                               " s; build less, or ship what takes long")};
  }
  if (!built.status->ok()) {
    throw CaptureFailure{Verdict::build_error, why_build_failed(built, line)};
  }
  if (!fs::is_regular_file(fs::symlink_status(entry))) {
    throw CaptureFailure{Verdict::build_error,
                         cat("build.sh ended with status 0 and left no regular file ",
                             entry.filename().string(), "; leave it where it was")};
  }
}

CaptureFailure killed(std::optional<bool> out_of_memory) {
  if (out_of_memory.value_or(false)) {
    return {
        Verdict::out_of_memory,
        "the capture process was killed by SIGKILL: the system ends a process so that takes too "
        "much memory; allocate less in prepare"};
  }
  return {
      Verdict::runtime_error,
      cat("the capture process was killed by SIGKILL, ",
          out_of_memory ? "and not for want of memory: "
                        : "by the system if it took too much memory, which cannot be told here: ",
          "the submission must not kill itself")};
}

// What the status file, or its absence, says about how the capture process ended.
CaptureStatus read_status(const CaptureFiles& files, const Finished& finished,
                          const Challenge& challenge) {
  if (finished.output.find(kSubmissionStarts) == std::string::npos) {
    const bool no_python = finished.output.starts_with("/usr/bin/env:");  // env's own words
    throw Error(Fault::host,
                no_python
                    ? cat("python3 could not be started: ", finished.output,
                          "install it, or mend PATH (cron's is short)")
                    : cat("the capture process ",
                          finished.status ? describe(*finished.status) : std::string("did not end"),
                          " before the submission's code started:\n", finished.output));
  }
  if (!finished.status) {
    const ChallengeLimits& limits = challenge.limits;
    throw CaptureFailure{Verdict::timeout,
                         cat("the capture did not end within ", decimal(limits.prepare_s),
                             " s for prepare and ", decimal(limits.capture_s),
                             " s for kernel_fn of all shapes; look for an endless loop, or do less "
                             "work on the host")};
  }
  const ExitStatus& exit = *finished.status;
  if (exit.signal == SIGKILL) throw killed(finished.out_of_memory);
  std::error_code error;
  // A status from a process that died afterwards still says what went wrong, but never accepts.
  if (fs::is_regular_file(fs::symlink_status(files.status, error))) {
    try {
      CaptureStatus status = parse_capture_status(read_file(files.status, kStatusLimit));
      if (status.verdict != Verdict::accepted || exit.ok()) return status;
    } catch (const Error& bad) {
      throw CaptureFailure{Verdict::refused, cat("the capture's status file was tampered with (",
                                                 bad.what(), "); only kjudge may write it")};
    }
  }
  throw CaptureFailure{
      Verdict::runtime_error,
      cat("the capture process ended early: ", describe(exit),
          exit.signal == SIGSYS
              ? "; it made a system call that no submission may make: compute in kernels, and "
                "leave the system alone"
          : exit.signal != 0
              ? "; a wrong memory access in host code is the usual cause: run it under a debugger "
                "with 'kjudge selftest --eager'"
              : "; the submission must not end the process itself")};
}

void check_step_limits(const CaptureSeconds& seconds, const ChallengeLimits& limits) {
  const double prepare = seconds.import.value_or(0) + seconds.prepare.value_or(0);
  if (prepare > limits.prepare_s) {
    throw CaptureFailure{
        Verdict::timeout,
        cat("import and prepare took ", measured(prepare), " s, more than the limit of ",
            decimal(limits.prepare_s), " s; import, compile or allocate less")};
  }
  if (seconds.capture.value_or(0) > limits.capture_s) {
    throw CaptureFailure{Verdict::timeout,
                         cat("kernel_fn of all shapes took ", measured(*seconds.capture),
                             " s, more than the limit of ", decimal(limits.capture_s),
                             " s; do less on the host in kernel_fn: compile and tune in prepare")};
  }
}

void validate_bundle(const CaptureFiles& files, const Driver& driver, const Challenge& challenge,
                     const CaptureOptions& options, CaptureOutcome& outcome) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(files.bundle, error))) {
    throw CaptureFailure{Verdict::refused, "the capture left no bundle"};
  }
  // The recorder keeps to it, unless it was tampered with; modules come on top of what it counts.
  const std::uintmax_t size = fs::file_size(files.bundle);
  if (size > challenge.limits.bundle_bytes) {
    throw CaptureFailure{Verdict::refused,
                         cat("the recording is a file of ", size, " bytes, more than the limit of ",
                             challenge.limits.bundle_bytes,
                             "; keep less device memory filled, or load smaller modules")};
  }
  BundleLimits limits;
  if (challenge.limits.memory_bytes != 0) limits.memory_bytes = challenge.limits.memory_bytes;
  try {
    const BundleReader reader(files.bundle, limits);
    // One that names another device or driver could never be replayed again.
    check_recorded_here(reader.bundle().provenance, identify(driver, options.device));
    check_agreement(
        reader.bundle(), challenge, options.only,
        options.role == CaptureRole::reference ? Outputs::as_expected : Outputs::as_submitted);
    outcome.peak_bytes = reader.bundle().provenance.peak_bytes;
  } catch (const Error& bad) {
    if (bad.fault() != Fault::malformed) throw;
    // Without the path, which is the judge's own and of this capture alone.
    std::string_view why = bad.what();
    const std::string path = files.bundle.string() + ": ";
    if (why.starts_with(path)) why.remove_prefix(path.size());
    throw CaptureFailure{Verdict::refused, cat("the recording is not valid: ", why)};
  }
}

void run_capture(const Driver& driver, const Challenge& challenge, const CaptureOptions& options,
                 const CaptureFiles& files, const Place& place, CaptureOutcome& outcome) {
  // Made-up inputs follow from the role alone, so that the same code gives the same recording.
  const std::uint64_t seed =
      input_key("made up", challenge.sha256, "", 0, std::string(name(options.role))) >> 1;
  const int device = place.sandbox != nullptr ? place.sandbox->inner_device() : options.device;
  write_made_up_inputs(driver, challenge, options, seed, files.made_up);
  write_file_atomically(files.request, capture_request(challenge, options, files, device, seed));

  const fs::path library = library_directory();
  const fs::path recorder = library / "libkjudge_recorder.so";
  if (!fs::exists(recorder)) {
    throw Error(Fault::host, cat(recorder.string(), ": not found; the installation is incomplete"));
  }
  ChildOptions child;
  child.program = "/usr/bin/env";
  child.arguments = {"python3", (library / "harness" / "capture.py").string(),
                     files.request.string()};
  child.directory = files.submission.parent_path();
  child.environment = child_environment(driver, files.request.parent_path() / "tmp");
  child.environment["LD_PRELOAD"] = preloadable(recorder, files.request.parent_path()).string();
  child.environment["KJUDGE_RECORDER"] = recorder.string();
  child.environment["KJUDGE_HOST_PROCESS"] = cat("capture-", name(options.role));
  if (driver.kind == DriverKind::cuda) {
    child.environment["CUDA_INJECTION64_PATH"] =
        recorder.string();  // for CUPTI, see record/cupti.h
  }

  std::vector<std::string> shapes;
  for (const Shape& shape : challenge.shapes) {
    if (options.only.takes(shape)) shapes.push_back(shape.name);
  }
  CaptureSteps steps(files.steps, challenge.limits, files.submission.filename().string(), shapes);
  // Without a limit under a debugger; a day is long enough.
  const double limit = options.eager ? 86400
                                     : challenge.limits.prepare_s + challenge.limits.capture_s +
                                           CaptureSteps::kExportSeconds;
  bool in_time = true;
  const auto finished =
      place.run(child, {files.request, files.made_up}, limit, challenge.limits.output_bytes,
                [&] { return options.eager || (in_time = steps.in_time()); });
  outcome.log += finished.output;
  if (const auto line = outcome.log.find(kSubmissionStarts); line != std::string::npos) {
    outcome.log.erase(line, kSubmissionStarts.size());
  }

  if (!in_time) {
    const std::vector<Phase> seen = steps.phases();
    outcome.phases.insert(outcome.phases.end(), seen.begin(), seen.end());
    throw CaptureFailure{Verdict::timeout, steps.message()};
  }
  const CaptureStatus status = read_status(files, finished, challenge);
  const CaptureSeconds& seconds = status.seconds;
  for (const auto& [step, spent] :
       {std::pair("import", seconds.import), std::pair("prepare", seconds.prepare),
        std::pair("capture", seconds.capture), std::pair("export", seconds.export_)}) {
    if (spent) outcome.phases.push_back({step, *spent});
  }
  if (!status.traceback.empty()) outcome.log += status.traceback + "\n";
  if (status.verdict == Verdict::judge_error) {
    // The host driver has no device that could break: its process has been tampered with.
    if (driver.kind == DriverKind::cuda) throw Error(Fault::device, status.message);
    throw CaptureFailure{Verdict::runtime_error, status.message};
  }
  if (status.verdict != Verdict::accepted) {
    throw CaptureFailure{status.verdict, status.rule.empty()
                                             ? status.message
                                             : cat(status.rule, ": ", status.message)};
  }
  check_step_limits(status.seconds, challenge.limits);
  if (!options.eager) validate_bundle(files, driver, challenge, options, outcome);
}

// What fails for want of room for temporary files is not the submission's fault.
void require_space(const fs::path& folder, const std::string& failure) {
  constexpr std::uintmax_t kLeast = 1u << 20;
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || space.available >= kLeast) return;
  throw Error(Fault::host,
              cat(folder.parent_path().string(), ": ", space.available,
                  " bytes are left for temporary files; make room, or set TMPDIR (the capture: ",
                  failure, ")"));
}

}  // namespace

CaptureOutcome capture(const Driver& driver, const Challenge& challenge,
                       const CaptureOptions& options) {
  require_replaceable(options.bundle);
  CaptureOutcome outcome;
  const TempDir work("kjudge-capture");
  const fs::path folder = work.path() / "submission";
  const fs::path made = work.path() / "made";
  CaptureFiles files{folder / cat(name(options.role), ".py"),
                     work.path() / "request.json",
                     made / "status.json",
                     made / "steps",
                     made / "bundle.kjb",
                     work.path() / "made_up"};
  fs::create_directory(work.path() / "tmp");
  fs::create_directory(made);
  fs::create_directory(files.made_up);
  Place place;
  try {
    if (options.role == CaptureRole::submission) {
      try {
        outcome.sha256 =
            copy_submission(options.submission, folder, challenge.limits.submission_bytes).sha256;
      } catch (const Error& error) {
        if (error.fault() != Fault::submission) throw;
        throw CaptureFailure{Verdict::refused, error.what()};
      }
      files.submission = folder / entry_file(folder);
      if (options.sandbox != nullptr) {
        place = {options.sandbox, {folder, made}, challenge.limits.bundle_bytes + kDiskBytes};
      }
      if (options.progress && fs::exists(folder / "build.sh")) {
        options.progress({kBuildingStep, "", 0});
      }
      run_build(driver, challenge, folder, files.submission, place, outcome);
    } else {
      copy_challenge(challenge, folder);
      outcome.sha256 = challenge.sha256;
    }
    if (options.progress) options.progress({kCapturingStep, "", 0});
    run_capture(driver, challenge, options, files, place, outcome);
  } catch (const CaptureFailure& failure) {
    require_space(work.path(), failure.message);
    outcome.verdict = failure.verdict;
    outcome.message = failure.message;
    return outcome;
  }
  if (!options.eager) {
    // Another file system perhaps: copied under a temporary name beside the target, then renamed.
    const fs::path temporary = options.bundle.string() + "." + random_hex(6) + ".tmp";
    try {
      fs::copy_file(files.bundle, temporary);
      fs::rename(temporary, options.bundle);
    } catch (const fs::filesystem_error& error) {
      std::error_code ignored;
      fs::remove(temporary, ignored);
      throw Error(Fault::host, cat(options.bundle.string(), ": ", error.code().message()));
    }
  }
  outcome.verdict = Verdict::accepted;
  return outcome;
}

}  // namespace kjudge
