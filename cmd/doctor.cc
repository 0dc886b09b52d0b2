// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor.h"

#include <iostream>

#include "error.h"
#include "judge/doctor_measure.h"
#include "judge/report.h"
#include "option_value.h"
#include "options.h"
#include "progress.h"

namespace kjudge {
namespace {

struct DoctorOptions : DeviceOptions {
  bool measure = false;
  int seconds = 80, pairs = kRounds * kPairsPerRound;
};

MeasuredDevice measure(const DoctorOptions& options) {
  const bool cuda = options.driver == "cuda" || (options.driver == "auto" && cuda_available());
  DoctorMeasureOptions measure_options;
  measure_options.cache = cache_directory();
  measure_options.seconds = options.seconds;
  measure_options.replay.device = options.device;
  set_pairs(measure_options.replay, options.pairs);
  ProgressLine line;
  return measure_device(Driver::open(cuda ? DriverKind::cuda : DriverKind::host), measure_options,
                        [&](const Progress& now) { line.show(now); });
}

Json finding_json(const Finding& finding) {
  return Json{Json::Object{{"state", Json{std::string(name(finding.state))}},
                           {"name", Json{finding.name}},
                           {"found", Json{finding.what}},
                           {"advice", Json{finding.advice}}}};
}

int doctor(const DoctorOptions& options) {
  bool failed = false;
  Json::List list;
  for (const Finding& finding : examine_machine()) {
    failed = failed || finding.state == Finding::State::failure;
    if (options.json) {
      list.push_back(finding_json(finding));
      continue;
    }
    std::cout << name(finding.state) << ": " << finding.name << ": " << printable(finding.what)
              << "\n";
    if (!finding.advice.empty()) std::cout << "    " << finding.advice << "\n";
  }
  std::optional<MeasuredDevice> measured;
  if (options.measure && !failed) measured = measure(options);
  if (options.json) {
    Json::Object object = {{"format", Json{std::string("kjudge-doctor/1")}},
                           {"findings", Json{std::move(list)}}};
    if (measured) object.push_back({"measured", Json{measured_device_table().write(*measured)}});
    std::cout << print_json(Json{std::move(object)});
  } else if (measured) {
    std::cout << measured_device_text(*measured);
  }
  return failed ? exit_judge_error : exit_done;
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<DoctorOptions>(
      app, "doctor", "Say whether this machine can judge, and what to do if not", command);
  command->add_flag("--measure", options->measure,
                    "Also measure a device: its noise, its memory, its arithmetic; floors are made "
                    "of it");
  add_driver_options(*command, *options);
  command
      ->add_option("--seconds", options->seconds,
                   "With --measure: begin no evaluation of the noise later than this")
      ->type_name("SECONDS")
      ->check(integer_in(0, 86400));
  command
      ->add_option("--pairs", options->pairs,
                   "With --measure: pairs of each length in an evaluation; fewer are quicker")
      ->check(integer_in(1, 3000));
  command->callback([=, &status] { status = doctor(*options); });
}

}  // namespace kjudge
