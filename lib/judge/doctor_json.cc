// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor_json.h"

namespace kjudge {
namespace {

struct DoctorDocument {
  std::vector<Finding> findings;
  std::optional<MeasuredDevice> measured;
};

const FieldTable<DoctorDocument>& doctor_table() {
  using D = DoctorDocument;
  using F = Finding;
  std::vector<std::pair<std::string, F::State>> states;
  for (const auto state : {F::State::good, F::State::warning, F::State::failure}) {
    states.emplace_back(name(state), state);
  }
  static const FieldTable<D> table(
      {format_field<D>("kjudge-doctor/1"),
       required("findings", &D::findings,
                list_kind(object_kind(FieldTable<F>(
                    {required("state", &F::state, word_kind<F::State>(states),
                              "with a failure kjudge cannot judge here, with a warning less well"),
                     required("name", &F::name, text_kind(), "of what was looked at"),
                     required("found", &F::what, text_kind(), "what was found"),
                     required("advice", &F::advice, text_kind(),
                              "what to do; empty where the state is ok")}))),
                "in the order they were looked at"),
       optional(
           "measured", &D::measured, object_kind(measured_device_table()),
           "with --measure, and no finding that is a failure: what its file in the cache holds")});
  return table;
}

}  // namespace

Json doctor_json(const std::vector<Finding>& findings,
                 const std::optional<MeasuredDevice>& measured) {
  return Json{doctor_table().write({findings, measured})};
}

JsonFormat doctor_json_format() { return json_format(doctor_table()); }

}  // namespace kjudge
