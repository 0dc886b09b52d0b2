// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "driver/driver.h"
#include "record/memory.h"
#include "record/modules.h"
#include "record/rules.h"

namespace kjudge {

// What happened while a capture of the harness was open. Work is outside when its stream is not
// captured: it is done at once, and by no replay.
struct CaptureReport {
  std::uint64_t outside_work = 0;  // calls
  std::string first_outside;       // what the first of them was
  bool own_capture = false;
};

class CaptureWatch {
 public:
  explicit CaptureWatch(const Driver& driver) : driver_(driver) {}

  void open(CUstream stream);
  CaptureReport close();
  bool is_open() const { return open_; }

  // Before a call that gives `stream` (null: the legacy one; CU_STREAM_PER_THREAD resolved) work to
  // do. Whether it is outside the open capture, and so was counted; `what` names it then.
  bool outside(CUstream stream, const std::function<std::string()>& what);
  // The driver did not take the last call that this thread had counted.
  void not_done();
  // After a launch on `stream` that was given these: notes them for the node that it became, if
  // any.
  void launched(CUstream stream, std::span<const CUlaunchAttribute> attributes);
  // Whether the launch that became `node`, in the capture last opened, was given attribute `id`.
  // The driver does not tell what was set from what it reads when nothing was.
  bool was_given(CUgraphNode node, CUlaunchAttributeID id) const;
  // The submission begins or ends a capture itself, while one of the harness is open or not.
  void own_capture();
  // Whether it did since the last call of this, or the last close.
  bool take_own_capture();

 private:
  const Driver& driver_;
  std::atomic<bool> open_{false};
  mutable std::mutex mutex_;
  CaptureReport report_;
  std::set<std::pair<CUgraphNode, CUlaunchAttributeID>> given_;
  bool own_capture_ = false;
};

// All that the hooks note, of one process. Made when a driver entry is first looked up; never
// destroyed, for the driver calls back until the process is gone.
struct Observed {
  explicit Observed(const Driver& driver) : memory(driver), watch(driver) {}

  RecordedMemory memory;
  RecordedModules modules;
  CaptureWatch watch;

  std::mutex mutex;
  std::map<int, std::uint64_t> limits;          // cuCtxSetLimit
  std::map<int, std::uint64_t> unasked_limits;  // as they were before
  // Last call that the recorder had to fail: what the contestant's exception comes from.
  struct CallFailure {
    CUresult result;
    std::string message;
    std::optional<Rule> rule;  // that the call broke
  };
  std::optional<CallFailure> call_failure;
};

}  // namespace kjudge
