// SPDX-License-Identifier: Apache-2.0
#include "judge/doctor_measure.h"

#include <array>
#include <chrono>
#include <cstdio>

#include "error.h"
#include "file.h"
#include "judge/device_lock.h"
#include "judge/interrupt.h"
#include "judge/pipeline.h"
#include "judge/report.h"
#include "judge/version.h"
#include "store/results.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::array<int, 6> kLengthsUs = {5, 10, 30, 100, 300, 1000};

// One recording is both arms and the reference: what differs is noise.
constexpr const char* kCopyPy = R"(# SPDX-License-Identifier: Apache-2.0
"""y = x, by kjudge's own copy."""

import struct

import driver


def prepare(ctx):
    return driver.load("kernels.image").kernel("kjudge_copy")


def kernel_fn(state, inputs, outputs):
    state.launch(inputs.blocks, inputs.threads,
                 struct.pack("<3Q", outputs.y.data_ptr(), inputs.x.data_ptr(), outputs.y.nbytes))
)";

struct Copy {
  int length_us;
  std::uint64_t bytes;
  MeasuringModule::Launch launch;
};

Json text(std::string_view value) { return Json{std::string(value)}; }
Json whole(std::uint64_t value) { return Json{static_cast<std::int64_t>(value)}; }

Json tensor(const char* tensor_name, Json::Object more) {
  Json::Object object = {{"name", text(tensor_name)},
                         {"dtype", text("int32")},
                         {"shape", Json{Json::List{text("n")}}}};
  object.insert(object.end(), more.begin(), more.end());
  return Json{Json::List{Json{std::move(object)}}};
}

Json shape(const Copy& copy, const std::string& arch) {
  return Json{
      Json::Object{{"name", text(cat("copy-", copy.length_us, "us"))},
                   {"arch", text(arch)},
                   {"dtype", text("int32")},
                   {"dims", Json{Json::Object{{"n", whole(copy.bytes / 4)}}}},
                   {"scalars", Json{Json::Object{{"blocks", whole(copy.launch.blocks)},
                                                 {"threads", whole(copy.launch.threads)}}}}}};
}

