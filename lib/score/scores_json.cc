// SPDX-License-Identifier: Apache-2.0
#include "score/scores_json.h"

#include "score/result_json.h"

namespace kjudge {
namespace {

FieldTable<ShapeScore> scored_shape_table() {
  using S = ShapeScore;
  return FieldTable<S>(
      {required("name", &S::name, text_kind(), "name of the shape"),
       required("baseline_ns", &S::baseline_ns, number_kind(),
                "the baseline's time: geometric mean of the regimes' medians"),
       required("submission_ns", &S::submission_ns, number_kind(), "the submission's"),
       required("speedup", &S::speedup, number_kind(), "median of its pairs"),
       required("interval", &S::interval, ends_kind(), "lower and upper end of the speedup"),
       optional("speed_of_light", &S::speed_of_light, number_kind(),
                "the floor by the submission's time; absent where there is no floor"),
       required("below_floor", &S::below_floor, boolean_kind(),
                "faster than the floor: flagged, and still counted"),
       two_modes_field()});
}

FieldTable<DeviceScore> scored_device_table() {
  using D = DeviceScore;
  return FieldTable<D>(
      {required("device", &D::device, text_kind(), "name of the device"),
       required("speedup", &D::speedup, number_kind(), "as the score's"),
       required("interval", &D::interval, ends_kind(), "lower and upper end of the speedup")});
}

FieldTable<ScoredFile> scored_file_table() {
  using S = ScoredFile;
  return FieldTable<S>(
      {required("file", &S::file, text_kind(), "path of the result"),
       required("submission", &S::submission, text_kind(), "path or name as handed in"),
       required("verdict", &S::verdict, verdict_kind(), "on the submission"),
       required<S, bool>("ranked", &S::ranked, boolean_kind(),
                         "accepted, with every round of every shape"),
       required<S, std::string>("why_not", &S::why_not, text_kind(),
                                "the first reason; empty where it is ranked"),
       required<S, double>("speedup", &S::speedup, number_kind(),
                           "geometric mean of the shapes' speedups; 0 where no shape has times"),
       required<S, Interval>("interval", &S::interval, ends_kind(),
                             "lower and upper end of the speedup"),
       required<S, std::vector<ShapeScore>>("shapes", &S::shapes,
                                            list_kind(object_kind(scored_shape_table())),
                                            "those that have times"),
       optional<S, std::vector<DeviceScore>>(
           "devices", &S::devices, list_kind(object_kind(scored_device_table())),
           "what each device makes of it, the first being the score's own; absent where one "
           "measured"),
       optional<S, bool>("devices_agree", &S::devices_agree, boolean_kind(),
                         "whether some speedup lies in the intervals of all of them")});
}

struct ScoresDocument {
  std::vector<ScoredFile> scores;
};

const FieldTable<ScoresDocument>& scores_table() {
  using D = ScoresDocument;
  static const FieldTable<D> table(
      {format_field<D>("kjudge-scores/1"),
       required("scores", &D::scores, list_kind(object_kind(scored_file_table())),
                "in the order of the files")});
  return table;
}

}  // namespace

ScoredFile scored_file(const std::string& file, const Evaluation& evaluation) {
  return {score(evaluation), file, evaluation.submission, evaluation.verdict};
}

Json scores_json(const std::vector<ScoredFile>& scores) {
  return Json{scores_table().write({scores})};
}

JsonFormat scores_json_format() { return json_format(scores_table()); }

Kind<Interval> ends_kind() {
  const auto ends = list_kind(number_kind(), 2, 2);
  return {ends.expected,
          [read = ends.read](const JsonCursor& at) {
            const std::vector<double> both = read(at);
            return Interval{both[0], both[1]};
          },
          [write = ends.write](const Interval& interval) {
            return write({interval.low, interval.high});
          },
          ends.schema};
}

}  // namespace kjudge
