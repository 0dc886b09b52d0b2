// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace kjudge {

// So many requests of each person in a time, with a burst after a rest. Any thread may ask.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  // `burst` at once, and `per_s` of them come back each second.
  RateLimit(double burst, double per_s);
  // 0: now, and it counts. Else the whole seconds after which to come again.
  int wait_s(const std::string& who, Clock::time_point now = Clock::now());

 private:
  struct Account {
    double left;
    Clock::time_point at;
  };
  const double burst_, per_s_;
  std::mutex mutex_;
  std::map<std::string, Account> accounts_;  // one for each good token's owner, so bounded
};

}  // namespace kjudge