Challenge make_challenge(const fs::path& folder, const std::vector<Copy>& copies,
                         const std::string& arch, DriverKind kind) {
  const Json generator{Json::Object{
      {"kind", text("integers")}, {"low", whole(0)}, {"high", Json{std::int64_t{2'000'000'000}}}}};
  const Json check{Json::Object{{"kind", text("exact")}}};
  Json::List shapes;
  for (const Copy& copy : copies) shapes.push_back(shape(copy, arch));
  const Json challenge{Json::Object{
      {"format", text("kjudge-challenge/1")},
      {"name", text("doctor")},
      {"version", whole(1)},
      {"title", text("A copy against itself")},
      {"author", text("kjudge")},
      {"tensors",
       Json{Json::Object{{"inputs", tensor("x", {{"generator", generator}})},
                         {"outputs", tensor("y", {{"checks", Json{Json::List{check}}}})}}}},
      {"shapes", Json{std::move(shapes)}}}};
  fs::create_directory(folder);
  write_file_atomically(folder / "challenge.json", print_json(challenge));
  write_file_atomically(folder / "TASK.md", "# A copy against itself\n");
  write_file_atomically(folder / "kernels.image", MeasuringModule::image(kind));
  for (const char* name : {"baseline.py", "reference.py", "submission.py"}) {
    write_file_atomically(folder / name, kCopyPy);
  }
  return read_challenge(folder);
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 128> made{};
  std::snprintf(made.data(), made.size(), format, values...);
  return made.data();
}

// "4.31 TB/s", "59.1 G/s"
std::string rate_text(double per_s, const char* unit) {
  for (const auto& [prefix, size] : {std::pair("P", 1e15), std::pair("T", 1e12)}) {
    if (per_s >= size) return formatted("%.2f %s%s/s", per_s / size, prefix, unit);
  }
  return formatted("%.2f G%s/s", per_s / 1e9, unit);
}

std::string percent(double share) { return formatted("%.2f", 100 * share); }

}  // namespace

MeasuredDevice measure_device(const Driver& driver, const DoctorMeasureOptions& options,
                              const ReportProgress& progress) {
  const int device = options.replay.device;
  const DeviceIdentity identity = identify(driver, device);
  MeasuredDevice measured{
      identity.name, identity.arch, identity.driver, kVersion, utc_now(), {}, 0, {}};
  const TempDir work("kjudge-doctor");
  std::vector<Copy> copies;
  fs::path bundle;
  Challenge challenge;
  {
    const DeviceLock lock = lock_device(identity, device, progress);
    {
      DeviceMeter meter(driver, device, [&] {
        check_interrupt();
        if (progress) progress({"measuring memory and arithmetic", "", 0});
      });
      measured.rates = meter.rates();
      for (const int length : kLengthsUs) {
        const std::uint64_t bytes = meter.copy_bytes(length * 1e3);
        copies.push_back({length, bytes, meter.launch_for(bytes)});
      }
    }
    challenge = make_challenge(work.path() / "challenge", copies, identity.arch, driver.kind);
    bundle = challenge_bundle(driver, challenge, CaptureRole::baseline, work.path(), device);
  }
  const auto start = Clock::now();
  const auto late = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count() > options.seconds;
  };
  std::vector<Evaluation> evaluations;
  while (evaluations.empty() || !late()) {
    const std::string which = cat("evaluation ", evaluations.size() + 1, ": ");
    Evaluation evaluation = replay_bundles(driver, challenge, {bundle, bundle, bundle}, work.path(),
                                           options.replay, [&](const Progress& now) {
                                             if (!progress) return;
                                             progress({which + now.step, now.shape, now.done});
                                           });
    if (evaluation.verdict != Verdict::accepted) {
      throw Error(Fault::device, cat("a copy against itself was not accepted: ",
                                     name(evaluation.verdict), ": ", evaluation.message));
    }
    evaluations.push_back(std::move(evaluation));
  }
  measured.evaluations = static_cast<int>(evaluations.size());
  measured.noise = noise_of(evaluations);
  write_file_atomically(measured_device_path(options.cache, identity),
                        print_json(Json{measured_device_table().write(measured)}));
  return measured;
}

std::string measured_device_text(const MeasuredDevice& measured) {
  std::string made = cat("measured: ", measured.device, ", driver ", measured.driver, "\n");
  made += cat("    memory: ", rate_text(measured.rates.read_bytes_per_s, "B"), " read, ",
              rate_text(measured.rates.copied_bytes_per_s, "B"), " read and written\n");
  made += "    arithmetic:";
  for (const auto& [dtype, per_s] : measured.rates.operations_per_s) {
    made += cat(" ", rate_text(per_s, ""), " ", dtype, ",");
  }
  made += " a multiply-add being two; not of matrix units\n";
  made += cat("    noise of ", measured.evaluations,
              measured.evaluations == 1 ? " evaluation" : " evaluations",
              " of a copy against itself, in %:\n");
  std::vector<std::vector<std::string>> rows = {{"    shape", "length", "replays", "error", "95 %",
                                                 "within", "between", "width", "contain 1",
                                                 "voids"}};
  for (const Noise& noise : measured.noise) {
    rows.push_back({"    " + noise.shape, duration_text(noise.time_ns),
                    std::to_string(noise.replays_per_arm), percent(noise.error_median),
                    percent(noise.error_95), percent(noise.within),
                    noise.between ? percent(*noise.between) : "-", percent(noise.width),
                    formatted("%.0f", 100 * noise.holds_1), std::to_string(noise.voids)});
  }
  made += aligned(rows);
  return made;
}

}  // namespace kjudge
