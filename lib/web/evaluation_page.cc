// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "error.h"
#include "judge/report.h"
#include "web/challenge_text.h"
#include "web/chart.h"
#include "web/fragments.h"
#include "web/pages.h"

namespace kjudge {
namespace {

constexpr double kRefreshSeconds = 5;
constexpr std::size_t kMostShapes = 500;  // with a chart of their own
constexpr std::size_t kMostPairs = 1000;  // of a shape in a table

const ShapeScore* find_score(const Score& score, const std::string& shape) {
  const auto at =
      std::find_if(score.shapes.begin(), score.shapes.end(),
                   [&](const ShapeScore& candidate) { return candidate.name == shape; });
  return at == score.shapes.end() ? nullptr : &*at;
}

std::string page_title(int submission, int evaluation) {
  return evaluation == 1 ? cat("Submission ", submission)
                         : cat("Submission ", submission, ", evaluation ", evaluation);
}

Html floor_flag() { return element("span", {{"class", "badge odd"}}, "below the floor"); }

Html evaluation_link(const std::string& from, const EvaluationKey& key) {
  return link(from, evaluation_address(key.submission, key.evaluation),
              evaluation_name(key.submission, key.evaluation));
}

std::vector<Html> headline(const EvaluationPage& page) {
  const Evaluation& evaluation = page.evaluation;
  const Score& score = page.score;
  std::vector<Html> parts;
  Html line("p", {{"class", "headline"}});
  line.add(verdict_badge(evaluation.verdict));
  if (score.counts) {
    line.add(" ");
    line.add(element("strong", {}, times_text(score.speedup)));
    line.add(cat(" (", interval_text_of(score.interval), ") against the baseline"));
  }
  if (!evaluation.variant.all_shapes()) {
    line.add(" ");
    line.add(partial_badge(evaluation.variant));
  }
  if (!page.submission.stored.identity.keep) {
    line.add(" ");
    line.add(unverified_badge());
  }
  if (std::any_of(score.shapes.begin(), score.shapes.end(),
                  [](const ShapeScore& shape) { return shape.below_floor; })) {
    line.add(" ");
    line.add(floor_flag());
  }
  parts.push_back(std::move(line));
  for (const std::string& reason : page.summary.invalid) {
    parts.push_back(
        element("p", {{"class", "message"}}, "This evaluation does not count: ", reason));
  }
  if (!evaluation.message.empty()) {
    parts.push_back(element("p", {{"class", "message"}}, evaluation.message));
  }
  if (evaluation.verdict == Verdict::judge_error) {
    parts.push_back(element("p", {},
                            "This is not the submission's fault: kjudge, or the machine it ran on, "
                            "failed. When the organizer has mended the cause, it is judged "
                            "again."));
  } else if (evaluation.verdict == Verdict::accepted && !score.ranked) {
    parts.push_back(element(
        "p", {}, score.counts ? "Not ranked among those of the whole challenge: " : "Not ranked: ",
        score.why_not, "."));
  }
  return parts;
}

Cell time_cell(double ns, bool two_modes) {
  Html both("span", {});
  both.add(duration_text(ns));
  if (two_modes) {
    both.add(" ");
    both.add(element("span", {{"class", "badge odd"}}, "two modes"));
  }
  return number_cell(std::move(both), ns);
}

Cell floor_cell(const ShapeFacts& shape, bool below) {
  if (!shape.floor_ns) return number_cell("–");
  std::string text = duration_text(*shape.floor_ns);
  if (shape.floor_from == FloorFrom::measured) text += ", measured";
  if (shape.floor_from == FloorFrom::rates) text += ", by rates";
  Html both("span", {});
  both.add(text);
  if (below) {
    both.add(" ");
    both.add(floor_flag());
  }
  return number_cell(std::move(both), *shape.floor_ns);
}

// What each device made of it, where several measured.
std::vector<Html> device_parts(const Score& score) {
  Table table;
  table.caption = "Devices";
  table.columns = {"Device", "Speedup", "Interval"};
  table.numeric = {false, true, true};
  for (const DeviceScore& device : score.devices) {
    table.rows.push_back({heading_cell(device.device),
                          number_cell(times_text(device.speedup), device.speedup),
                          number_cell(interval_text_of(device.interval), device.interval.low)});
  }
  return {element("p", {},
                  score.devices_agree
                      ? "The same recording, measured on each apart. Their intervals overlap."
                      : "The same recording, measured on each apart. The devices disagree: no "
                        "speedup lies in all their intervals."),
          table_element(table)};
}

Html shape_table(const Evaluation& evaluation, const Score& score) {
  Table table;
  table.caption = "Shapes";
  table.columns = {"Shape",    "Verdict",    "Speedup", "Interval",
                   "Baseline", "Submission", "Floor",   "Speed of light"};
  table.numeric = {false, false, true, true, true, true, true, true};
  table.sortable = true;
  for (const ShapeFacts& shape : evaluation.shapes) {
    std::vector<Cell> row = {heading_cell(shape.name), text_cell(verdict_badge(shape.verdict))};
    const ShapeScore* scored = shape.timed ? find_score(score, shape.name) : nullptr;
    if (scored != nullptr) {
      row.push_back(number_cell(times_text(scored->speedup), scored->speedup));
      row.push_back(number_cell(interval_text_of(scored->interval), scored->interval.low));
      row.push_back(time_cell(scored->baseline_ns, scored->two_modes[0].has_value()));
      row.push_back(time_cell(scored->submission_ns, scored->two_modes[1].has_value()));
    } else {
      row.push_back(number_cell(shape.timed ? "no times" : "not timed"));
      row.insert(row.end(), 3, number_cell("–"));
    }
    row.push_back(floor_cell(shape, scored != nullptr && scored->below_floor));
    row.push_back(scored != nullptr && scored->speed_of_light
                      ? number_cell(cat(fixed_text(100 * *scored->speed_of_light, 1), " %"),
                                    *scored->speed_of_light)
                      : number_cell("–"));
    table.rows.push_back(std::move(row));
  }
  return table_element(table);
}

std::string elements_text(std::uint64_t count) {
  return cat(count, count == 1 ? " element" : " elements");
}

Html failure_report(const CheckFailure& failure) {
  std::string position;
  for (const std::int64_t index : failure.first_position)
    position += cat(position.empty() ? "" : ", ", index);
  std::vector<std::pair<std::string, Html>> pairs = {
      {"Output", failure.output},
      {"Check", failure.check},
      {"Wrong", cat(failure.mismatched, " of ", elements_text(failure.elements))},
      {failure.rows ? "Largest error of the first row at" : "First at", cat("[", position, "]")},
      {"Got", number_text(failure.out, 9)},
      {"Expected", number_text(failure.expected, 9)},
      {"Worst absolute error", number_text(failure.worst_abs, 3)},
      {"Worst relative error", number_text(failure.worst_rel, 3)},
      {"Inputs", failure.regime},
      {"In", cat("round ", failure.round + 1, ", pair ", failure.pair + 1)}};
  if (failure.rows) {
    pairs.emplace_back("Rows", cat(failure.rows->failed, " of ", failure.rows->rows, " wrong"));
    pairs.emplace_back("Worst row", cat(number_text(failure.rows->worst, 3), ", limit ",
                                        number_text(failure.rows->limit, 9)));
  }
  if (failure.codes) {
    pairs.emplace_back("Too many steps off", cat(elements_text(failure.codes->beyond), ", at most ",
                                                 failure.codes->worst_steps, " steps"));
  }
  if (failure.nonfinite > 0)
    pairs.emplace_back("NaN or infinity on one side", elements_text(failure.nonfinite));
  if (failure.unwritten > 0) pairs.emplace_back("Never written", elements_text(failure.unwritten));
  return facts(std::move(pairs));
}

Html pair_table(const ShapeFacts& shape) {
  Table table;
  table.caption = cat("Pairs of ", shape.name);
  table.columns = {"Round",    "Pair",       "Inputs",  "First",
                   "Baseline", "Submission", "Speedup", "Void before"};
  table.numeric = {true, true, false, false, true, true, true, true};
  table.sortable = true;
  for (std::size_t r = 0; r < shape.rounds.size(); ++r) {
    for (std::size_t p = 0; p < shape.rounds[r].pairs.size() && table.rows.size() < kMostPairs;
         ++p) {
      const Pair& pair = shape.rounds[r].pairs[p];
      std::string voids = std::to_string(pair.voids);
      for (const std::string& cause : pair.void_causes) voids += cat(", ", cause);
      const auto time = [&](ArmName arm) {
        const ArmTimes& times = pair.arms[static_cast<std::size_t>(arm)];
        return times.replays.empty() ? number_cell("–")
                                     : number_cell(duration_text(times.time_ns()), times.time_ns());
      };
      const bool whole = !pair.arms[0].replays.empty() && !pair.arms[1].replays.empty();
      table.rows.push_back(
          {number_cell(std::to_string(r + 1)), number_cell(std::to_string(p + 1)),
           text_cell(pair.regime), text_cell(name(pair.first)), time(ArmName::baseline),
           time(ArmName::submission),
           whole ? number_cell(times_text(pair.ratio()), pair.ratio()) : number_cell("–"),
           number_cell(voids, pair.voids)});
    }
  }
  return table_element(table);
}

// The GPU over the rounds of a shape.
void add_device_facts(const ShapeFacts& shape, std::vector<std::pair<std::string, Html>>& pairs) {
  const auto range = [&](const char* term, std::optional<double> RoundFacts::*member,
                         const char* unit, int decimals) {
    std::optional<double> low, high;
    for (const RoundFacts& round : shape.rounds) {
      if (const auto& value = round.*member) {
        low = std::min(low.value_or(*value), *value);
        high = std::max(high.value_or(*value), *value);
      }
    }
    if (!low) return;
    const std::string from = fixed_text(*low, decimals), to = fixed_text(*high, decimals);
    pairs.emplace_back(term, from == to ? cat(to, " ", unit) : cat(from, " to ", to, " ", unit));
  };
  range("Clock", &RoundFacts::clock_mhz, "MHz", 0);
  range("Power", &RoundFacts::power_w, "W", 1);
  range("Temperature", &RoundFacts::temperature_c, "°C", 0);
  std::set<std::string> reasons;
  bool known = false;
  for (const RoundFacts& round : shape.rounds) {
    if (!round.throttle_reasons) continue;
    known = true;
    reasons.insert(round.throttle_reasons->begin(), round.throttle_reasons->end());
  }
  std::string throttled;
  for (const std::string& reason : reasons) throttled += cat(throttled.empty() ? "" : ", ", reason);
  if (known) pairs.emplace_back("Throttled", throttled.empty() ? "no" : throttled);
}

const Shape* find_shape(const Challenge* challenge, const std::string& shape_name) {
  if (challenge == nullptr) return nullptr;
  const auto at = std::find_if(challenge->shapes.begin(), challenge->shapes.end(),
                               [&](const Shape& shape) { return shape.name == shape_name; });
  return at == challenge->shapes.end() ? nullptr : &*at;
}

Html shape_details(const EvaluationPage& page, const ShapeFacts& shape, const ShapeScore* scored) {
  Html box("article", {{"class", "shape"}});
  box.add(element("h3", {}, shape.name, shape.timed ? "" : " (test)", " ",
                  verdict_badge(shape.verdict)));
  if (!shape.message.empty()) box.add(element("p", {{"class", "message"}}, shape.message));
  if (shape.failure) box.add(failure_report(*shape.failure));
  if (scored != nullptr) box.add(ratio_chart(shape, *scored));
  std::vector<std::pair<std::string, Html>> pairs;
  if (scored != nullptr) {
    pairs.emplace_back(
        "Speedup", cat(times_text(scored->speedup), " (", interval_text_of(scored->interval), ")"));
    pairs.emplace_back("Time", cat(duration_text(scored->submission_ns), ", baseline ",
                                   duration_text(scored->baseline_ns)));
    pairs.emplace_back("Replays of each arm in a pair", std::to_string(shape.replays_per_arm));
  }
  if (const Shape* known = find_shape(page.challenge, shape.name)) {
    pairs.emplace_back("Checks", checks_text(*known));
    pairs.emplace_back(known->timed ? "Inputs, in each round" : "Inputs", regimes_text(*known));
  }
  int voids = 0;
  for (const RoundFacts& round : shape.rounds) {
    for (const Pair& pair : round.pairs) voids += pair.voids;
  }
  if (voids > 0) pairs.emplace_back("Void pairs, taken again", std::to_string(voids));
  add_device_facts(shape, pairs);
  if (!pairs.empty()) box.add(facts(std::move(pairs)));
  if (!shape.rounds.empty()) {
    box.add(element("details", {}, element("summary", {}, cat("All pairs of ", shape.name)),
                    pair_table(shape)));
  }
  return box;
}

Html where_it_ran(const Evaluation& evaluation) {
  std::vector<std::pair<std::string, Html>> pairs = {
      {"Challenge", cat(evaluation.challenge, " version ", evaluation.challenge_version)},
      {"Node", evaluation.node},
      {evaluation.trust == "process" ? "Processor" : "GPU", evaluation.device},
      {"Arch", evaluation.arch},
      {"Driver", evaluation.driver},
      {"Started", time_element(evaluation.started)},
      {"Caches", evaluation.cache == CacheMode::cold ? "cold" : "hot"},
      {"Device memory at its most", bytes_text(static_cast<double>(evaluation.peak_bytes))},
      {"Method", cat(evaluation.method, ", kjudge ", evaluation.kjudge_version)},
      {"Evaluation", element("code", {}, evaluation.id)},
      {"SHA-256 of the files", element("code", {}, evaluation.submission_sha256)}};
  if (evaluation.bundle_sha256)
    pairs.emplace_back("SHA-256 of the recording", element("code", {}, *evaluation.bundle_sha256));
  pairs.emplace_back("Sandbox", evaluation.sandbox.empty() ? "not told" : evaluation.sandbox);
  if (evaluation.trust == "process") {
    pairs.emplace_back(
        "Trust", "times are those of the submission's own process: for practice, not for prizes");
  }
  return facts(std::move(pairs));
}

Html phase_table(const Evaluation& evaluation) {
  Table table;
  table.caption = "Wall time by step";
  table.columns = {"Step", "Seconds"};
  table.numeric = {false, true};
  for (const Phase& phase : evaluation.phases) {
    table.rows.push_back(
        {heading_cell(phase.name), number_cell(cat(fixed_text(phase.seconds, 3), " s"))});
  }
  return table_element(table);
}

// What else there is of this submission, and what it can be compared with.
Html related(const EvaluationPage& page, const std::string& address) {
  const EvaluationKey key{page.submission.stored.identity.number, page.summary.number};
  std::vector<std::pair<std::string, Html>> pairs;
  const std::string& run = page.submission.stored.identity.run;
  pairs.emplace_back("Run", link(address, run_address(run), person(run)));
  pairs.emplace_back("Handed in",
                     element("span", {}, person(page.submission.stored.identity.name), ", ",
                             time_element(page.submission.stored.identity.received)));
  if (page.submission.published)
    pairs.emplace_back("Code", link(address, code_address(key.submission), "its files"));
  if (!page.board.empty())
    pairs.emplace_back("Leaderboard",
                       link(address, page.board, variant_name(variant_of(page.summary))));
  Html evaluations("span", {});
  for (const EvaluationSummary& other : page.submission.evaluations) {
    if (other.number == page.summary.number) continue;
    evaluations.add(link(address, evaluation_address(key.submission, other.number),
                         cat("evaluation ", other.number)));
    evaluations.add(" ");
  }
  if (page.submission.running) {
    const int next = page.submission.next_number();
    evaluations.add(link(address, evaluation_address(key.submission, next),
                         cat("evaluation ", next, ", which is to come")));
  }
  if (page.submission.evaluations.size() > 1 || page.submission.running)
    pairs.emplace_back("Other evaluations", std::move(evaluations));
  if (!page.same_kernels.empty()) {
    Html same("span", {});
    for (std::size_t i = 0; i < std::min(page.same_kernels.size(), kMostSameKernels); ++i) {
      if (i > 0) same.add(", ");
      same.add(evaluation_link(address, page.same_kernels[i]));
    }
    if (page.same_kernels.size() > kMostSameKernels) same.add(", and others");
    pairs.emplace_back("Same kernels as", std::move(same));
  }
  if (!page.summary.profiled.empty()) {
    Html profiles("span", {});
    for (const std::string& shape : page.summary.profiled) {
      profiles.add(link(address, profile_address(key.submission, key.evaluation, shape), shape));
      profiles.add(" ");
    }
    pairs.emplace_back("Profiles", std::move(profiles));
  }
  Html compare("span", {});
  const auto add_comparison = [&](const EvaluationKey& other, const char* which) {
    compare.add(link(address, comparison_address(other, key),
                     cat(evaluation_name(other.submission, other.evaluation), ", ", which)));
  };
  if (page.previous) add_comparison(*page.previous, "the one before");
  if (page.previous && page.best) compare.add("; ");
  if (page.best) add_comparison(*page.best, "the best");
  if (page.previous || page.best) pairs.emplace_back("Compare with", std::move(compare));
  return facts(std::move(pairs));
}

std::vector<Crumb> crumbs_of(const std::string& run) { return {{run, run_address(run)}}; }

}  // namespace

std::string evaluation_page(const EvaluationPage& page) {
  const int submission = page.submission.stored.identity.number;
  PageFrame frame;
  frame.title = page_title(submission, page.summary.number);
  frame.address = evaluation_address(submission, page.summary.number);
  frame.above = crumbs_of(page.submission.stored.identity.run);
  const Evaluation& evaluation = page.evaluation;
  const Score& score = page.score;

  std::vector<Html> contents = headline(page);
  contents.push_back(related(page, frame.address));
  if (!evaluation.shapes.empty()) {
    std::vector<Html> parts = {shape_table(evaluation, score)};
    std::size_t shown = 0;
    for (const ShapeFacts& shape : evaluation.shapes) {
      const bool worth =
          shape.timed || !shape.message.empty() || shape.failure || page.challenge != nullptr;
      if (worth && ++shown <= kMostShapes)
        parts.push_back(shape_details(page, shape, find_score(score, shape.name)));
    }
    contents.push_back(section("Shapes and tests", std::move(parts)));
  }
  if (!score.devices.empty()) contents.push_back(section("Devices", device_parts(score)));
  // Tracebacks in it quote the code.
  if (!evaluation.log.empty() && page.submission.published) {
    contents.push_back(section("Log", {element("p", {}, "What the submission's own part wrote."),
                                       preformatted(evaluation.log, "Log of the submission")}));
  } else if (!evaluation.log.empty()) {
    contents.push_back(section(
        "Log", {element("p", {},
                        "It may quote the code, which is not for everybody to see. Whoever handed "
                        "in has it by ",
                        element("code", {}, cat("submit.py --status ", submission)), ".")}));
  }
  contents.push_back(section("Where and how it ran", {where_it_ran(evaluation)}));
  if (!evaluation.phases.empty())
    contents.push_back(section("Time by step", {phase_table(evaluation)}));
  return framed(frame, std::move(contents));
}

std::string code_page(const SubmissionSummary& submission,
                      const std::vector<std::pair<std::string, std::string>>& files) {
  const SubmissionIdentity& identity = submission.stored.identity;
  PageFrame frame;
  frame.title = cat("Code of submission ", identity.number);
  frame.address = code_address(identity.number);
  frame.above = crumbs_of(identity.run);
  std::vector<Html> contents;
  if (!submission.notes.license.empty()) {
    contents.push_back(element("p", {}, "License: ", submission.notes.license));
  }
  for (const auto& [name, text] : files) {
    contents.push_back(section(name, {preformatted(text, name)}));
  }
  return framed(frame, std::move(contents));
}

std::string running_page(const SubmissionSummary& submission) {
  const SubmissionIdentity& identity = submission.stored.identity;
  KJ_CHECK(submission.running.has_value());
  const RunningEvaluation& running = *submission.running;
  PageFrame frame;
  frame.title = page_title(identity.number, submission.next_number());
  frame.address = evaluation_address(identity.number, submission.next_number());
  frame.above = crumbs_of(identity.run);
  frame.refresh_s = kRefreshSeconds;

  using Step = RunningEvaluation::Step;
  Html steps("ol", {{"class", "steps"}});
  for (const Step step : {Step::queued, Step::building, Step::capturing, Step::replaying}) {
    Attributes attributes;
    std::string text(name(step));
    if (step == running.step) {
      attributes = {{"aria-current", "step"}};
      text = text_of(running);
    } else if (step < running.step) {
      attributes = {{"class", "done"}};
    }
    steps.add(element("li", std::move(attributes), text));
  }
  std::vector<Html> contents;
  contents.push_back(element("p", {{"class", "headline"}, {"role", "status"}},
                             element("span", {{"class", "badge odd"}}, name(running.step))));
  contents.push_back(std::move(steps));
  if (running.step == Step::replaying) {
    contents.push_back(element("progress", {{"max", 100},
                                            {"value", static_cast<int>(100 * running.done)},
                                            {"aria-label", "replays done"}}));
  }
  std::vector<std::pair<std::string, Html>> pairs = {
      {"Run", link(frame.address, run_address(identity.run), person(identity.run))},
      {"Handed in",
       element("span", {}, person(identity.name), ", ", time_element(identity.received))}};
  if (identity.variant != VariantRequest{}) {
    pairs.emplace_back("Asks for", request_text(identity.variant));
  }
  if (!running.updated.empty()) pairs.emplace_back("As of", time_element(running.updated));
  contents.push_back(facts(std::move(pairs)));
  contents.push_back(
      element("p", {{"class", "note"}}, link(frame.address, frame.address, "Load this page again"),
              " to see how far it is. With JavaScript it does so by itself every 5 seconds."));
  return framed(frame, std::move(contents));
}

}  // namespace kjudge
