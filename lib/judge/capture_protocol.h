// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "json_fields.h"
#include "judge/pipeline.h"

namespace kjudge {

// The two files between kjudge and the capture process (harness/capture.py): kjudge-capture/1, the
// request, which kjudge writes, and kjudge-capture-status/1, which comes back from a process that
// ran a contestant's code and is read as hostile bytes.

// A line of the capture process's output before any code of the contestant's runs, which can write
// after it but not take it back: what fails without it is not the contestant's doing.
inline constexpr std::string_view kSubmissionStarts = "kjudge: the submission's code starts here\n";

struct CaptureFiles {
  std::filesystem::path submission;                      // the Python file
  std::filesystem::path request, status, steps, bundle;  // steps: see judge/capture_steps.h
  std::filesystem::path made_up;                         // see judge/made_up_inputs.h
};

// `device`: its number where the capture runs.
std::string capture_request(const Challenge& challenge, const CaptureOptions& options,
                            const CaptureFiles& files, int device, std::uint64_t seed);

struct CaptureSeconds {
  std::optional<double> import, prepare, capture, export_;
};

struct CaptureStatus {
  Verdict verdict = Verdict::runtime_error;
  std::string rule;  // of a refusal
  std::string message;
  std::string traceback;  // only the contestant's frames
  CaptureSeconds seconds;
};

// Fault::malformed with the field.
CaptureStatus parse_capture_status(std::string_view bytes);

JsonFormat capture_status_json_format();

}  // namespace kjudge
