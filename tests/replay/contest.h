// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "challenge/challenge.h"
#include "driver/driver.h"
#include "file.h"
#include "replay/replay.h"

namespace kjudge {

// Calls `test` for each driver that this machine has; only that of KJUDGE_TEST_DRIVER where it is
// set.
void on_each_driver(const std::function<void(DriverKind)>& test);

// A challenge and bundles for it, made without a recorder: out[i] = 2 * in[i] + 1 with the kernels
// of tests/replay/kernels.cc.
struct ArmCode {
  std::vector<std::string> kernels;  // a chain; "memset" and "memcpy" move the output through state
  enum Extra { nothing, state, other_output, inout } extra = nothing;  // the fourth argument
  bool variable = false;           // the module's variable is recorded
  bool hashed = true;              // output_hashes are those of a replay; else zero
  std::string changed;             // one fact recorded wrong: "registers", "parameters", "shape"
  std::uint64_t unused_state = 0;  // bytes of recorded memory that no kernel needs
};

class Contest {
 public:
  explicit Contest(DriverKind kind, std::vector<std::int64_t> sizes = {100'003, 1'000'000});

  const Driver& driver() const { return driver_; }
  const TempDir& folder() const { return folder_; }
  // Adds a bundle; its regions lie elsewhere than those of any other.
  std::filesystem::path make(const ArmCode& code, bool is_reference = false);

  // The challenge; `inout` adds an input y that kernels may write.
  Challenge challenge;
  bool inout = false;
  ReplayOptions options;

  // The bundles of an evaluation, for several of the same.
  struct Bundles {
    std::filesystem::path reference, baseline, submission;
  };
  Evaluation replay(const Bundles& bundles, const ReportProgress& progress = {});
  // measure() with the baseline "right" unless another is given.
  Evaluation judge(const ArmCode& submission, const ArmCode& baseline = {{"right"}},
                   const ArmCode& reference = {{"reference"}}, const ReportProgress& progress = {});
  void with_inout();

 private:
  std::vector<std::uint64_t> hashes(const Bundle& bundle, std::size_t shape);

  const Driver& driver_;
  TempDir folder_{"kjudge-replay-test"};
  std::uint64_t next_address_ = kArenaBase + kRegionGranule;
  int bundles_ = 0;
};

// Child processes of this one, of all its threads.
int children_of_ours();

}  // namespace kjudge
