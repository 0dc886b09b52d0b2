// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor.h"

#include <iostream>

#include "error.h"
#include "judge/report.h"
#include "options.h"

namespace kjudge {
namespace {

struct DoctorOptions {
  bool json = false;
};

int doctor(const DoctorOptions& options) {
  bool failed = false;
  Json::List list;
  for (const Finding& finding : examine_machine()) {
    failed = failed || finding.state == Finding::State::failure;
    if (options.json) {
      list.push_back(Json{Json::Object{{"state", Json{std::string(name(finding.state))}},
                                       {"name", Json{finding.name}},
                                       {"found", Json{finding.what}},
                                       {"advice", Json{finding.advice}}}});
    } else {
      std::cout << name(finding.state) << ": " << finding.name << ": " << printable(finding.what)
                << "\n";
      if (!finding.advice.empty()) std::cout << "    " << finding.advice << "\n";
    }
  }
  if (options.json) {
    std::cout << print_json(Json{Json::Object{{"format", Json{std::string("kjudge-doctor/1")}},
                                              {"findings", Json{std::move(list)}}}});
  }
  return failed ? exit_judge_error : exit_done;
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<DoctorOptions>(
      app, "doctor", "Say whether this machine can judge, and what to do if not", command);
  command->callback([=, &status] { status = doctor(*options); });
}

}  // namespace kjudge
