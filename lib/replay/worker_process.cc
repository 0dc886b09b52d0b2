// SPDX-License-Identifier: Apache-2.0
#include "replay/worker_process.h"
#include "decimal.h"

#include <signal.h>

#include <algorithm>
#include <map>

namespace kjudge {
namespace {

using Clock = Channel::Clock;
using Seconds = std::chrono::duration<double>;

// What takes no time in a healthy process: loading, building, restoring, copying.
constexpr Seconds kStepLimit{120};
constexpr std::uint64_t kBlockTimeoutNs = 5'000'000'000;

struct Explanation {
  Verdict verdict;
  const char* text;
};

// What the driver says about kernels that ran.
Explanation explain(std::int32_t result) {
  switch (static_cast<CUresult>(result)) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return {
          Verdict::gpu_fault,
          "read or wrote memory that it may not: inputs are read-only, and nothing but the "
          "tensors and what prepare() allocated is there; check indices at the edges of the shape"};
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return {
          Verdict::gpu_fault,
          "used an address that is not aligned for the access; check vector loads and ragged rows"};
    case CUDA_ERROR_ASSERT:
      return {Verdict::gpu_fault, "failed an assert"};
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
      return {Verdict::gpu_fault, "corrupted its stack or overflowed it"};
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_LAUNCH_FAILED:
      return {Verdict::gpu_fault, "faulted while it ran"};
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return {Verdict::timeout, "was stopped by the driver's time limit"};
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {Verdict::out_of_memory, "needs more memory than the device has"};
    default:
      return {Verdict::runtime_error, "could not be replayed"};
  }
}

// Beside what kjudge itself was started with.
std::map<std::string, std::string> worker_environment(ArmName arm) {
  return {// Loaded behind the block kernel, a kernel would wait for it for ever.
          {"CUDA_MODULE_LOADING", "EAGER"},
          // So would the host for a launch that waits until it is done.
          {"CUDA_LAUNCH_BLOCKING", ""},
          // The machine code that was recorded is what runs: nothing compiles it anew.
          {"CUDA_DISABLE_PTX_JIT", "1"},
          {"CUDA_CACHE_DISABLE", "1"},
          {"CUDA_FORCE_PTX_JIT", ""},
          {"CUDA_FORCE_JIT", ""},
          {"KJUDGE_HOST_PROCESS", cat("worker-", name(arm))}};
}

}  // namespace

Worker::Worker(const WorkerStart& start, const SupervisorDevice& side, Channel::Idle idle)
    : start_(start), bundle_(side.arm(start.arm)), channel_(Fd(), {}), child_([&] {
        auto ends = socket_pair();
        ChildOptions options;
        options.program = start.program.empty() ? "/proc/self/exe" : start.program;
        options.arguments = {"worker", "--socket", "3"};
        options.environment = worker_environment(start.arm);
        options.descriptors = {{2, 1}, {ends[1].get(), 3}};  // stdout is for results
        channel_ = Channel(std::move(ends[0]), std::move(idle));
        return Child(options);
      }()) {
  const bool spin = start.driver.kind == DriverKind::cuda;
  channel_.spin(spin);
  Setup setup;
  setup.arm = static_cast<std::uint32_t>(start.arm);
  setup.start = start.start;
  setup.driver = static_cast<std::uint32_t>(start.driver.kind);
  setup.device = static_cast<std::uint32_t>(start.device);
  setup.spin = spin;
  setup.eviction_bytes = side.eviction().size();
  setup.transfer_bytes = side.transfer(start.slot).size();
  setup.block_timeout_ns = kBlockTimeoutNs;
  const Fd eviction = side.eviction().export_fd();
  const Fd transfer = side.transfer(start.slot).export_fd();
  send(setup, std::array{bundle_.reader->fd(), eviction.get(), transfer.get()});
  for (const SharedMemory& memory : side.memory(start.arm)) {
    const Fd fd = memory.memory->export_fd();
    send(Memory{static_cast<std::uint32_t>(memory.region), memory.purpose}, std::array{fd.get()});
  }
  send(Build{static_cast<std::uint32_t>(side.memory(start.arm).size())});
}

template <class T>
void Worker::send(const T& message, std::span<const int> fds) {
  // A worker that failed says why before it closes its end, and that lies in the queue still.
  if (!channel_.send(message, fds)) expect<Built>(kStepLimit, "ending");
}

template <class T>
T Worker::expect(Seconds limit, const std::string& what, Clock::time_point* at) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  auto received = channel_.receive(deadline);
  switch (received.state) {
    case Channel::Received::closed:
      report_death();
    case Channel::Received::late:
      report_late(what, limit);
    case Channel::Received::malformed:
      report_breach(received.problem);
    case Channel::Received::message:
      break;
  }
  if (const auto failed = Channel::read<Failed>(received.message_body)) report_failure(*failed);
  const auto body = Channel::read<T>(received.message_body);
  if (!body || !received.message_body.fds.empty()) {
    report_breach(cat("message ", static_cast<unsigned>(received.message_body.kind), " of ",
                      received.message_body.body.size(), " bytes while ", what));
  }
  if (at != nullptr) *at = received.at;
  return *body;
}

