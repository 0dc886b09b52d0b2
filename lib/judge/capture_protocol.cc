// SPDX-License-Identifier: Apache-2.0
#include "judge/capture_protocol.h"

#include "challenge/generators.h"
#include "challenge/shape_request.h"
#include "error.h"

namespace kjudge {
namespace {

Json text(std::string_view value) { return Json{std::string(value)}; }

Json number(std::integral auto value) { return Json{static_cast<std::int64_t>(value)}; }

Kind<double> seconds_kind() { return number_kind(0, 1e6); }

const FieldTable<CaptureSeconds>& seconds_table() {
  using S = CaptureSeconds;
  static const FieldTable<S> table({
      optional("import", &S::import, seconds_kind(), "of the submission's module"),
      optional("prepare", &S::prepare, seconds_kind(), "prepare(ctx)"),
      optional("capture", &S::capture, seconds_kind(), "kernel_fn of all shapes"),
      optional("export", &S::export_, seconds_kind(), "writing the bundle"),
  });
  return table;
}

const FieldTable<CaptureStatus>& status_table() {
  using S = CaptureStatus;
  static const FieldTable<S> table({
      format_field<S>("kjudge-capture-status/1"),
      required("verdict", &S::verdict,
               word_kind<Verdict>({{"accepted", Verdict::accepted},
                                   {"build_error", Verdict::build_error},
                                   {"runtime_error", Verdict::runtime_error},
                                   {"refused", Verdict::refused},
                                   {"out_of_memory", Verdict::out_of_memory},
                                   {"gpu_fault", Verdict::gpu_fault},
                                   {"timeout", Verdict::timeout},
                                   {"judge_error", Verdict::judge_error}}),
               "accepted: there is a bundle; judge_error: the device is broken"),
      optional("rule", &S::rule, line_kind(0, 256), "that a refused submission broke"),
      optional("message", &S::message, text_kind(), "for the contestant"),
      optional("traceback", &S::traceback, text_kind(), "the contestant's frames"),
      optional("seconds", &S::seconds, object_kind(seconds_table()), "wall time by step"),
  });
  return table;
}

}  // namespace

std::string_view name(CaptureRole role) {
  switch (role) {
    case CaptureRole::submission:
      return "submission";
    case CaptureRole::baseline:
      return "baseline";
    case CaptureRole::reference:
      return "reference";
  }
  return "unknown";
}

std::string capture_request(const Challenge& challenge, const CaptureOptions& options,
                            const CaptureFiles& files, int device, std::uint64_t seed) {
  Json::List shapes;
  for (const Shape& shape : challenge.shapes) {
    if (!options.only.takes(shape)) continue;
    Json made =
        shape_request(shape, options.role == CaptureRole::reference ? OutputTypes::expected
                                                                    : OutputTypes::submitted);
    if (uses_python(shape.regimes.front())) {
      std::get<Json::Object>(made.value)
          .push_back({"made_up", text((files.made_up / shape.name).string())});
    }
    shapes.push_back(std::move(made));
  }
  Json::Object limits = {{"memory_bytes", number(challenge.limits.memory_bytes)},
                         {"bundle_bytes", number(challenge.limits.bundle_bytes)}};
  Json::List flags;
  for (const std::string& flag : challenge.compiler_flags) flags.push_back(text(flag));
  return print_json(Json{
      Json::Object{{"format", text("kjudge-capture/1")},
                   {"submission", text(files.submission.string())},
                   {"bundle", text(files.bundle.string())},
                   {"status", text(files.status.string())},
                   {"steps", text(files.steps.string())},
                   {"role", text(name(options.role))},
                   {"device", number(device)},
                   {"seed", number(seed)},
                   {"eager", Json{options.eager}},
                   {"challenge", Json{Json::Object{{"name", text(challenge.name)},
                                                   {"version", number(challenge.version)},
                                                   {"compiler_flags", Json{std::move(flags)}}}}},
                   {"limits", Json{std::move(limits)}},
                   {"shapes", Json{std::move(shapes)}}}});
}

CaptureStatus parse_capture_status(std::string_view bytes) {
  const Json json = parse_json(bytes, "status.json", Fault::malformed, {.depth = 4, .values = 64});
  return status_table().read(JsonCursor(json, "status.json", Fault::malformed));
}

JsonFormat capture_status_json_format() { return json_format(status_table()); }

}  // namespace kjudge
