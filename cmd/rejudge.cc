// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <iostream>
#include <optional>

#include "error.h"
#include "judge/rejudge.h"
#include "judge/rejudged_json.h"
#include "judge/report.h"
#include "progress.h"
#include "score/result_json.h"
#include "score/score.h"
#include "select.h"
#include "store/challenges.h"

namespace kjudge {
namespace {

struct RejudgeOptions : SelectOptions {
  DeviceOptions device;
  std::string reason;
  int set = 0;
  bool run = false, apply = false, drop = false, list = false, from_files = false, unsafe = false;
};

std::string score_text(const std::optional<Evaluation>& evaluation) {
  if (!evaluation) return "not judged yet";
  const Score scored = score(*evaluation);
  if (!scored.counts) return std::string(name(evaluation->verdict));
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%.3fx [%.3f, %.3f]", scored.speedup, scored.interval.low,
                scored.interval.high);
  return text.data();
}

std::string change_text(const Evaluation& old, const std::optional<Evaluation>& made) {
  if (!made) return "";
  const Score before = score(old), after = score(*made);
  if (!before.counts || !after.counts) return old.verdict == made->verdict ? "" : "verdict";
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%+.1f %%", 100 * (after.speedup / before.speedup - 1));
  return text.data();
}

// Old and new side by side.
void print_set(const RejudgeOptions& options, const ResultsDirectory& results,
               const RejudgementSet& set) {
  std::vector<RejudgedPair> pairs;
  std::vector<std::vector<std::string>> rows = {
      {"submission", "run", "old", "new", "change", "partial"}};
  bool partial = false;
  for (const Rejudged& one : set.record().evaluations) {
    const auto path = results.path() / "submissions" / std::to_string(one.submission) /
                      "evaluations" / std::to_string(one.evaluation) / "result.json";
    try {
      const Evaluation old = result_from_json(read_file(path), path);
      const auto made = set.result(one.submission);
      const std::string left_out =
          made ? "" : why_not_again(results.submission(one.submission), one.evaluation);
      rows.push_back({std::to_string(one.submission), printable(one.run), score_text(old),
                      left_out.empty() ? score_text(made) : "left out", change_text(old, made),
                      old.variant.all_shapes() ? "" : request_text(old.variant)});
      partial = partial || !old.variant.all_shapes();
      pairs.push_back({one, old, made, left_out});
    } catch (const Error& error) {
      if (error.fault() == Fault::bug) throw;
      say(error.what());
    }
  }
  if (options.json) {
    std::cout << print_json(rejudged_json(set, pairs));
  } else {
    for (auto& row : rows) row.resize(row.size() - (partial ? 0 : 1));
    std::cout << aligned(rows);
  }
}

int run_set(const RejudgeOptions& options, const ResultsDirectory& results,
            const RejudgementSet& set) {
  const Rejudgement& record = set.record();
  DeviceOptions device = options.device;
  device.challenge = options.selection.challenge;
  const auto kept = kept_challenge_folder(results, record.challenge, record.challenge_version);
  if (device.challenge.empty()) {
    device.challenge = std::filesystem::exists(kept) ? kept.string() : record.challenge;
  }
  const auto [challenge, driver] = choose(device, "");
  JudgeAgainOptions again;
  again.cache = cache_directory();
  again.device = options.device.device;
  if (!options.unsafe) {
    again.sandbox = sandbox_when_needed(
        {driver, options.device.device, {options.results, challenge.folder, cache_directory()}});
  }
  again.from_files = options.from_files;
  ProgressLine progress;
  const RejudgeCounts counts = run_rejudgement(
      driver, challenge, results, set, again,
      [&](const std::string& line) {
        progress.wipe();
        say(line);
      },
      [&](const Progress& now) { progress.show(now); });
  progress.wipe();
  print_set(options, results, set);
  if (counts.failed > 0) return exit_judge_error;
  if (counts.elsewhere > 0) {
    say(cat(counts.elsewhere, " are with other judges or for another device; try again later"));
    return exit_try_later;
  }
  say(cat("nothing has changed yet: --set ", set.number(), " --apply makes the new results count, ",
          "--drop leaves the old"));
  return exit_done;
}

int list_sets(const RejudgeOptions& options, const ResultsDirectory& results) {
  std::vector<ListedSet> list;
  std::vector<std::vector<std::string>> rows = {{"set", "made", "state", "evaluations", "reason"}};
  LeftOut left_out;
  for (const auto& [number, record] :
       read_records(results, kRejudgementRecord, rejudgement_table(), left_out.report())) {
    const ListedSet set{number, record.made, RejudgementSet(results, number).state(),
                        record.evaluations.size(), record.reason};
    rows.push_back({std::to_string(number), set.made, std::string(name(set.state)),
                    std::to_string(set.evaluations), printable(set.reason)});
    list.push_back(set);
  }
  if (options.json) {
    std::cout << print_json(rejudgements_json(list));
  } else if (rows.size() > 1) {
    std::cout << aligned(rows);
  } else {
    say("there is no set");
  }
  return left_out.status();
}

int rejudge_command(const RejudgeOptions& options) {
  const ResultsDirectory results(options.results);
  if (options.list) return list_sets(options, results);
  if (options.run + options.apply + options.drop > 1) {
    throw Error(Fault::usage, "one at a time: --judge, --apply or --drop");
  }
  if (options.set == 0) {
    const Selection selection = selection_of(options);
    if (options.run || options.apply || options.drop) {
      throw Error(Fault::usage, "say which set, by --set NUMBER; --list shows them");
    }
    if (options.reason.empty()) {
      throw Error(Fault::usage,
                  "a new set needs --reason, and --run, --submission, --node or others that say "
                  "which evaluations");
    }
    LeftOut left_out;
    ScoreIndex index(results, left_out.report());
    index.save();
    const int number = make_rejudgement(results, index, selection, options.reason, say);
    const RejudgementSet set(results, number);
    print_set(options, results, set);
    say(cat("set ", number, " of ", set.record().evaluations.size(), " evaluations; --set ", number,
            " --judge makes them again beside the old ones"));
    return left_out.status();
  }
  // --challenge may be the folder to judge with.
  Selection of_new = options.selection;
  of_new.challenge.clear();
  if (of_new != Selection{} || !options.reason.empty()) {
    throw Error(Fault::usage,
                "--set is about all of a set; --reason, and what says which evaluations a new one "
                "has, go without it");
  }
  const RejudgementSet set(results, options.set);
  if (options.run) return run_set(options, results, set);
  if (options.drop) set.end(RejudgementState::dropped);
  if (options.apply) {
    const std::size_t elsewhere = apply_rejudgement(results, set, JudgeAgainOptions{}.lease, say);
    if (elsewhere > 0) {
      say(cat(elsewhere, " are with other judges; apply it again later"));
      return exit_try_later;
    }
  }
  print_set(options, results, set);
  say(cat("set ", set.number(), " is ", name(set.state())));
  return exit_done;
}

}  // namespace

void add_rejudge(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<RejudgeOptions>(
      app, "rejudge", "Judge a set of evaluations again beside the old ones, then apply or drop it",
      command);
  add_select_options(*command, *options);
  add_driver_options(*command, options->device);
  command->add_option("--reason", options->reason, "Why there is a new set")->type_name("TEXT");
  command->add_option("--set", options->set, "The set that this is about")
      ->type_name("NUMBER")
      ->default_str("a new one")
      ->check(CLI::PositiveNumber);
  command->add_flag("--list", options->list, "Show all sets");
  command->add_flag("--judge", options->run, "Judge what the set has not yet, and compare");
  command->add_flag("--apply", options->apply, "The new evaluations count from now on");
  command->add_flag("--drop", options->drop, "They never will");
  command->add_flag("--from-files", options->from_files,
                    "Capture again from the files although there is a recording");
  command->add_flag("--unsafe", options->unsafe,
                    "Where a submission must be captured again, run it without a sandbox");
  command->callback([=, &status] { status = rejudge_command(*options); });
}

}  // namespace kjudge