void Worker::report_death() {
  // The end of the stream comes a moment before the end of the process.
  const auto status = child_.wait(Clock::now() + std::chrono::seconds(5));
  child_.kill();
  const int signal = status ? status->signal : 0;
  // Signals that a process gets for what its own instructions did, so from a kernel of the host
  // driver; any other end can have come from outside.
  const bool own = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
                   signal == SIGABRT || signal == SIGTRAP || signal == SIGSYS;
  throw ArmFailed(
      start_.arm, Verdict::runtime_error, own ? ArmFailed::Cause::arm : ArmFailed::Cause::odd_end,
      cat("the process that replays the ", name(start_.arm), " ended",
          shape_.empty() ? "" : cat(" in shape ", shape_), ": ",
          status ? describe(*status) : std::string("it closed its socket and went on"),
          own && graph_ != nullptr ? cat("; ", suspects(*graph_), " did that") : std::string()));
}

// Where the driver refuses, the submission answers for its own bundle and kernels. The baseline was
// recorded and replayed on this machine, so a refusal is the machine's; its kernels' faults are
// not.
void Worker::report_failure(const Failed& failed) {
  using Cause = ArmFailed::Cause;
  const auto result = static_cast<CUresult>(failed.result);
  const bool submission = start_.arm == ArmName::submission;
  const Cause refused = submission || result == CUDA_SUCCESS ? Cause::arm : Cause::machine;
  const std::string text = readable(failed);
  if (failed.stage == Stage::replay && graph_ != nullptr) {
    const Explanation why = explain(failed.result);
    throw ArmFailed(start_.arm, why.verdict, is_kernel_fault(result) ? Cause::arm : refused,
                    cat("shape ", shape_, ": ", suspects(*graph_), " ", why.text, " (", text, ")"));
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    throw ArmFailed(start_.arm, Verdict::out_of_memory, refused,
                    cat("the ", name(start_.arm),
                        "'s recorded memory does not fit on the "
                        "device beside the judge's; allocate less in prepare() (",
                        text, ")"));
  }
  if (failed.stage == Stage::own) {
    throw ArmFailed(start_.arm, Verdict::runtime_error, Cause::machine,
                    cat("the process that replays the ", name(start_.arm), " failed: ", text));
  }
  throw ArmFailed(start_.arm, Verdict::runtime_error, refused,
                  cat("the ", name(start_.arm), "'s graphs cannot be rebuilt: ", text));
}

void Worker::report_late(const std::string& what, Seconds limit) {
  child_.kill();
  const bool replay = what == "the replay" && graph_ != nullptr;
  throw ArmFailed(start_.arm, Verdict::timeout, ArmFailed::Cause::arm,
                  cat(shape_.empty() ? "" : cat("shape ", shape_, ": "), what,
                      replay ? cat(" of ", suspects(*graph_)) : "", " took longer than ",
                      decimal(limit.count()), " s and was stopped",
                      replay ? "; look for a loop that does not end" : ""));
}

void Worker::report_breach(const std::string& what) {
  child_.kill();
  throw ArmFailed(start_.arm, Verdict::runtime_error, ArmFailed::Cause::arm,
                  cat("the process that replays the ", name(start_.arm),
                      " sent something that kjudge's code never sends (", what,
                      "): a kernel wrote over its memory"));
}

void Worker::wait_built() { expect<Built>(kStepLimit, "loading and rebuilding the graphs"); }

Calibrated Worker::calibrate(std::uint64_t seed) {
  send(Calibrate{seed});
  const auto calibrated = expect<Calibrated>(kStepLimit, "calibrating");
  if (!plausible(calibrated)) report_breach("a clock tick or an empty graph out of bounds");
  return calibrated;
}

Armed Worker::arm(std::size_t shape, ReplayCache cache, std::uint64_t poison, std::uint64_t slots) {
  const std::size_t index = bundle_.shapes[shape];
  const CapturedShape& captured = bundle_.bundle().shapes[index];
  shape_ = captured.name;
  graph_ = &captured.graph;
  send(Arm{static_cast<std::uint32_t>(index), cache, poison, slots});
  Armed armed = expect<Armed>(kStepLimit, "restoring memory");
  armed.restore_ns = std::max(0.0, time_of(armed.restore_ns));
  armed.evict_ns = std::max(0.0, time_of(armed.evict_ns));
  return armed;
}

Worker::Replayed Worker::release() {
  Clock::time_point done_at;
  const auto go = Clock::now();
  send(Release{});
  reach("supervisor", "released");
  const auto done = expect<Done>(Seconds(start_.replay_s), "the replay", &done_at);
  const auto copied = expect<Copied>(kStepLimit, "copying outputs");
  Replayed replayed;
  // Not a number fails the order of the clocks.
  replayed.clocks.event_ns = time_of(copied.event_ns);
  replayed.clocks.stamp_ns = time_of(copied.stamp_ns);
  replayed.clocks.host_ns = time_of(done.host_ns);
  replayed.clocks.supervisor_ns = std::chrono::duration<double, std::nano>(done_at - go).count();
  replayed.copy_ns = std::max(0.0, time_of(copied.copy_ns));
  replayed.gave_up = copied.gave_up != 0;
  replayed.disturbed = copied.disturbed != 0;
  return replayed;
}

}  // namespace kjudge
