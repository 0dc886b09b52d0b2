// SPDX-License-Identifier: Apache-2.0
#include "judge/profile.h"

// Versions of the format
//   1  the first

namespace kjudge {
namespace {

constexpr std::size_t kMostKernels = 100'000, kMostMetrics = 20'000;

Kind<Json> metric_value_kind() {
  Kind<Json> kind;
  kind.expected = "a number or text";
  kind.schema = Json{Json::Object{
      {"type", Json{Json::List{Json{std::string("number")}, Json{std::string("string")}}}}}};
  kind.read = [what = kind.expected](const JsonCursor& at) {
    if (at.get_if<std::int64_t>() == nullptr && at.get_if<double>() == nullptr &&
        at.get_if<std::string>() == nullptr) {
      at.expected(what);
    }
    return at.json();
  };
  kind.write = [](const Json& value) { return value; };
  return kind;
}

FieldTable<Metric> metric_table() {
  return FieldTable<Metric>(
      {required("name", &Metric::name, text_kind(1000), "as ncu calls it"),
       required("unit", &Metric::unit, text_kind(1000), "of the value; empty where it has none"),
       required("value", &Metric::value, metric_value_kind(), "in ncu's base units, or text")});
}

FieldTable<KernelProfile> kernel_table() {
  using K = KernelProfile;
  return FieldTable<K>(
      {required("name", &K::name, text_kind(), "of the kernel, demangled"),
       required("grid", &K::grid, text_kind(1000), "blocks, such as \"(64, 1, 1)\""),
       required("block", &K::block, text_kind(1000), "threads of a block"),
       required("metrics", &K::metrics, list_kind(object_kind(metric_table()), 0, kMostMetrics),
                "what ncu counted")});
}

const FieldTable<Profile>& profile_fields() {
  using P = Profile;
  static const FieldTable<P> table(
      {format_field<P>("kjudge-profile/1"),
       required("kjudge_version", &P::kjudge_version, text_kind(1000), "of the program"),
       required("challenge", &P::challenge, text_kind(1000), "name of the challenge"),
       required("shape", &P::shape, text_kind(1000), "that was replayed"),
       required("submission", &P::submission, text_kind(1 << 12),
                "path of the submission or bundle"),
       required("device", &P::device, text_kind(1000), "the GPU"),
       required("driver", &P::driver, text_kind(1000), "such as \"cuda 13.0\""),
       required("ncu", &P::ncu, text_kind(1000), "version of Nsight Compute"),
       required("set", &P::set, text_kind(1000), "of metrics"),
       required("kernels", &P::kernels, list_kind(object_kind(kernel_table()), 0, kMostKernels),
                "in the order in which they ran")});
  return table;
}

}  // namespace

std::string profile_to_json(const Profile& profile) {
  return print_json(Json{profile_fields().write(profile)});
}

Profile profile_from_json(const std::string& text, const std::filesystem::path& path) {
  const Json json = parse_json(text, path.native(), Fault::malformed);
  return profile_fields().read(JsonCursor(json, path.native(), Fault::malformed));
}

JsonFormat profile_json_format() { return json_format(profile_fields()); }

}  // namespace kjudge
