// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "file.h"
#include "judge/agreement.h"
#include "judge/device.h"
#include "judge/device_lock.h"
#include "judge/floor.h"
#include "judge/interrupt.h"
#include "judge/pipeline.h"
#include "judge/sandbox.h"
#include "judge/version.h"
#include "sha256.h"
#include "store/random.h"
#include "store/results.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> text{};
  if (::gethostname(text.data(), text.size() - 1) != 0) return "unknown";
  return text.data();
}

// The shapes that this device runs, with their floors on it. A challenge whose shapes have no work
// needs nothing of the device.
Challenge challenge_for(const Challenge& whole, const DeviceIdentity& identity,
                        const Driver& driver, int device, const fs::path& cache) {
  Challenge challenge = for_arch(whole, identity.arch);
  if (std::any_of(challenge.shapes.begin(), challenge.shapes.end(),
                  [](const Shape& shape) { return shape.work.has_value(); })) {
    compute_floors(challenge, floor_basis(driver, device, cache));
  }
  return challenge;
}

Evaluation begin_evaluation(const DeviceIdentity& device, const Challenge& challenge,
                            const std::string& submission, ReplayOptions& replay) {
  if (replay.evaluation.empty()) replay.evaluation = random_uuid();
  if (replay.secret.empty()) replay.secret = random_hex(32);
  if (replay.order_seed == 0) replay.order_seed = random_u64();

  Evaluation evaluation;
  evaluation.id = replay.evaluation;
  evaluation.challenge = challenge.name;
  evaluation.challenge_version = challenge.version;
  evaluation.challenge_sha256 = challenge.sha256;
  const VariantRequest only = without_needless(replay.only, challenge.shapes);
  if (!only.all_shapes()) evaluation.variant = {challenge.name, 0, only.dtype, "", only.shape};
  evaluation.submission = submission;
  evaluation.kjudge_version = kVersion;
  evaluation.driver = device.driver;
  evaluation.device = device.name;
  evaluation.arch = device.arch;
  evaluation.trust = device.trust;
  evaluation.node = host_name();
  evaluation.started = utc_now();
  evaluation.cache = challenge.cache;
  return evaluation;
}

// What a contestant's process does to the file afterwards changes nothing here.
Fd private_copy(const fs::path& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) throw_errno(path.string());
  if (!S_ISREG(status.st_mode)) {
    throw Error(Fault::malformed, cat(path.string(), ": not a regular file"));
  }
  Fd copy(::memfd_create("kjudge-bundle", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!copy.valid()) throw_errno("memory for a copy of a bundle");
  for (off_t at = 0; at < status.st_size;) {
    const ssize_t n =
        ::sendfile(copy.get(), file.get(), &at, static_cast<std::size_t>(status.st_size - at));
    if (n < 0 && errno != EINTR) throw_errno(path.string());
    if (n == 0) break;  // it became shorter: the reader says so
  }
  // A worker has the descriptor.
  if (::fcntl(copy.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) !=
      0) {
    throw_errno("memory for a copy of a bundle");
  }
  return copy;
}

// The bundle at `path`, held to the device and the challenge. A cached one that another version of
// kjudge wrote, or that a crash left, is an error of the caller's to act on.
BundleReader open_bundle(const fs::path& path, const DeviceIdentity& device,
                         const Challenge& challenge, const VariantRequest& only, CaptureRole role) {
  BundleReader reader(private_copy(path).get(), path.string());
  try {
    check_recorded_here(reader.bundle().provenance, device);
    check_agreement(reader.bundle(), challenge, only,
                    role == CaptureRole::reference ? Outputs::as_expected : Outputs::as_submitted);
  } catch (Error& error) {
    error.context(path.string());
    throw;  // not a copy: a DriverError keeps its result
  }
  return reader;
}

// What an evaluation replays, and how.
struct ReplayWork {
  const Driver& driver;
  const Challenge& whole;  // of all archs, without floors
  const fs::path& cache;   // where doctor's measurements lie
  const BundleReader* reference = nullptr;
  const BundleReader& baseline;
  const BundleReader& submission;
  const ReplayOptions& options;
  const ReportProgress& progress;
};

