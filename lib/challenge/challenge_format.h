// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "challenge/challenge.h"
#include "json_fields.h"

namespace kjudge {

// challenge.json as it stands in the file, before dims, dtypes and defaults are resolved.

using DimFile = std::variant<std::int64_t, std::string>;  // a size, or the name of one of the dims
template <class V>
using Named = std::vector<std::pair<std::string, V>>;

// A generator before the dims and the other inputs that it names are looked up. Each field is of
// the kinds that have it in the format.
struct GeneratorFile {
  FillKind kind = fill_normal;
  double mean = 0, deviation = 1;
  double low = 0, high = 0;
  double value = 1;
  double probability = 0.5;
  double exponent = 1;
  double skew = 0.5;
  bool scattered = false, power_of_two = false;
  std::int64_t least = 0, rank = 1;
  double unused = -1;
  std::optional<DimFile> total, most, blocks, block_size, block;
  std::optional<std::string> of, lengths;
};

struct InputFile {
  std::string name;
  std::optional<DType> dtype;  // nullopt: the shape's
  std::vector<DimFile> shape;
  bool inout = false;
  std::optional<GeneratorFile> generator;
};

struct CheckFile {
  CheckKind kind = CheckKind::close;
  std::optional<DType> dtype;  // only for shapes of this dtype
  Check check;
};

struct OutputFile {
  std::string name;
  std::optional<DType> dtype;
  std::vector<DimFile> shape;
  std::optional<DType> expected_dtype;
  Overflow overflow = Overflow::infinity;
  bool tf32 = false;
  std::vector<CheckFile> checks;
};

struct TensorsFile {
  std::vector<InputFile> inputs;
  std::vector<OutputFile> outputs;
};

struct RegimeFile {
  std::string name;
  int pairs_per_round = 5;
  Named<GeneratorFile> generators;
};

struct ShapeFile {
  std::optional<std::string> name;
  std::string arch;
  DType dtype = DType::float32;
  Named<std::int64_t> dims;
  Named<std::variant<std::int64_t, double, bool>> scalars;
  std::optional<double> floor_us;
  std::optional<std::uint64_t> read_bytes, written_bytes, operations;
  std::optional<std::vector<RegimeFile>> regimes;
};

struct ChallengeFile {
  std::string name;
  int version = 1;
  std::string title, author, bounty;
  std::optional<double> target_us;
  CacheMode cache = CacheMode::cold;
  ReferenceMode reference = ReferenceMode::recorded;
  PublishCode publish = PublishCode::never;
  int gpus_per_evaluation = 1;
  std::vector<std::string> compiler_flags, hidden;
  ChallengeLimits limits;
  std::vector<DeviceRates> rates;
  TensorsFile tensors;
  std::vector<RegimeFile> regimes = {{"nominal", 5, {}}};
  std::vector<ShapeFile> shapes, tests;
};

// The name of a dtype, as it is written.
Kind<std::string> dtype_word_kind();

// The format, all of it: kjudge-challenge(5) in code.
const FieldTable<ChallengeFile>& challenge_table();

}  // namespace kjudge
