// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "json_fields.h"
#include "store/results.h"
#include "store/selection.h"

namespace kjudge {

// A results directory as data for others: JSON, a line for each thing, compressed by zstd. Who
// handed in is in it by the name of the run only; code, its log and its machine code are in it
// where the challenge and the submission allow that (may_publish); secrets never are.

enum class ExportKind {
  begin,       // the first line: what the export is of
  challenge,   // before the first evaluation of it
  submission,  // before its evaluations
  evaluation,
  profile,  // after its evaluation
  cubin,    // after the first evaluation that has it
  bar,
  invalidation,
  playoff,
  end,  // the last line: without it the file is cut off
};

struct ExportedFile {
  std::string name;
  std::optional<std::string> text, base64;  // one of them: base64 for what is no UTF-8
};

struct ExportLine {
  ExportKind kind = ExportKind::begin;
  int submission = 0, evaluation = 0, number = 0;
  std::optional<std::string> made, kjudge_version;
  std::optional<Selection> selection;
  std::optional<std::string> name, sha256, task;
  int version = 0;
  std::optional<Json> challenge;
  std::optional<std::string> id, run, received, label, license;
  std::optional<VariantRequest> variant;
  bool keep = true, publish = true;
  std::optional<std::vector<ExportedFile>> files;
  std::optional<std::string> device_kind;
  std::optional<Json> result;
  std::vector<std::string> invalid, cubins;
  std::optional<Json> profile;
  std::optional<std::string> base64;
  std::optional<Json> record;
  std::vector<Json> results;
  std::optional<int> lines;
};
const FieldTable<ExportLine>& export_table();

struct ExportOptions {
  Selection selection;
  bool cubins = true;
};
struct ExportCounts {
  std::size_t submissions = 0, evaluations = 0, profiles = 0, cubins = 0;
  std::vector<std::string> left_out;  // for who prints them: what was reported
};
// What `kjudge export --json` prints.
const FieldTable<ExportCounts>& exported_table();
// Writes `output`, which appears whole. What cannot be read is reported and left out.
ExportCounts export_results(const ResultsDirectory& results, const ExportOptions& options,
                            const std::filesystem::path& output,
                            const ResultsDirectory::Report& report);

}  // namespace kjudge