// Measures on the other devices that are wanted, one after the other, each with its own floors. A
// failure on one of them is the submission's: it has to be right on all.
void measure_others(Evaluation& evaluation, const ReplayWork& work) {
  for (const int device : work.options.other_devices) {
    if (evaluation.verdict != Verdict::accepted) return;
    const DeviceIdentity identity = identify(work.driver, device);
    const std::size_t number = evaluation.others.size() + 2;
    const std::string where = cat("device ", device, " (", identity.name, "): ");
    ReplayOptions options = work.options;
    options.device = device;
    options.evaluation = cat(evaluation.id, "/", number);
    const ReportProgress labelled = [&](const Progress& now) {
      work.progress({where + now.step, now.shape, now.done});
    };
    Evaluation there;
    try {
      const Challenge challenge =
          challenge_for(work.whole, identity, work.driver, device, work.cache);
      const DeviceLock lock = lock_device(identity, device, labelled);
      measure(work.driver, challenge, work.reference, work.baseline, work.submission, options,
              labelled, there);
    } catch (Error& error) {
      error.context(where.substr(0, where.size() - 2));
      throw;
    }
    evaluation.others.push_back(
        {identity.name, there.verdict, there.message, std::move(there.shapes)});
    if (there.verdict == Verdict::accepted) continue;
    evaluation.verdict = there.verdict;
    evaluation.message = where + there.message;
  }
}

// Measures, and notes which recordings it was. `challenge` is as the first device has it.
void replay_into(Evaluation& evaluation, const Challenge& challenge, const ReplayWork& work) {
  if (work.reference != nullptr) {
    evaluation.reference_sha256 = sha256_of_file(work.reference->fd(), "the reference's bundle");
  }
  evaluation.baseline_sha256 = sha256_of_file(work.baseline.fd(), "the baseline's bundle");
  evaluation.bundle_sha256 = sha256_of_file(work.submission.fd(), "the submission's bundle");
  measure(work.driver, challenge, work.reference, work.baseline, work.submission, work.options,
          work.progress, evaluation);
  measure_others(evaluation, work);
}

ReportProgress interruptible(const ReportProgress& report) {
  return [report](const Progress& now) {
    check_interrupt();
    if (report) report(now);
  };
}

void judge_error(Evaluation& evaluation, const std::string& message) {
  evaluation.verdict = Verdict::judge_error;
  evaluation.message = message;
}

// Where there is no room for it there is none for a verdict either, so this is none. Its folder may
// be gone: then nobody wants it any more.
void keep(const fs::path& bundle, const fs::path& to) {
  try {
    fs::copy_file(bundle, to, fs::copy_options::overwrite_existing);
  } catch (const fs::filesystem_error& error) {
    if (fs::exists(to.parent_path())) throw Error(Fault::host, error.what());
  }
}

}  // namespace

void require_shapes(const Challenge& challenge, const VariantRequest& only) {
  std::string names;
  for (const Shape& shape : challenge.shapes) {
    if (only.takes(shape)) return;
    names += cat(names.empty() ? "" : ", ", shape.name, " of ", shape.dtype);
  }
  throw Error(Fault::usage,
              cat("shape ", only.shape, only.dtype.empty() ? "" : " of dtype ", only.dtype,
                  ": challenge ", challenge.name, " has no such shape here; it has ", names));
}

fs::path challenge_bundle(const Driver& driver, const Challenge& challenge, CaptureRole role,
                          const fs::path& cache, int device) {
  const DeviceIdentity identity = identify(driver, device);
  const std::string key =
      sha256_hex(cat(challenge.sha256, "\n", identity.arch, "\n", identity.driver, "\n",
                     identity.name, "\n", kVersion, "\n", kCommit));
  const fs::path path =
      cache / cat(challenge.name, "-", name(role), "-", key.substr(0, 16), ".kjb");
  if (fs::exists(path)) {
    try {
      open_bundle(path, identity, challenge, {}, role);
      return path;
    } catch (const Error& error) {
      if (error.fault() != Fault::malformed) throw;  // else: captured again below
    }
  }
  CaptureOptions options;
  options.role = role;
  options.bundle = path;
  options.device = device;
  const CaptureOutcome outcome = capture(driver, challenge, options);
  if (outcome.verdict != Verdict::accepted) {
    throw Error(Fault::package,
                cat((challenge.folder / cat(name(role), ".py")).string(), ": ",
                    name(outcome.verdict), ": ", outcome.message,
                    role == CaptureRole::reference && outcome.verdict == Verdict::refused
                        ? "; or have Python call it for every replay: "
                          "\"reference\": \"python\" in challenge.json"
                        : "",
                    outcome.log.empty() ? "" : "\n", outcome.log));
  }
  return path;
}

