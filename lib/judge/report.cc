// SPDX-License-Identifier: Apache-2.0
#include "judge/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "unicode.h"

namespace kjudge {
namespace {

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// Characters, not bytes: UTF-8 continuation bytes take no column.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string interval_text(const Interval& interval) {
  return formatted("[%.3f, %.3f]", interval.low, interval.high);
}

std::string failure_text(const CheckFailure& failure) {
  std::string position;
  for (std::int64_t index : failure.first_position)
    position += cat(position.empty() ? "" : ", ", index);
  std::string text = cat("output ", failure.output, ", check ", failure.check, ", regime ",
                         failure.regime, ", round ", failure.round, ", pair ", failure.pair, ": ",
                         failure.mismatched, " of ", failure.elements, " elements");
  if (failure.rows) {
    text += cat("; ", failure.rows->failed, " of ", failure.rows->rows, " rows");
    text += formatted(", worst %.3g, limit %.9g", failure.rows->worst, failure.rows->limit);
  }
  if (failure.codes) {
    text += cat("; ", failure.codes->beyond, " beyond the steps allowed, worst ",
                failure.codes->worst_steps);
  }
  if (failure.first_position.empty() && failure.rows) return text;  // check.py names no element
  text += formatted("; %s at [%s]: got %.9g, expected %.9g",
                    failure.rows ? "largest error of the first" : "first", position.c_str(),
                    failure.out, failure.expected);
  text +=
      formatted("; worst absolute error %.3g, relative %.3g", failure.worst_abs, failure.worst_rel);
  if (failure.nonfinite > 0)
    text += cat("; ", failure.nonfinite, " NaN or infinity on one side only");
  if (failure.unwritten > 0) text += cat("; ", failure.unwritten, " never written");
  return text;
}

std::string flags_text(const ShapeScore& shape) {
  std::string text = shape.below_floor ? ", below the floor" : "";
  for (const ArmName arm : {ArmName::baseline, ArmName::submission}) {
    if (shape.two_modes[static_cast<std::size_t>(arm)]) {
      text += cat(", two modes of the ", name(arm));
    }
  }
  return text;
}

// "4096x1000: clock 1755 to 1980 MHz, at most 512.3 W, at most 54 C, throttled: sw_power_cap";
// empty where nothing is known.
std::string gpu_text(const ShapeFacts& shape) {
  struct Range {
    std::optional<double> low, high;
    void add(const std::optional<double>& value) {
      if (!value) return;
      low = std::min(low.value_or(*value), *value);
      high = std::max(high.value_or(*value), *value);
    }
  };
  Range clock, power, temperature;
  std::vector<std::string> reasons;
  bool reasons_known = false;
  for (const RoundFacts& round : shape.rounds) {
    clock.add(round.clock_mhz);
    power.add(round.power_w);
    temperature.add(round.temperature_c);
    if (!round.throttle_reasons) continue;
    reasons_known = true;
    for (const std::string& reason : *round.throttle_reasons) {
      if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
        reasons.push_back(reason);
    }
  }
  std::string text;
  const auto add = [&](const std::string& part) { text += cat(text.empty() ? "" : ", ", part); };
  if (clock.low) add(formatted("clock %.0f to %.0f MHz", *clock.low, *clock.high));
  if (power.high) add(formatted("at most %.1f W", *power.high));
  if (temperature.high) add(formatted("at most %.0f C", *temperature.high));
  if (reasons_known && reasons.empty()) add("not throttled");
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    add(cat(i == 0 ? "throttled: " : "", printable(reasons[i])));
  }
  return text.empty() ? text : cat(shape.name, ": ", text);
}

}  // namespace

std::string indented(std::string_view text, std::string_view margin) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += cat(margin, text.substr(0, end), "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::string_view before = text;
    const auto c = take_character(text);
    if (!c || (is_hidden(*c) && *c != '\n' && *c != '\t')) {
      safe += '?';
    } else {
      safe += before.substr(0, before.size() - text.size());
    }
  }
  return safe;
}

std::string hanging(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) safe += c == '\n' ? "\n  " : std::string(1, c);
  return safe;
}

std::string message_text(std::string_view text) {
  constexpr std::size_t kEnd = kMessageBytes / 4;  // what to do comes last
  std::string message;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() <= kMessageBytes) {
      message += printable(line);
    } else {
      const std::string_view start = whole_characters(line.substr(0, kMessageBytes - kEnd));
      std::string_view end = line.substr(line.size() - kEnd);
      while (!end.empty() && utf8_length(end) == 0) end.remove_prefix(1);
      message += cat(printable(start), "[... ", line.size() - start.size() - end.size(),
                     " bytes left out ...]", printable(end));
    }
    text.remove_prefix(line.size());
    if (text.empty()) break;
    text.remove_prefix(1);
    message += text.empty() ? "\n" : "\n  ";
  }
  return message;
}

