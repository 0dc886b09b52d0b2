// SPDX-License-Identifier: Apache-2.0
#include "web/server/rate_limit.h"

#include <algorithm>
#include <cmath>

namespace kjudge {

RateLimit::RateLimit(double burst, double per_s) : burst_(burst), per_s_(per_s) {}

int RateLimit::wait_s(const std::string& who, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  Account& account = accounts_.try_emplace(who, Account{burst_, now}).first->second;
  const double rested_s = std::chrono::duration<double>(now - account.at).count();
  account.left = std::min(burst_, account.left + rested_s * per_s_);
  account.at = now;
  if (account.left >= 1) {
    account.left -= 1;
    return 0;
  }
  return std::max(1, static_cast<int>(std::ceil((1 - account.left) / per_s_)));
}

}  // namespace kjudge
