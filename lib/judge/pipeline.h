// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "challenge/challenge.h"
#include "challenge/variant_request.h"
#include "driver/driver.h"
#include "replay/evaluation.h"
#include "replay/replay.h"

namespace kjudge {

class Sandbox;

// Whose code a capture runs.
enum class CaptureRole { submission, baseline, reference };
std::string_view name(CaptureRole role);

struct CaptureOptions {
  CaptureRole role = CaptureRole::submission;
  std::filesystem::path
      submission;  // a .py or .cu file, or a folder or archive with submission.py or
                   // submission.cu at its root; not used for the challenge's own roles
  std::filesystem::path bundle;  // written only when the capture is accepted
  VariantRequest only;           // its dtype and shape: what is captured; none: all
  int device = 0;
  bool eager = false;  // call kernel_fn without a capture, for debuggers; writes no bundle
  const Sandbox* sandbox = nullptr;  // for the submission; null: its code runs as the user's own
  ReportProgress progress;           // kBuildingStep where there is a build.sh, then kCapturingStep
};
// Of Progress, of the submission's own code.
inline constexpr const char* kBuildingStep = "building";
inline constexpr const char* kCapturingStep = "capturing";

// How a capture ended: a verdict with its message, or (accepted) a bundle that was read back whole
// as hostile bytes and agrees with the challenge.
struct CaptureOutcome {
  Verdict verdict = Verdict::judge_error;
  std::string message;  // for the contestant: what happened, what to do
  std::string log;      // output of build.sh and of the capture process, cut to the limit
  std::string sha256;   // of the files that were captured
  std::uint64_t peak_bytes = 0;
  std::vector<Phase> phases;  // build, import, prepare, capture, export
};

// build.sh if there is one, then the capture process, on a private copy of the files. Fault::host
// and Fault::bug only for what is not the submission's fault.
CaptureOutcome capture(const Driver& driver, const Challenge& challenge,
                       const CaptureOptions& options);

struct EvaluateOptions {
  std::filesystem::path submission;
  std::filesystem::path cache;        // of baseline and reference bundles
  std::filesystem::path keep_bundle;  // where the submission's bundle goes; empty: nowhere
  bool eager = false;                 // stop after an uncaptured run: nothing is checked or timed
  const Sandbox* sandbox = nullptr;   // for the submission's code
  ReplayOptions replay;
};

// A submission judged once: capture of baseline and reference (cached) and of the submission, then
// measure(). Throws only Fault::usage (no such submission, shape or device) and Fault::package (the
// challenge's own code does not pass); any other failure of the judge's is Verdict::judge_error
// with its message. Waits for the device (judge/device_lock.h).
Evaluation evaluate(const Driver& driver, const Challenge& challenge,
                    const EvaluateOptions& options, const ReportProgress& progress);

// Fault::usage, naming those there are, unless `only` has a shape or test of the challenge's.
void require_shapes(const Challenge& challenge, const VariantRequest& only);

// As evaluate(), from a bundle that exists. An empty reference or baseline is the challenge's, from
// `cache`. Throws also Fault::malformed and Fault::host for what is wrong with a file given.
struct ReplayBundles {
  std::filesystem::path reference, baseline, submission;
};
Evaluation replay_bundles(const Driver& driver, const Challenge& challenge,
                          const ReplayBundles& bundles, const std::filesystem::path& cache,
                          const ReplayOptions& options, const ReportProgress& progress);

// The bundle of the challenge's baseline or reference for this device: from `cache`, or captured
// into it. Fault::package, with the capture's message, when the challenge's own code does not pass.
std::filesystem::path challenge_bundle(const Driver& driver, const Challenge& challenge,
                                       CaptureRole role, const std::filesystem::path& cache,
                                       int device);

// $XDG_CACHE_HOME/kjudge, which need not be there.
std::filesystem::path cache_path();
// The same, made if need be.
std::filesystem::path cache_directory();

// The challenge named `name` (a folder, or a name below packages/), or with an empty name the one
// whose challenge.json lies beside or above `submission`, else the only one below packages/.
// Fault::usage, listing where it looked, when there is none.
std::filesystem::path find_challenge(const std::string& name,
                                     const std::filesystem::path& submission);

}  // namespace kjudge
