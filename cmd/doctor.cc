// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "error.h"
#include "judge/doctor_json.h"
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

// Those of the environment and of a configuration file are for whenever there is something to
// measure.
void refuse_without_measure(const CLI::App& command) {
  for (const CLI::Option* option : command.parse_order()) {
    for (const char* name : {"--driver", "--device", "--seconds", "--pairs"}) {
      if (option->check_name(name)) {
        throw Error(Fault::usage, cat(name, " is for --measure, which is not given"));
      }
    }
  }
}

int doctor(const DoctorOptions& options) {
  bool failed = false;
  const std::vector<Finding> findings = examine_machine();
  for (const Finding& finding : findings) {
    failed = failed || finding.state == Finding::State::failure;
    if (options.json) continue;
    std::cout << name(finding.state) << ": " << finding.name << ": " << printable(finding.what)
              << "\n";
    if (!finding.advice.empty()) std::cout << "    " << finding.advice << "\n";
  }
  std::optional<MeasuredDevice> measured;
  if (options.measure && failed) {
    say("nothing is measured: first mend what stands as a failure among the findings");
  } else if (options.measure) {
    measured = measure(options);
  }
  if (options.json) {
    std::cout << print_json(doctor_json(findings, measured));
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
  command->callback([=, &status] {
    if (!options->measure) refuse_without_measure(*command);
    status = doctor(*options);
  });
}

}  // namespace kjudge
