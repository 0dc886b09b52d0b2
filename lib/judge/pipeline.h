// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "challenge/challenge.h"
#include "driver/driver.h"
#include "replay/evaluation.h"
#include "replay/replay.h"

namespace kjudge {

// Which arm's code a capture runs.
enum class CaptureRole { submission, baseline, reference };

struct CaptureOptions {
  CaptureRole role = CaptureRole::submission;
  std::filesystem::path submission;  // a Python file, or a folder with submission.py at its root
  std::filesystem::path bundle;      // written only when the capture succeeds
  std::string only_shape;
  int device = 0;
};

// How a capture ended: a verdict with its message, or (accepted) a bundle.
struct CaptureOutcome {
  Verdict verdict = Verdict::judge_error;
  std::string message, log;
  double build_s = 0, seconds = 0;
};

// build.sh if there is one, then the capture process. Fault::host and Fault::bug only for what is
// not the submission's fault.
CaptureOutcome capture(const Driver& driver, const Challenge& challenge,
                       const CaptureOptions& options);

struct EvaluateOptions {
  std::filesystem::path submission;
  std::filesystem::path cache;  // of baseline and reference bundles
  std::filesystem::path keep_bundle;  // where the submission's bundle goes; empty: nowhere
  ReplayOptions replay;
};

// A submission judged once: capture of baseline and reference (cached) and of the submission, then
// measure(). Never throws for what a submission can cause; a judge's failure is stored as
// Verdict::judge_error with the message.
Evaluation evaluate(const Driver& driver, const Challenge& challenge,
                    const EvaluateOptions& options, const ReportProgress& progress);

}  // namespace kjudge
