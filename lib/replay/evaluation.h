// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "challenge/challenge.h"
#include "challenge/variant_request.h"
#include "check/check.h"

namespace kjudge {

// The facts of an evaluation, as measured. Scores are derived from them (score/score.h) and never
// change them.

enum class Verdict {
  accepted,
  wrong_result,
  build_error,
  runtime_error,
  refused,
  timeout,
  out_of_memory,
  gpu_fault,
  judge_error,
};
std::string_view name(Verdict verdict);
std::optional<Verdict> parse_verdict(std::string_view text);

// The numbered version of how kjudge measures.
inline constexpr int kMethod = 1;

inline constexpr int kRounds = 6;
inline constexpr int kPairsPerRound = 5;

enum class ArmName : std::uint8_t { baseline = 0, submission = 1 };
std::string_view name(ArmName arm);

// The four clocks of one timed replay.
struct Clocks {
  double event_ns = 0;       // between the two events
  double stamp_ns = 0;       // between the two stamp kernels
  double host_ns = 0;        // worker: from unblock to stream synchronized
  double supervisor_ns = 0;  // supervisor: from go to done
};

// One arm of one pair: m replays on m fresh inputs. Its time is the median of event_ns.
struct ArmTimes {
  std::vector<Clocks> replays;
  double time_ns() const;
};

struct Pair {
  std::string regime;
  ArmName first = ArmName::baseline;  // who ran first
  std::array<ArmTimes, 2> arms;       // by ArmName
  int voids = 0;                      // attempts thrown away before this one
  std::vector<std::string> void_causes;
  double ratio() const;  // baseline time / submission time
};

struct RoundFacts {
  double null_graph_ns = 0;
  double clock_tick_ns = 0;
  std::vector<Pair> pairs;
  // The GPU after the last of them; absent where it does not say, and on the host driver.
  std::optional<double> clock_mhz;  // of a multiprocessor, by clock64 against globaltimer
  std::optional<double> power_w, temperature_c;
  std::optional<std::vector<std::string>> throttle_reasons;
};

struct ShapeFacts {
  std::string name;
  bool timed = true;
  int replays_per_arm = 1;  // m
  std::optional<double> floor_ns;
  std::optional<FloorFrom> floor_from;  // where there is one; results of old versions do not say
  Verdict verdict = Verdict::accepted;
  std::string message;  // for the contestant; empty when accepted
  std::optional<CheckFailure> failure;
  std::vector<RoundFacts> rounds;
};

struct Phase {
  std::string name;  // "build", "prepare", "capture", "fill", "reference", "restore", ...
  double seconds = 0;
};

// The same recording measured on another device of the node, apart: on inputs and in rounds of its
// own. The inputs are those of an evaluation with the id ID/N, where this is the Nth device.
struct OnDevice {
  std::string device;  // as Evaluation has it
  Verdict verdict = Verdict::judge_error;
  std::string message;
  std::vector<ShapeFacts> shapes;
};

struct Evaluation {
  std::string id;  // UUID
  std::string challenge;
  int challenge_version = 1;
  std::string challenge_sha256;
  VariantRequest variant;  // the part of the challenge that was asked for; none: all of it
  std::string submission;  // path or name as handed in
  std::string submission_sha256;
  // Of the recordings that were replayed; absent where none was.
  std::optional<std::string> baseline_sha256, reference_sha256, bundle_sha256;
  int method = kMethod;
  std::string kjudge_version;
  std::string driver;  // "host 1.0", "cuda 13.0"
  std::string device;  // name, with UUID for a GPU
  std::string arch;
  std::string node;
  std::string sandbox;  // where the submission's code ran; empty: without one
  std::string trust;    // "device"; "process" for the host driver, whose kernels are host code
  std::string started;  // UTC, RFC 3339
  CacheMode cache = CacheMode::cold;
  std::uint64_t peak_bytes = 0;
  Verdict verdict = Verdict::judge_error;
  std::string message;  // one paragraph: what happened and what to do
  std::string log;      // the contestant's own output and traceback, cut to the limit
  std::vector<ShapeFacts> shapes;
  std::vector<OnDevice> others;  // where the challenge wants several devices; verdict is of all
  std::vector<Phase> phases;     // wall seconds by step
};

}  // namespace kjudge
