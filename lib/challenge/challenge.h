// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "driver/kernels.h"
#include "tensor.h"

namespace kjudge {

// A challenge folder as read from challenge.json, every shape resolved: dimensions replaced by
// numbers, defaults filled in. Field list and meaning: kjudge-challenge(5).

// Where an input's values come from, as FillParams has it.
struct Generator {
  FillKind kind = fill_normal;
  double a = 0, b = 1, c = 0;
  std::uint64_t row = 0, size = 0;
  DType other = DType::float64;
  std::string key_of;  // the input whose key it is drawn with; empty: its own
  std::string source;  // the input it reads, which is filled before; empty: none
};

// One named set of input values. A shape's regimes share the pairs of a round in fixed counts.
struct Regime {
  std::string name;  // "nominal", "large", ...
  int pairs_per_round = 5;
  std::vector<Generator> generators;  // one per input of the shape, in its order
};

enum class CheckKind { exact, close, rel_l2, cosine, row_bound, codes, versus_baseline, custom };
std::string_view name(CheckKind kind);

// What a measure is taken of: every row, the last dimension, or the tensor as one.
enum class Per { row, tensor };

struct Check {
  CheckKind kind = CheckKind::close;
  double rtol = 0, atol = 0;
  double max_mismatched = 0;  // fraction of the elements
  bool signed_zero = false;
  double limit = 0;  // of rel_l2 and custom, the error; of cosine, the least similarity
  Per per = Per::row;
  double quantile = 1;       // of rel_l2: the share of the rows that must be within the limit
  double c = 0;              // of row_bound: error allowed as a share of the row's root mean square
  double same = 0.99;        // of codes: the share that must be equal
  std::uint32_t within = 1;  // of codes: steps that any may be off
  double factor = 0;         // of versus_baseline: of the baseline's row error, ...
  double floor = 0;          // ... or this relative L2 error, whichever is larger
  bool over_evaluation = false;  // of custom: the limit is of the mean over all replays
};

enum class Overflow { infinity, saturate };

struct InputSpec {
  TensorSpec tensor;
  bool inout = false;
};

struct OutputSpec {
  TensorSpec tensor;
  DType expected_dtype = DType::float64;  // what reference.py writes
  Overflow overflow = Overflow::infinity;
  std::vector<Check> checks;  // all must hold; never empty
};

struct Scalar {
  std::string name;
  std::variant<std::int64_t, double, bool> value;
};

// What every right kernel has to do for a shape.
struct Work {
  std::uint64_t read_bytes = 0, written_bytes = 0;  // of memory
  std::uint64_t operations = 0;                     // of the shape's dtype
};

// What a floor was made of.
enum class FloorFrom {
  challenge,  // it says the time itself
  rates,      // the shape's work, and what the challenge says that the device does at most
  measured,   // the shape's work, and what doctor measured on the device
};
std::string_view name(FloorFrom from);

// A shape, or a test: checked but not timed.
struct Shape {
  std::string name;
  bool timed = true;
  std::string arch;   // "x86_64" runs on the host driver, "sm_*" or "sm_90" on a GPU
  std::string dtype;  // the variant it belongs to, "float32"
  std::map<std::string, std::int64_t> dims;
  std::vector<Scalar> scalars;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<Regime> regimes;     // pairs_per_round sum to 5 for a timed shape
  std::optional<double> floor_ns;  // faster than this is flagged
  FloorFrom floor_from = FloorFrom::challenge;
  std::optional<Work> work;  // only where floor_ns is not in the file
};

enum class CacheMode { cold, hot };

// How reference.py gives expected outputs: its kernels recorded once and replayed, or Python called
// for every replay.
enum class ReferenceMode { recorded, python };

// Whose code may be shown to others: nobody's, that of submissions that name a license,
// everybody's.
enum class PublishCode { never, licensed, all };

// Each limit has its verdict: see kjudge-challenge(5).
struct ChallengeLimits {
  double build_s = 300, prepare_s = 300, capture_s = 120, replay_s = 10;
  std::uint64_t memory_bytes = 0;        // of the arena; 0: what the device has
  std::uint64_t output_bytes = 1 << 20;  // of stdout and stderr kept
  std::uint64_t submission_bytes = 16 << 20;
  std::uint64_t bundle_bytes = std::uint64_t{16} << 30;  // of the recording's file
};

// What the devices whose name contains `device` do at most, by their maker.
struct DeviceRates {
  std::string device;
  std::optional<double> bytes_per_s;                             // of memory
  std::vector<std::pair<std::string, double>> operations_per_s;  // by dtype
};

struct Challenge {
  std::filesystem::path folder;
  std::string name;  // [a-z0-9-]+
  int version = 1;
  std::string title, author, bounty;
  std::optional<double> target_ns;
  CacheMode cache = CacheMode::cold;
  ReferenceMode reference = ReferenceMode::recorded;
  PublishCode publish = PublishCode::never;
  int gpus_per_evaluation = 1;
  std::vector<std::string> compiler_flags;  // that a contestant may choose
  std::vector<std::string> hidden;          // files and folders that are no part of the challenge
  ChallengeLimits limits;
  std::vector<DeviceRates> rates;
  std::vector<Shape> shapes;  // timed first, then tests, each in the file's order
  std::string sha256;         // of challenge_files(): all that a contestant's evaluation depends on
};

inline constexpr std::size_t kMostManifestBytes = 16 << 20, kMostFileBytes = 256 << 20;

// Reads FOLDER/challenge.json and checks that every file it needs is there. Fault::package with
// file, field and what was expected.
Challenge read_challenge(const std::filesystem::path& folder);

// What a challenge consists of: the files of its folder, with '/', in the order of the bytes of
// their names, without `hidden`, names that begin with a dot and __pycache__. Fault::package for
// links, devices and names that sha256sum writes in another way.
std::vector<std::string> challenge_files(const std::filesystem::path& folder,
                                         const std::vector<std::string>& hidden);

// Passes each of those files to `take`. Fault::package for one larger than kMostFileBytes, and at
// the end when they are not what read_challenge read: somebody writes to them.
void read_challenge_files(
    const Challenge& challenge,
    const std::function<void(const std::string& name, std::string bytes)>& take);

// Whether a file with these bytes is executable in a package and in copies of a challenge: what a
// system can start, a script that begins with "#!" or an ELF image. Not as it is in the folder: a
// challenge is the same whatever a checkout or a umask makes of modes.
bool is_program(std::string_view bytes);

// Copies those files, as read_challenge_files reads them, into the new folder `to`, with mode 0644,
// or 0755 for programs.
void copy_challenge(const Challenge& challenge, const std::filesystem::path& to);

// Whether `arch` ("x86_64", "sm_90") runs it.
bool runs_on(const Shape& shape, const std::string& arch);
// The challenge with only the shapes that `arch` runs. Fault::usage when none.
Challenge for_arch(const Challenge& challenge, const std::string& arch);

// Key of one input tensor's values: the first 8 bytes of SHA-256 over all of these. The secret
// never leaves the organizer's side; with it the same evaluation can be made again.
std::uint64_t input_key(const std::string& secret, const std::string& evaluation,
                        const std::string& shape, std::uint64_t replay, const std::string& tensor);

}  // namespace kjudge
