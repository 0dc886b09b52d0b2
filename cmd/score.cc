// SPDX-License-Identifier: Apache-2.0
#include "score/score.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "error.h"
#include "file.h"
#include "judge/report.h"
#include "options.h"
#include "score/result_json.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

struct ScoreOptions {
  bool json = false;
  std::vector<std::string> paths;
};

std::vector<fs::path> result_files(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<fs::path> found;
    for (const auto& item : fs::recursive_directory_iterator(path)) {
      if (item.path().filename() == "result.json") found.push_back(item.path());
    }
    if (found.empty()) throw Error(Fault::usage, cat(path, ": no result.json in this folder"));
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

int score_command(const ScoreOptions& options) {
  Json::List scores;
  bool all_accepted = true;
  for (const fs::path& file : result_files(options.paths)) {
    const Evaluation evaluation = result_from_json(read_file(file), file);
    all_accepted = all_accepted && evaluation.verdict == Verdict::accepted;
    if (options.json) {
      scores.push_back(score_json(file.string(), evaluation));
    } else {
      std::cout << file.string() << "\n" << evaluation_table(evaluation) << "\n";
    }
  }
  if (options.json) {
    std::cout << print_json(Json{Json::Object{{"format", Json{std::string("kjudge-scores/1")}},
                                              {"scores", Json{std::move(scores)}}}});
  }
  return all_accepted ? exit_done : exit_not_accepted;
}

}  // namespace

void add_score(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ScoreOptions>(
      app, "score", "Compute scores again from the times in results; needs no device", command);
  command->add_option("results", options->paths, "Result files, or folders that hold result.json")
      ->required()
      ->check(CLI::ExistingPath);
  command->callback([=, &status] { status = score_command(*options); });
}

}  // namespace kjudge
