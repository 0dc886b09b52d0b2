// SPDX-License-Identifier: Apache-2.0
#include "score/score.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "error.h"
#include "file.h"
#include "json.h"
#include "judge/report.h"
#include "left_out.h"
#include "score/explain.h"
#include "score/result_json.h"
#include "score/scores_json.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

struct ScoreOptions {
  bool json = false, explain = false;
  std::vector<std::string> paths;
};

// What a JSON file says it is; empty where it is no JSON, or does not say.
std::string format_of(const fs::path& file) {
  try {
    const Json json = parse_json(read_file(file), file.native(), Fault::malformed);
    const auto* object = std::get_if<Json::Object>(&json.value);
    if (object == nullptr) return {};
    for (const JsonMember& member : *object) {
      const auto* text = std::get_if<std::string>(&member.value.value);
      if (member.name == "format" && text != nullptr) return *text;
    }
  } catch (const Error&) {  // not for people: the file is passed over, and counted
  }
  return {};
}

// Whether a file of a folder is to be scored. What is called result.json is, so that a broken one
// is an error; results under other names say what they are.
bool is_result(const fs::path& file) {
  if (!fs::is_regular_file(file)) return false;
  return file.filename() == "result.json" ||
         (file.extension() == ".json" && format_of(file).starts_with("kjudge-result/"));
}

// Folder by folder in the order of the bytes of their names, which is the same on every machine.
std::vector<fs::path> results_in(const fs::path& folder) {
  std::vector<fs::path> found, others;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    if (item.is_directory()) continue;
    (is_result(item.path()) ? found : others).push_back(item.path());
  }
  if (found.empty()) throw Error(Fault::usage, cat(folder.string(), ": no results in this folder"));
  std::sort(found.begin(), found.end());
  if (!others.empty()) {
    const fs::path& first = *std::min_element(others.begin(), others.end());
    say(cat(folder.string(), ": passed over ", others.size(),
            others.size() == 1 ? " file that is no result, "
                               : " files that are no results, the first of them ",
            first.lexically_relative(folder).string()));
  }
  return found;
}

std::vector<fs::path> result_files(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    const std::vector<fs::path> found = results_in(path);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

int score_command(const ScoreOptions& options) {
  std::vector<ScoredFile> scores;
  LeftOut left_out;  // one bad file keeps nobody from the other scores
  const auto report = left_out.report();
  bool all_accepted = true;
  for (const fs::path& file : result_files(options.paths)) {
    Evaluation evaluation;
    try {
      evaluation = result_from_json(read_file(file), file);
    } catch (const Error& error) {
      report(error);
      continue;
    }
    all_accepted = all_accepted && evaluation.verdict == Verdict::accepted;
    if (options.json) {
      scores.push_back(scored_file(file.string(), evaluation));
    } else {
      std::cout << file.string() << "\n"
                << (options.explain ? printable(explanation(evaluation))
                                    : evaluation_table(evaluation))
                << "\n";
    }
  }
  if (options.json) {
    std::cout << print_json(scores_json(scores));
  }
  if (left_out.status() != exit_done) return left_out.status();
  return all_accepted ? exit_done : exit_not_accepted;
}

}  // namespace

void add_score(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ScoreOptions>(
      app, "score", "Compute scores again from the times in results; needs no device", command);
  command->add_option("results", options->paths, "Result files, or folders with results in them")
      ->required()
      ->type_name("PATH");
  command
      ->add_flag("--explain", options->explain,
                 "Show how each score follows from the times, in numbers")
      ->excludes("--json");
  command->callback([=, &status] { status = score_command(*options); });
}

}  // namespace kjudge
