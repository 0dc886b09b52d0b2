// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>

#include "error.h"
#include "judge/records_json.h"
#include "judge/report.h"
#include "left_out.h"
#include "store/challenges.h"
#include "store/judgements.h"
#include "store/standings.h"

namespace kjudge {
namespace {

struct BarOptions {
  bool json = false;
  std::string action, results;
  std::string name, variant, source, date;
  double speedup = 0;
  std::string times;  // "4096x1024=12.5,17x3=1.5"
  bool measured = false;
  int number = 0;
};

// "4096x1024=12.5"
std::pair<std::string, double> shape_time(const std::string& text) {
  const auto at = text.rfind('=');
  double time = 0;
  const char* end = text.data() + text.size();
  const bool ok = at != text.npos && at > 0 &&
                  std::from_chars(text.data() + at + 1, end, time).ptr == end && time > 0 &&
                  std::isfinite(time);
  if (!ok) {
    throw Error(Fault::usage,
                cat("--times ", text, ": expected SHAPE=MICROSECONDS, as in 4096x1024=12.5"));
  }
  return {text.substr(0, at), time};
}

Bar bar_from(const BarOptions& options) {
  if (options.name.empty() || options.variant.empty() || options.source.empty()) {
    throw Error(Fault::usage, "add needs --name, --variant and --source");
  }
  Bar bar;
  bar.name = options.name;
  bar.variant = parse_request(options.variant);
  bar.speedup = options.speedup;
  std::istringstream times(options.times);
  for (std::string time; std::getline(times, time, ',');) {
    bar.times_us.push_back(shape_time(time));
  }
  if (bar.speedup == 0 && bar.times_us.empty()) {
    throw Error(Fault::usage, "add needs --speedup, or --times of each shape");
  }
  bar.basis = options.measured ? Bar::Basis::measured : Bar::Basis::claimed;
  bar.source = options.source;
  bar.date = options.date;
  bar.made = utc_now();
  return bar;
}

// What nothing here is for would be shown nowhere. GPUs that nothing was judged on may come.
void require_there(const ResultsDirectory& results, const Bar& bar,
                   const ResultsDirectory::Report& report) {
  VariantRequest request = bar.variant;
  request.gpu.clear();
  ScoreIndex index(results, report);
  index.save();
  require_known(results, index, request);
  std::optional<Challenge> kept;  // the version that it is of, else the newest
  for (Challenge& one : kept_challenges(results)) {
    if (one.name != request.challenge) continue;
    if (request.version != 0 ? one.version == request.version
                             : !kept || one.version > kept->version) {
      kept = std::move(one);
    }
  }
  if (!kept) return;
  if (!request.all_shapes()) timed_shapes(*kept, request);
  for (const auto& [shape, time] : bar.times_us) timed_shapes(*kept, {.shape = shape});
}

void print_number(const BarOptions& options, int number) {
  if (options.json) {
    std::cout << print_json(recorded_json(number));
  } else {
    say(cat("recorded as ", number));
  }
}

void list_bars(const BarOptions& options, const Records<Bar>& bars) {
  std::vector<std::vector<std::string>> rows = {
      {"bar", "name", "variant", "speedup", "basis", "date", "source"}};
  for (const auto& [number, bar] : bars) {
    std::array<char, 40> speedup{"by time"};
    if (bar.speedup > 0) std::snprintf(speedup.data(), speedup.size(), "%.3fx", bar.speedup);
    rows.push_back({std::to_string(number), printable(bar.name), request_text(bar.variant),
                    speedup.data(), bar.basis == Bar::Basis::claimed ? "claimed" : "measured",
                    bar.date, printable(bar.source)});
  }
  if (options.json) {
    std::cout << print_json(bars_json(bars));
  } else if (bars.empty()) {
    say("there is no bar");
  } else {
    std::cout << aligned(rows);
  }
}

int bar_command(const BarOptions& options) {
  const ResultsDirectory results(options.results);
  LeftOut left_out;
  if (options.action == "add") {
    const Bar bar = bar_from(options);
    require_there(results, bar, left_out.report());
    const Json json = record_json(bar_table(), bar, kBarRecord);
    print_number(options, add_record(results, kBarRecord, json));
    return left_out.status();
  }
  const auto bars = standing(read_records(results, kBarRecord, bar_table(), left_out.report()));
  if (options.action == "list") {
    list_bars(options, bars);
    return left_out.status();
  }
  require_record(bars, options.number, "bar");
  Bar removal;
  removal.made = utc_now();
  removal.takes_back = options.number;
  print_number(options, add_record(results, kBarRecord, Json{bar_table().write(removal)}));
  return left_out.status();
}

}  // namespace

void add_bar(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<BarOptions>(
      app, "bar", "Record what runs are compared with: entries without code, claims", command);
  command->add_option("action", options->action, "What to do: add, list or remove")
      ->required()
      ->check(CLI::IsMember({"add", "list", "remove"}));
  add_results_option(*command, options->results);
  command->add_option("--name", options->name, "Of a new bar, such as a library or a paper")
      ->type_name("TEXT");
  command
      ->add_option("--variant", options->variant,
                   "CHALLENGE[@VERSION][:dtype[:gpu[:shape]]] that a new bar is shown with")
      ->type_name("VARIANT");
  command->add_option("--speedup", options->speedup, "Over the challenge's baseline")
      ->type_name("FACTOR")
      ->default_str("none")
      ->check(CLI::PositiveNumber)
      ->check(finite_number());
  command
      ->add_option("--times", options->times,
                   "Microseconds by shape, as 4096x1024=12.5,17x3=1.5; with one for each shape of "
                   "the variant the speedup follows from the baseline's times")
      ->type_name("LIST");
  command->add_option("--source", options->source, "Where the numbers are from: a link, a command")
      ->type_name("TEXT");
  command->add_option("--date", options->date, "Of when the numbers are")->type_name("DATE");
  command->add_flag("--measured", options->measured,
                    "You measured it yourself; else it is shown as a claim");
  command->add_option("--number", options->number, "Of the bar to remove, as list has it")
      ->default_str("none")
      ->check(CLI::PositiveNumber);
  command->callback([=, &status] { status = bar_command(*options); });
}

}  // namespace kjudge
