// SPDX-License-Identifier: Apache-2.0
#include "judge/measured_device.h"

#include "challenge/challenge_format.h"
#include "error.h"
#include "file.h"
#include "replay/plausible.h"
#include "sha256.h"

// Versions of the format
//   1  the first

namespace kjudge {
namespace {

namespace fs = std::filesystem;

Kind<double> rate_kind() { return number_kind(1, 1e18); }
Kind<double> share_kind() { return number_kind(0, 1e6); }

FieldTable<Noise> noise_table() {
  return FieldTable<Noise>(
      {required("shape", &Noise::shape, line_kind(1), "name of the shape"),
       required("time_ns", &Noise::time_ns, number_kind(0, kMostNs), "of the kernel"),
       required("replays_per_arm", &Noise::replays_per_arm, integer_kind(1, 100),
                "of each arm in each pair"),
       required("error_median", &Noise::error_median, share_kind(),
                "of |speedup - 1|, over the evaluations"),
       required("error_95", &Noise::error_95, share_kind(), "its 95 % quantile"),
       required("within", &Noise::within, share_kind(),
                "standard deviation of a pair's log ratio within its round"),
       optional("between", &Noise::between, share_kind(),
                "of the rounds', beyond what their pairs explain; absent with one round"),
       required("width", &Noise::width, share_kind(), "mean width of the interval"),
       required("holds_1", &Noise::holds_1, number_kind(0, 1),
                "share of the intervals that contain 1"),
       required("voids", &Noise::voids, integer_kind(0, 1'000'000),
                "pairs that were taken again")});
}

FieldTable<MeasuredRates> rates_table() {
  using R = MeasuredRates;
  return FieldTable<R>(
      {required("read_bytes_per_s", &R::read_bytes_per_s, rate_kind(), "of memory, only read"),
       required("copied_bytes_per_s", &R::copied_bytes_per_s, rate_kind(),
                "of memory, read and written together"),
       required("operations_per_s", &R::operations_per_s, map_kind(dtype_word_kind(), rate_kind()),
                "by dtype, of plain arithmetic and not of matrix units; a multiply-add is two")});
}

}  // namespace

const FieldTable<MeasuredDevice>& measured_device_table() {
  using M = MeasuredDevice;
  static const FieldTable<M> table(
      {format_field<M>("kjudge-measured/1"),
       required("device", &M::device, line_kind(1), "its name, of a GPU with its UUID"),
       required("arch", &M::arch, line_kind(1), "such as \"sm_90\""),
       required("driver", &M::driver, line_kind(1), "such as \"cuda 13.0\""),
       required("kjudge_version", &M::kjudge_version, line_kind(1), "of the program"),
       required("measured", &M::measured, line_kind(1), "when, UTC"),
       required("rates", &M::rates, object_kind(rates_table()), "the most that it did"),
       required("evaluations", &M::evaluations, integer_kind(1, 1'000'000),
                "of the same kernel as both arms"),
       required("noise", &M::noise, list_kind(object_kind(noise_table()), 0, 1000),
                "of these evaluations, by length of the kernel")});
  return table;
}

fs::path measured_device_path(const fs::path& cache, const DeviceIdentity& device) {
  const std::string key = sha256_hex(cat(device.arch, "\n", device.name));
  return cache / cat("measured-", key.substr(0, 16), ".json");
}

std::optional<MeasuredDevice> read_measured_device(const fs::path& cache,
                                                   const DeviceIdentity& device) {
  const fs::path path = measured_device_path(cache, device);
  if (!fs::exists(path)) return std::nullopt;
  try {
    const Json json = parse_json(read_file(path, 1u << 20), path.native(), Fault::malformed);
    return measured_device_table().read(JsonCursor(json, path.native(), Fault::malformed));
  } catch (const Error& error) {
    throw Error(error.fault(), cat(error.what(), "; measure again: kjudge doctor --measure"));
  }
}

}  // namespace kjudge
