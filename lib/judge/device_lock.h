// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "file.h"
#include "judge/device.h"
#include "replay/replay.h"

namespace kjudge {

// One evaluation at a time on a device, from the capture to the last replay, over all users of the
// machine. Held as a name in the abstract socket namespace: it leaves no file, needs no permission,
// and the kernel frees it however the holder ends.
class DeviceLock {
 public:
  struct Holder {
    int pid;
    unsigned uid;
  };
  // Told who has the device, where that is known.
  using Waiting = std::function<void(const std::optional<Holder>&)>;

  // Waits while another process has the device named `device`; `waiting` is called about five times
  // a second meanwhile and may throw.
  DeviceLock(const std::string& device, const Waiting& waiting);

 private:
  Fd socket_;
};

// The lock of a device as evaluations take it.
DeviceLock lock_device(const DeviceIdentity& device, int number, const ReportProgress& progress);

}  // namespace kjudge
