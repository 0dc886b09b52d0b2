// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "error.h"
#include "judge/report.h"
#include "web/challenge_text.h"
#include "web/fragments.h"
#include "web/pages.h"
#include "web/task.h"

namespace kjudge {
namespace {

Cell floor_cell(const Shape& shape) {
  if (shape.floor_ns) return number_cell(duration_text(*shape.floor_ns), *shape.floor_ns);
  return number_cell(shape.work ? "computed" : "–");
}

Html shapes_table(const Challenge& challenge) {
  Table table;
  table.caption = "Shapes and tests";
  table.columns = {"Shape", "Arch",    "Dimensions", "Inputs", "Outputs",
                   "Timed", "Regimes", "Checks",     "Floor"};
  table.numeric = {false, false, false, false, false, false, false, false, true};
  table.sortable = true;
  for (const Shape& shape : challenge.shapes) {
    table.rows.push_back(
        {heading_cell(shape.name), text_cell(shape.arch), text_cell(dims_text(shape)),
         text_cell(inputs_text(shape)), text_cell(outputs_text(shape)),
         text_cell(shape.timed ? "yes" : "only checked"), text_cell(regimes_text(shape)),
         text_cell(checks_text(shape)), floor_cell(shape)});
  }
  return table_element(table);
}

Html limits_list(const Challenge& challenge) {
  const ChallengeLimits& limits = challenge.limits;
  const auto seconds = [](double value) { return Html(cat(number_text(value, 6), " s")); };
  std::vector<std::pair<std::string, Html>> pairs = {
      {"Build", seconds(limits.build_s)},
      {"Prepare", seconds(limits.prepare_s)},
      {"Capture", seconds(limits.capture_s)},
      {"One replay", seconds(limits.replay_s)},
      {"Device memory", limits.memory_bytes == 0
                            ? "what the device has"
                            : bytes_text(static_cast<double>(limits.memory_bytes))},
      {"Submission", bytes_text(static_cast<double>(limits.submission_bytes))},
      {"Output kept", bytes_text(static_cast<double>(limits.output_bytes))},
      {"Caches", challenge.cache == CacheMode::cold ? "cold" : "hot"}};
  if (!challenge.compiler_flags.empty()) {
    std::string flags;
    for (const std::string& flag : challenge.compiler_flags)
      flags += cat(flags.empty() ? "" : " ", flag);
    pairs.emplace_back("Compiler flags to choose from", element("code", {}, flags));
  }
  return facts(std::move(pairs));
}

}  // namespace

std::string challenge_page(const Site& site, const std::vector<Leaderboard>& boards,
                           const std::string& challenge, int version, const std::string& task) {
  const Challenge* known = site.challenge(challenge, version);
  PageFrame frame;
  frame.title = known != nullptr && !known->title.empty() ? known->title : challenge;
  frame.address = challenge_address(challenge, version);
  std::vector<Html> contents;
  std::vector<std::pair<std::string, Html>> pairs = {
      {"Challenge", cat(challenge, " version ", version)}};
  if (known != nullptr) {
    if (!known->author.empty()) pairs.emplace_back("Author", person(known->author));
    if (!known->bounty.empty()) pairs.emplace_back("Bounty", known->bounty);
    if (known->target_ns) pairs.emplace_back("Target", duration_text(*known->target_ns));
  }
  contents.push_back(facts(std::move(pairs)));
  Html list("ul", {});
  int count = 0;
  for (const Leaderboard& board : boards) {
    if (board.variant.challenge != challenge || board.variant.version != version) continue;
    ++count;
    Html item("li", {});
    item.add(link(frame.address, board.address, variant_name(board.variant)));
    item.add(board.rows.empty()
                 ? cat(": no score yet")
                 : cat(": ", board.rows.size(), board.rows.size() == 1 ? " run, " : " runs, best ",
                       times_text(board.rows.front().ranked.entry.score.speedup)));
    list.add(std::move(item));
  }
  contents.push_back(
      section("Leaderboards",
              {count == 0 ? element("p", {}, "Nothing has been judged yet.") : std::move(list)}));
  if (known != nullptr) {
    if (!task.empty()) contents.push_back(section("Task", task_elements(task)));
    contents.push_back(section("Shapes", {shapes_table(*known)}));
    contents.push_back(section("Limits", {limits_list(*known)}));
  }
  return framed(frame, std::move(contents));
}

}  // namespace kjudge