std::string duration_text(double ns) {
  for (const auto& [unit, size] :
       {std::pair("s", 1e9), std::pair("ms", 1e6), std::pair("us", 1e3)}) {
    if (ns >= size) return formatted("%.*f %s", ns >= 100 * size ? 1 : 2, ns / size, unit);
  }
  return formatted("%.0f ns", ns);
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - columns(row[i]), ' ');
      line += i == 0 ? cat(row[i], padding) : cat("  ", padding, row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string summary(const Evaluation& evaluation) {
  const Score scored = score(evaluation);
  std::string text(name(evaluation.verdict));
  if (scored.counts) {
    text += formatted(", %.3fx ", scored.speedup) + interval_text(scored.interval);
    if (!scored.ranked) text += cat(", partial: ", request_text(evaluation.variant));
  } else if (!evaluation.message.empty()) {
    text += cat(": ", printable(evaluation.message.substr(0, evaluation.message.find('\n'))));
  }
  return text;
}

std::string evaluation_table(const Evaluation& evaluation) {
  const Score scored = score(evaluation);
  std::vector<std::vector<std::string>> rows = {
      {"shape", "baseline", "submission", "speedup", "interval", "verdict"}};
  for (const ShapeFacts& shape : evaluation.shapes) {
    std::vector<std::string> row = {shape.name};
    const auto of_shape =
        std::find_if(scored.shapes.begin(), scored.shapes.end(),
                     [&](const ShapeScore& candidate) { return candidate.name == shape.name; });
    if (shape.timed && of_shape != scored.shapes.end()) {
      row.insert(row.end(),
                 {duration_text(of_shape->baseline_ns), duration_text(of_shape->submission_ns),
                  formatted("%.3fx", of_shape->speedup), interval_text(of_shape->interval)});
    } else {
      row.insert(row.end(), {"-", "-", shape.timed ? "-" : "test", "-"});
    }
    row.emplace_back(name(shape.verdict));
    if (of_shape != scored.shapes.end()) row.back() += flags_text(*of_shape);
    rows.push_back(std::move(row));
  }
  std::string text = evaluation.shapes.empty() ? "" : aligned(rows);
  for (const ShapeFacts& shape : evaluation.shapes) {
    if (shape.verdict != Verdict::accepted) {
      text += cat(shape.name, ": ", name(shape.verdict), ": ", hanging(shape.message), "\n");
    }
  }
  for (const ShapeScore& shape : scored.shapes) {
    if (shape.speed_of_light) {
      text += cat(shape.name,
                  formatted(": %.1f %% of the speed of light\n", 100 * *shape.speed_of_light));
    }
  }
  text += cat("verdict: ", name(evaluation.verdict));
  if (!evaluation.message.empty()) text += cat(": ", hanging(evaluation.message));
  text += "\n";
  for (const DeviceScore& device : scored.devices) {
    text += cat("on ", printable(device.device), formatted(": %.3fx ", device.speedup),
                interval_text(device.interval), "\n");
  }
  if (!scored.devices_agree)
    text += "the devices disagree: no speedup lies in all their intervals\n";
  if (scored.counts) {
    text += formatted("score: %.3fx ", scored.speedup) + interval_text(scored.interval) + "\n";
  }
  if (evaluation.verdict == Verdict::accepted && !scored.ranked) {
    text += cat(scored.counts ? "partial: " : "not ranked: ", scored.why_not, "\n");
  }
  return text;
}

std::string evaluation_page(const Evaluation& evaluation) {
  std::string text = aligned(
      {{"submission", hanging(evaluation.submission)},
       {"challenge",
        cat(printable(evaluation.challenge), " version ", evaluation.challenge_version)},
       {"device", printable(evaluation.device)},
       {"driver",
        printable(cat(evaluation.driver, ", ", evaluation.arch, ", trust: ", evaluation.trust))},
       {"node", printable(evaluation.node)},
       {"started", printable(evaluation.started)},
       {"method", cat(evaluation.method, ", kjudge ", printable(evaluation.kjudge_version))},
       {"evaluation", printable(evaluation.id)},
       {"files", printable(evaluation.submission_sha256)},
       {"sandbox", evaluation.sandbox.empty() ? "not told" : printable(evaluation.sandbox)}});
  text += cat("\n", evaluation_table(evaluation));
  for (const ShapeFacts& shape : evaluation.shapes) {
    if (shape.failure) text += cat("  ", shape.name, ": ", failure_text(*shape.failure), "\n");
    int voids = 0;
    for (const RoundFacts& round : shape.rounds) {
      for (const Pair& pair : round.pairs) voids += pair.voids;
    }
    if (voids > 0) {
      text += cat("  ", shape.name, ": ", voids, voids == 1 ? " void pair was" : " void pairs were",
                  " taken again\n");
    }
    if (const std::string gpu = gpu_text(shape); !gpu.empty()) text += cat("  ", gpu, "\n");
  }
  if (!evaluation.log.empty()) text += cat("\nlog:\n", indented(printable(evaluation.log), "  "));
  if (!evaluation.phases.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const Phase& phase : evaluation.phases) {
      rows.push_back({cat("  ", phase.name), formatted("%.3f s", phase.seconds)});
    }
    text += cat("\ntime by step:\n", aligned(rows));
  }
  return text;
}

}  // namespace kjudge
