// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "replay/confine.h"
#include "replay/rebuild.h"
#include "replay/replay.h"
#include "replay/timed_launch.h"
#include "replay/timing.h"

namespace kjudge {
namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// The supervisor closed its end: there is nothing more to do.
struct Stop {};

class Replayer {
 public:
  explicit Replayer(Channel& channel) : channel_(channel) {}

  void work();
  Stage stage() const { return stage_; }

 private:
  template <class T>
  T expect(Channel::Message& message);
  Channel::Message next();
  template <class T>
  void send(const T& message);
  void step(std::string_view reached) { reach(arm_name_, reached, setup_.start); }

  void set_up();
  void calibrate();
  void replay(const Arm& arm);
  void empty_caches(const Arm& arm);

  Channel& channel_;
  Stage stage_ = Stage::own;
  std::string_view arm_name_ = "worker";
  Setup setup_;
  const Driver* driver_ = nullptr;
  std::unique_ptr<BundleReader> bundle_;
  std::unique_ptr<DeviceSide> device_;
  DeviceMemory eviction_memory_, transfer_memory_;
  std::deque<DeviceMemory> imported_;
  Mapping eviction_, transfer_;
  std::unique_ptr<Rebuild> rebuild_;
  std::unique_ptr<TimedLaunch> launch_;
};

Channel::Message Replayer::next() {
  auto received = channel_.receive(Clock::time_point::max());
  if (received.state == Channel::Received::closed) throw Stop{};
  if (received.state == Channel::Received::malformed) throw Error(Fault::bug, received.problem);
  return std::move(received.message_body);
}

template <class T>
T Replayer::expect(Channel::Message& message) {
  const auto body = Channel::read<T>(message);
  if (!body) {
    throw Error(Fault::bug,
                cat("message ", static_cast<unsigned>(message.kind), " of ", message.body.size(),
                    " bytes where ", static_cast<unsigned>(T::kKind), " was due"));
  }
  return *body;
}

template <class T>
void Replayer::send(const T& message) {
  if (!channel_.send(message)) throw Stop{};
}

void Replayer::work() {
  set_up();
  auto message = next();
  expect<Calibrate>(message);
  calibrate();
  stage_ = Stage::replay;
  for (;;) {
    message = next();
    replay(expect<Arm>(message));
  }
}

void Replayer::set_up() {
  auto message = next();
  setup_ = expect<Setup>(message);
  KJ_CHECK(setup_.version == kProtocolVersion && message.fds.size() == 3);
  arm_name_ = name(static_cast<ArmName>(setup_.arm));
  step("start");
  channel_.spin(setup_.spin != 0);
  step("setup");

  const auto device = static_cast<int>(setup_.device);
  const auto kind = static_cast<DriverKind>(setup_.driver);
  close_files(kind);
  driver_ = &Driver::open(kind);
  bundle_ = std::make_unique<BundleReader>(message.fds[0].get(), "bundle");
  device_ = std::make_unique<DeviceSide>(*driver_, device, arena_range(bundle_->bundle()));
  eviction_memory_ = DeviceMemory::import(*driver_, message.fds[1], setup_.eviction_bytes);
  transfer_memory_ = DeviceMemory::import(*driver_, message.fds[2], setup_.transfer_bytes);

  std::vector<SharedMemory> shared;
  for (message = next(); message.kind == MessageKind::memory; message = next()) {
    const auto memory = expect<Memory>(message);
    const auto& regions = bundle_->bundle().regions;
    KJ_CHECK(memory.region < regions.size() && message.fds.size() == 1);
    imported_.push_back(
        DeviceMemory::import(*driver_, message.fds[0], regions[memory.region].size));
    shared.push_back({memory.region, memory.purpose, &imported_.back()});
    step("memory");
  }
  KJ_CHECK(expect<Build>(message).memories == shared.size());
  step("build");
  close_calls(kind);

  stage_ = Stage::rebuild;
  rebuild_ = std::make_unique<Rebuild>(*device_, bundle_->bundle(), shared);
  stage_ = Stage::own;
  eviction_ = Mapping(*driver_, device, eviction_memory_, Access::read);
  // Kernels of the bundle can write there too; the supervisor wipes it before each replay.
  transfer_ = Mapping(*driver_, device, transfer_memory_, Access::read_write);
  launch_ = std::make_unique<TimedLaunch>(*driver_, device_->kernels, device_->stream.get(),
                                          setup_.block_timeout_ns);
  close_loading(kind);
  step("built");
  send(Built{static_cast<std::uint32_t>(bundle_->bundle().shapes.size())});
}

// The null graph: what events show around a kernel that does nothing.
void Replayer::calibrate() {
  step("calibrate");
  const GraphHandle graph(*driver_);
  StampParams unused{};
  void* parameters[] = {&unused};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = device_->kernels.empty();
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = parameters;
  CUgraphNode node = nullptr;
  KJ_DRIVER(*driver_, cuGraphAddKernelNode(&node, graph.get(), nullptr, 0, &params));
  CUgraphExec exec = nullptr;
  KJ_DRIVER(*driver_, cuGraphInstantiateWithFlags(&exec, graph.get(), 0));
  const GraphExec null_graph(*driver_, exec);

  constexpr int kLaunches = 15;
  std::vector<double> times;
  for (int i = 0; i < kLaunches; ++i) {
    launch_->queue(null_graph.get(), static_cast<std::uint64_t>(i));
    launch_->run();
    times.push_back(launch_->event_ns());
  }
  send(Calibrated{median(std::move(times)), launch_->clock_tick_ns()});
}

// After everything that writes: the last thing the caches see are clean lines.
void Replayer::empty_caches(const Arm& arm) {
  if (arm.cache == ReplayCache::cold) {
    device_->kernels.evict(
        device_->stream.get(),
        EvictParams{eviction_.address(), setup_.eviction_bytes, launch_->sink()});
  } else if (arm.cache == ReplayCache::hot) {
    rebuild_->read_memory(arm.shape, launch_->sink());
  }
  device_->stream.synchronize();
}

void Replayer::replay(const Arm& arm) {
  KJ_CHECK(arm.shape < bundle_->bundle().shapes.size());
  step("arm");
  auto start = Clock::now();
  rebuild_->select(arm.shape);
  rebuild_->restore(arm.shape);
  step("restore");
  rebuild_->poison(arm.shape, arm.poison);
  step("poison");
  device_->kernels.scrub(device_->stream.get(), static_cast<std::uint32_t>(arm.poison));
  device_->stream.synchronize();
  // evict_last lines outlive an eviction by reads; a device without the feature refuses the call.
  const CUresult reset = driver_->cuCtxResetPersistingL2Cache();
  if (reset != CUDA_ERROR_NOT_SUPPORTED) {
    check_driver(*driver_, reset, "cuCtxResetPersistingL2Cache");
  }
  Armed armed;
  armed.restore_ns = ns_since(start);
  start = Clock::now();
  empty_caches(arm);
  armed.evict_ns = ns_since(start);
  step("evict");

  launch_->queue(rebuild_->exec(arm.shape), arm.slots);
  step("queue");
  send(armed);
  step("armed");
  auto message = next();
  expect<Release>(message);
  step("release");

  // Between here and `done` lies nothing but the timed launch.
  Done done;
  done.host_ns = launch_->run();
  step("launched");
  send(done);
  step("done");

  start = Clock::now();
  rebuild_->copy_written(arm.shape, transfer_.address());
  device_->stream.synchronize();
  step("copy");
  Copied copied;
  copied.event_ns = launch_->event_ns();
  copied.stamp_ns = launch_->stamp_ns();
  copied.copy_ns = ns_since(start);
  copied.gave_up = launch_->gave_up();
  copied.disturbed = launch_->disturbed();
  send(copied);
  step("copied");
}

Failed failure(CUresult result, Stage stage, std::string_view text) {
  Failed failed;
  failed.result = static_cast<std::int32_t>(result);
  failed.stage = stage;
  failed.text_bytes = static_cast<std::uint32_t>(std::min(text.size(), failed.text.size()));
  std::copy_n(text.begin(), failed.text_bytes, failed.text.begin());
  return failed;
}

}  // namespace

// The supervisor is told what happened while what happened is still being undone: the kernels of a
// bundle may have left the context in any state.
int run_worker(int socket) {
  ::prctl(PR_SET_NAME, "kjudge-worker");
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  Channel channel(Fd(socket), [] {});
  Replayer replayer(channel);
  try {
    replayer.work();
  } catch (const Stop&) {
    return 0;
  } catch (const DriverError& error) {
    channel.send(failure(error.result(), replayer.stage(), error.what()));
  } catch (const std::exception& error) {
    channel.send(failure(CUDA_SUCCESS, replayer.stage(), error.what()));
  }
  return 1;
}

}  // namespace kjudge
