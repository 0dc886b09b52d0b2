// SPDX-License-Identifier: Apache-2.0
#include "judge/capture_steps.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "decimal.h"
#include "error.h"

namespace kjudge {
namespace {

constexpr const char* kNames[] = {"start", "import", "prepare", "capture", "export"};

}  // namespace

CaptureSteps::CaptureSteps(std::filesystem::path file, const ChallengeLimits& limits,
                           std::string submission, std::vector<std::string> shapes)
    : file_(std::move(file)),
      limits_(limits),
      submission_(std::move(submission)),
      shapes_(std::move(shapes)) {}

CaptureSteps::Step CaptureSteps::step() const {
  if (told_ < 3) return static_cast<Step>(told_);
  return told_ - 3 < shapes_.size() ? Step::capture : Step::export_;
}

double CaptureSteps::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

bool CaptureSteps::in_time() {
  const Step before = step();
  struct stat status {};
  if (::lstat(file_.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
    const auto size = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
    told_ = std::clamp(size, told_, std::max(told_, shapes_.size() + 3));
  }
  if (step() != before) {
    if (before != Step::start) ended_.push_back({kNames[static_cast<int>(before)], seconds()});
    began_ = std::chrono::steady_clock::now();
  }
  switch (step()) {
    case Step::start:
      return true;  // none of the contestant's code has run
    case Step::import:
      return seconds() <= limits_.prepare_s;
    case Step::prepare:
      return seconds() + (ended_.empty() ? 0 : ended_.front().seconds) <= limits_.prepare_s;
    case Step::capture:
      return seconds() <= limits_.capture_s;
    case Step::export_:
      return seconds() <= kExportSeconds;
  }
  return false;
}

std::string CaptureSteps::message() const {
  switch (step()) {
    case Step::start:
      break;
    case Step::import:
    case Step::prepare:
      return cat(step() == Step::import ? "import of " + submission_ : "prepare",
                 " did not end within the limit of ", decimal(limits_.prepare_s),
                 " s for import and prepare; look for an endless loop, or import, compile or "
                 "allocate less");
    case Step::capture:
      return cat("kernel_fn of shape ", shapes_[told_ - 3], " did not end within the limit of ",
                 decimal(limits_.capture_s),
                 " s for kernel_fn of all shapes; look for an endless loop in a kernel or on the "
                 "host, or do less on the host in kernel_fn: compile and tune in prepare");
    case Step::export_:
      return cat("the export of the recording did not end within ", decimal(kExportSeconds),
                 " s; keep less device memory filled, and start nothing that goes on after "
                 "kernel_fn");
  }
  KJ_CHECK(false);
  return "";
}

std::vector<Phase> CaptureSteps::phases() const {
  std::vector<Phase> seen = ended_;
  if (step() != Step::start) seen.push_back({kNames[static_cast<int>(step())], seconds()});
  return seen;
}

}  // namespace kjudge
