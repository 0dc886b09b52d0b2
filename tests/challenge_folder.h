// SPDX-License-Identifier: Apache-2.0
#pragma once

// A challenge folder for tests, with a challenge.json that has every field.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "challenge/challenge.h"
#include "file.h"
#include "json_faults.h"

namespace kjudge {

inline constexpr std::string_view kFull = R"({
  "format": "kjudge-challenge/1",
  "name": "scaled-gather",
  "version": 3,
  "title": "Gather rows and scale them",
  "author": "Ada",
  "bounty": "a mug",
  "target_us": 12.5,
  "cache": "hot",
  "reference": "recorded", "publish_code": "licensed",
  "compiler_flags": ["-O3", "-ffast-math"],
  "hidden": ["notes"], "gpus_per_evaluation": 2,
  "limits": {"build_s": 60, "prepare_s": 61, "capture_s": 62, "replay_s": 0.5,
             "memory_bytes": 1073741824, "output_bytes": 65536, "submission_bytes": 1048576,
             "bundle_bytes": 2097152},
  "rates": [{"device": "H200", "bytes_per_s": 4.8e12,
             "operations_per_s": {"float16": 9.89e14}},
            {"device": "H100"}],
  "tensors": {
    "inputs": [
      {"name": "x", "dtype": "$dtype", "shape": ["rows", "columns"]},
      {"name": "index", "dtype": "int32", "shape": ["picked"], "inout": true,
       "generator": {"kind": "integers", "low": 0, "high": 9}},
      {"name": "bias", "dtype": "float32", "shape": [1, "columns"],
       "generator": {"kind": "constant", "value": 0.5}}
    ],
    "outputs": [
      {"name": "y", "dtype": "$dtype", "shape": ["picked", "columns"],
       "expected_dtype": "float32", "overflow": "infinity",
       "checks": [
         {"kind": "close", "rtol": 0.001, "atol": 1e-6, "max_mismatched": 0.01},
         {"kind": "exact", "signed_zero": true, "max_mismatched": 0, "dtype": "float16"},
         {"kind": "close", "rtol": 0.5, "atol": 1, "dtype": "float64"},
         {"kind": "rel_l2", "limit": 0.25, "per": "tensor", "quantile": 0.75, "dtype": "float64"},
         {"kind": "cosine", "min": 0.75, "per": "row", "dtype": "float64"},
         {"kind": "row_bound", "rtol": 0.5, "c": 0.25, "dtype": "float64"},
         {"kind": "codes", "same": 0.5, "within": 2, "dtype": "float64"},
         {"kind": "versus_baseline", "factor": 3, "floor": 0.25, "dtype": "float64"},
         {"kind": "custom", "limit": 0.5, "per": "evaluation", "dtype": "float64"}
       ]},
      {"name": "order", "dtype": "int64", "shape": ["picked"], "tf32": false}
    ]
  },
  "regimes": [
    {"name": "nominal", "pairs_per_round": 4},
    {"name": "large", "pairs_per_round": 1,
     "generators": {"x": {"kind": "uniform", "low": -1000, "high": 1000},
                    "bias": {"kind": "normal", "mean": 2, "deviation": 3}}}
  ],
  "shapes": [
    {"arch": "x86_64", "dtype": "float32", "dims": {"rows": 10, "columns": 20, "picked": 5},
     "scalars": {"scale": 1.5, "steps": 3, "round": true}, "floor_us": 1.25},
    {"name": "big", "arch": "sm_*", "dtype": "float16",
     "dims": {"rows": 4096, "columns": 1000, "picked": 7},
     "scalars": {"scale": 0.5, "steps": 4, "round": false},
     "read_bytes": 33, "written_bytes": 70000000000, "operations": 5,
     "regimes": [{"name": "only", "pairs_per_round": 5}]}
  ],
  "tests": [
    {"arch": "x86_64", "dtype": "float32", "dims": {"rows": 1, "columns": 1, "picked": 1},
     "scalars": {"scale": 1.0, "steps": 0, "round": true}}
  ]
})";

// A challenge folder; file() writes into it.
class Folder {
 public:
  Folder() {
    for (const char* name :
         {"TASK.md", "reference.py", "baseline.py", "submission.py", "check.py"}) {
      file(name, name);
    }
    file("challenge.json", kFull);
  }
  std::filesystem::path path() const { return directory_.path(); }
  void file(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name, std::ios::binary) << text;
  }
  Challenge read() const { return read_challenge(path()); }
  // The message after the folder's name.
  std::string error() const {
    const std::string message = json_faults::message_of([&] { read(); });
    const std::string prefix = path().string() + "/";
    return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
  }

 private:
  TempDir directory_;
};

// kFull with the first `from` replaced.
inline std::string with(std::string_view from, std::string_view to) {
  std::string text(kFull);
  const auto at = text.find(from);
  REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

inline std::string error_with(std::string_view from, std::string_view to) {
  const Folder folder;
  folder.file("challenge.json", with(from, to));
  return folder.error();
}

}  // namespace kjudge