Evaluation evaluate(const Driver& driver, const Challenge& whole, const EvaluateOptions& options,
                    const ReportProgress& report) {
  const DeviceIdentity device = identify(driver, options.replay.device);
  const Challenge challenge =
      challenge_for(whole, device, driver, options.replay.device, options.cache);
  require_shapes(challenge, options.replay.only);
  ReplayOptions replay = options.replay;
  Evaluation evaluation = begin_evaluation(device, challenge, options.submission.string(), replay);
  const ReportProgress progress = interruptible(report);

  const TempDir work("kjudge-evaluation");
  fs::path captured;  // empty: nothing was
  try {
    const DeviceLock lock = lock_device(device, replay.device, progress);
    CaptureOptions capture_options;
    capture_options.submission = options.submission;
    capture_options.bundle = work.path() / "submission.kjb";
    capture_options.only = replay.only;
    capture_options.device = replay.device;
    capture_options.eager = options.eager;
    capture_options.sandbox = options.sandbox;
    if (options.sandbox != nullptr) evaluation.sandbox = options.sandbox->describe();

    // Before the contestant's code runs, which could change them in the cache.
    std::optional<BundleReader> reference, baseline;
    if (!options.eager) {
      if (challenge.reference == ReferenceMode::recorded) {
        progress({"capturing the reference", "", 0});
        reference.emplace(open_bundle(challenge_bundle(driver, challenge, CaptureRole::reference,
                                                       options.cache, replay.device),
                                      device, challenge, replay.only, CaptureRole::reference));
      }
      progress({"capturing the baseline", "", 0});
      baseline.emplace(open_bundle(
          challenge_bundle(driver, challenge, CaptureRole::baseline, options.cache, replay.device),
          device, challenge, replay.only, CaptureRole::baseline));
    }

    capture_options.progress = progress;
    const CaptureOutcome outcome = capture(driver, challenge, capture_options);
    evaluation.submission_sha256 = outcome.sha256;
    evaluation.phases = outcome.phases;
    evaluation.log = outcome.log;
    evaluation.verdict = outcome.verdict;
    evaluation.message = outcome.message;
    evaluation.peak_bytes = outcome.peak_bytes;
    if (outcome.verdict != Verdict::accepted || options.eager) return evaluation;
    captured = capture_options.bundle;

    const BundleReader submission(capture_options.bundle);
    replay_into(evaluation, challenge,
                {driver, whole, options.cache, reference ? &*reference : nullptr, *baseline,
                 submission, replay, progress});
  } catch (const Error& error) {
    if (error.fault() == Fault::usage || error.fault() == Fault::package) throw;
    judge_error(evaluation, error.what());
  } catch (const fs::filesystem_error& error) {
    judge_error(evaluation, error.what());
  }
  if (!captured.empty() && !options.keep_bundle.empty()) keep(captured, options.keep_bundle);
  return evaluation;
}

Evaluation replay_bundles(const Driver& driver, const Challenge& whole,
                          const ReplayBundles& bundles, const fs::path& cache,
                          const ReplayOptions& options, const ReportProgress& report) {
  const DeviceIdentity device = identify(driver, options.device);
  const Challenge challenge = challenge_for(whole, device, driver, options.device, cache);
  require_shapes(challenge, options.only);
  const ReportProgress progress = interruptible(report);
  const auto opened = [&](const fs::path& given, CaptureRole role) {
    return open_bundle(
        given.empty() ? challenge_bundle(driver, challenge, role, cache, options.device) : given,
        device, challenge, options.only, role);
  };
  const auto submission = opened(bundles.submission, CaptureRole::submission);
  const DeviceLock lock = lock_device(device, options.device, progress);
  std::optional<BundleReader> reference;
  if (challenge.reference == ReferenceMode::recorded || !bundles.reference.empty()) {
    reference.emplace(opened(bundles.reference, CaptureRole::reference));
  }
  const auto baseline = opened(bundles.baseline, CaptureRole::baseline);

  ReplayOptions replay = options;
  Evaluation evaluation = begin_evaluation(device, challenge, bundles.submission.string(), replay);
  evaluation.submission_sha256 = sha256_of_file(submission.fd(), bundles.submission.native());
  evaluation.peak_bytes = submission.bundle().provenance.peak_bytes;
  try {
    replay_into(evaluation, challenge,
                {driver, whole, cache, reference ? &*reference : nullptr, baseline, submission,
                 replay, progress});
  } catch (const Error& error) {
    judge_error(evaluation, error.what());
  }
  return evaluation;
}

}  // namespace kjudge
