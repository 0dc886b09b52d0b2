// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "error.h"
#include "judge/report.h"
#include "left_out.h"
#include "score/result_json.h"
#include "store/judgements.h"
#include "store/results.h"

namespace kjudge {
namespace {

struct ShowOptions {
  bool json = false;
  std::string what, results = ".";
};

struct Shown {
  Evaluation evaluation;
  std::vector<std::string> invalid;  // why it does not count
};

Shown find_evaluation(const ShowOptions& options, LeftOut& left_out) {
  if (!options.what.empty() && options.what.size() < 10 &&
      options.what.find_first_not_of("0123456789") == std::string::npos) {
    const ResultsDirectory results(options.results);
    const auto submission = results.submission(std::stoi(options.what));
    if (auto evaluation = latest_evaluation(submission)) {
      const auto invalidations = standing(
          read_records(results, kInvalidationRecord, invalidation_table(), left_out.report()));
      auto reasons = invalid_reasons(invalidations, selectable(submission.identity, *evaluation));
      return {std::move(*evaluation), std::move(reasons)};
    }
    throw Error(Fault::usage, cat("submission ", options.what, ": waits to be judged"));
  }
  // A file's name has a dot or a folder, so that a slip in the number is not taken for one.
  if (options.what.find_first_of("./") == std::string::npos &&
      !std::filesystem::exists(options.what)) {
    throw Error(Fault::usage,
                cat(options.what, ": neither the number of a submission nor a result file"));
  }
  return {result_from_json(read_file(options.what), options.what), {}};
}

}  // namespace

void add_show(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ShowOptions>(
      app, "show", "Show one evaluation: its shapes, failures and log", command);
  command->add_option("what", options->what, "Number of a submission, or a result file")
      ->type_name("NUMBER|FILE")
      ->required();
  command->add_option("--results", options->results, "Results directory that the number is in")
      ->type_name("FOLDER")
      ->default_str("the current folder")
      ->envname("KJUDGE_RESULTS");
  command->callback([=, &status] {
    LeftOut left_out;
    const auto [evaluation, invalid] = find_evaluation(*options, left_out);
    for (const std::string& reason : invalid) {
      const std::string line = cat("this evaluation does not count: ", reason);
      if (options->json) {
        say(line);
      } else {
        std::cout << printable(line) << "\n";
      }
    }
    std::cout << (options->json ? result_to_json(evaluation) : evaluation_page(evaluation));
    status = left_out.status();
  });
}

}  // namespace kjudge
