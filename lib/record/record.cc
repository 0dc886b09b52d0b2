// SPDX-License-Identifier: Apache-2.0
#include "record/record.h"

#include <unistd.h>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "driver/fill_kind.h"
#include "record/cupti.h"
#include "record/recording.h"
#include "record/rules.h"

#define KJ_EXPORTED extern "C" __attribute__((visibility("default")))

namespace kjudge {
namespace {

struct Failed {
  std::string verdict, rule, message;
};

// Never destroyed: the driver calls back until the process is gone.
struct Api {
  std::unique_ptr<Recording> recording;
  pid_t owner = 0;
  Failed last, call;
};

Api& api() {
  static Api* only = new Api;
  return *only;
}

// What a failed driver call comes to once the submission's code has begun: it can cause whatever
// fails from then on, but for what only the machine does.
const char* verdict_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return "judge_error";
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "out_of_memory";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
      return "gpu_fault";
    default:
      return "runtime_error";
  }
}

Failed failed(const std::exception& error) {
  if (const auto* refused = dynamic_cast<const Refused*>(&error)) {
    return {"refused", std::string(row(refused->rule()).name), error.what()};
  }
  if (const auto* driver = dynamic_cast<const DriverError*>(&error)) {
    const std::string verdict = verdict_of(driver->result());
    if (verdict != "runtime_error") return {verdict, "", error.what()};
    return {verdict, "",
            cat(error.what(),
                "; a call of kjudge's own failed, so the submission has freed, unmapped, destroyed "
                "or reset what it needs: leave the arguments, the current stream and the context "
                "as they are, and what kernels use readable")};
  }
  if (const auto* known = dynamic_cast<const Error*>(&error)) {
    if (known->fault() == Fault::submission) return {"refused", "", error.what()};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {"out_of_memory", "",
            "host memory ran out while the recording was made; allocate less on the host"};
  }
  return {"runtime_error", "", error.what()};
}

// Runs `body` once the submission's code may have run.
template <class Body>
int guarded(Body body) noexcept {
  const RecorderCall recorders;
  Failed& last = api().last;
  try {
    try {
      body();
      last = {};
      return 0;
    } catch (const std::exception& error) {
      last = failed(error);
    }
  } catch (...) {
    last = {};
  }
  return 1;
}

Recording& recording() {
  if (!api().recording) throw Error(Fault::usage, "recorder: begin was not called");
  // A fork has the addresses but not the driver.
  if (api().owner != ::getpid()) throw Error(Fault::usage, "recorder: used in a forked process");
  return *api().recording;
}

Role role_of(std::string_view text) {
  if (text == "input") return Role::input;
  if (text == "output") return Role::output;
  if (text == "inout") return Role::inout;
  throw Error(Fault::usage, cat("recorder: no role ", text));
}

DType dtype_of(const char* text) {
  const auto parsed = parse_dtype(text);
  if (!parsed) throw Error(Fault::usage, cat("recorder: no dtype ", text));
  return *parsed;
}

RecordedFill fill_of(const kjudge_record_generator& generator) {
  const auto kind = parse_fill_kind(generator.kind);
  if (!kind) throw Error(Fault::usage, cat("recorder: no generator ", generator.kind));
  RecordedFill fill{{}, generator.key_of, generator.source};
  fill.params.kind = *kind;
  fill.params.a = generator.a;
  fill.params.b = generator.b;
  fill.params.c = generator.c;
  fill.params.row = generator.row;
  fill.params.size = generator.size;
  fill.params.other = static_cast<std::uint32_t>(dtype_of(generator.other));
  return fill;
}

void tell(const Failed& failed, kjudge_record_failed* out) {
  *out = {failed.verdict.c_str(), failed.rule.c_str(), failed.message.c_str()};
}

}  // namespace
}  // namespace kjudge

using namespace kjudge;

KJ_EXPORTED int kjudge_record_begin(const kjudge_record_options* options) {
  const int result = guarded([&] {
    std::string why;
    const Watched* found = watched(&why);
    if (found == nullptr) throw Error(Fault::device, cat("recorder: ", why));
    KJ_CHECK(!api().recording);
    api().recording = std::make_unique<Recording>(
        *found, RecordingOptions{options->device, options->seed, options->memory_limit_bytes,
                                 options->bundle_limit_bytes});
    api().owner = ::getpid();
  });
  if (result != 0) api().last.verdict = "judge_error";  // nothing of the submission's has run
  return result;
}

KJ_EXPORTED int kjudge_record_open_shape(const char* name) {
  return guarded([&] { recording().open_shape(name); });
}

KJ_EXPORTED int kjudge_record_tensor(const char* role, const char* name, const char* dtype,
                                     const int64_t* dims, uint32_t rank, uint64_t* address) {
  return guarded([&] {
    TensorSpec spec;
    spec.name = name;
    spec.dtype = dtype_of(dtype);
    spec.dims.assign(dims, dims + rank);
    *address = recording().add_tensor(role_of(role), std::move(spec));
  });
}

KJ_EXPORTED int kjudge_record_fill(const char* name, const kjudge_record_generator* generator) {
  return guarded([&] { recording().fill(name, fill_of(*generator)); });
}

KJ_EXPORTED int kjudge_record_load(const char* name, const char* path) {
  return guarded([&] { recording().fill(name, {{}, "", "", path}); });
}

KJ_EXPORTED int kjudge_record_returned(const char* name, uint64_t address) {
  return guarded([&] { recording().returned(name, address); });
}

KJ_EXPORTED int kjudge_record_check_no_capture(const char* where) {
  return guarded([&] {
    if (!recording().capturing()) recording().check_no_capture(where);
  });
}

KJ_EXPORTED int kjudge_record_begin_capture(void* stream) {
  return guarded([&] { recording().begin_capture(static_cast<CUstream>(stream)); });
}

KJ_EXPORTED int kjudge_record_end_capture(void* stream) {
  return guarded([&] { recording().end_capture(static_cast<CUstream>(stream)); });
}

KJ_EXPORTED int kjudge_record_abandon_capture(void* stream) {
  return guarded([&] { recording().abandon_capture(static_cast<CUstream>(stream)); });
}

KJ_EXPORTED int kjudge_record_write(const char* path, const kjudge_record_seconds* seconds) {
  return guarded([&] {
    recording().write(path, {seconds->import_s, seconds->prepare_s, seconds->capture_s});
  });
}

KJ_EXPORTED void kjudge_record_failure(kjudge_record_failed* failure) { tell(api().last, failure); }

KJ_EXPORTED void kjudge_record_call_failure(kjudge_record_failed* failure) {
  Api& state = api();
  state.call = {};
  if (const Watched* found = watched()) {
    const std::lock_guard lock(found->observed->mutex);
    if (const auto met = std::exchange(found->observed->call_failure, std::nullopt)) {
      state.call = met->rule ? Failed{"refused", std::string(row(*met->rule).name), met->message}
                             : Failed{verdict_of(met->result), "", met->message};
    }
  }
  tell(state.call, failure);
}

KJ_EXPORTED int kjudge_record_refuse(const char* rule, const char* what) {
  return guarded([&] {
    const RuleRow* known = find_rule(rule);
    if (known == nullptr) throw Error(Fault::usage, cat("recorder: no rule ", rule));
    throw Refused(known->rule, what);
  });
}

KJ_EXPORTED uint64_t kjudge_record_left_out(uint64_t* allocations) {
  const Recording::LeftOut left_out =
      api().recording ? api().recording->left_out() : Recording::LeftOut{};
  *allocations = left_out.allocations;
  return left_out.bytes;
}
