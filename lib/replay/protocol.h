// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "error.h"
#include "file.h"

namespace kjudge {

// What supervisor and worker say to each other over one SOCK_SEQPACKET socket. Both are the same
// binary, so a message is a header and a struct of fixed size. The supervisor reads a worker's as
// hostile: a host kernel can write anything into its worker.
//
//   supervisor                worker
//   setup, memory x N, build
//                             built                     graphs rebuilt, nothing launched
//   calibrate                 calibrated
//   then for every replay
//   arm                                                 restore, poison, scrub, evict, queue
//                             armed                     the device waits at the block kernel
//   release                                             unblock, wait
//                             done
//                             copied                    outputs are in the transfer buffer
//
// In place of any of its messages a worker may send `failed`, then ends. The end of the stream is
// the order to stop.
//
// The processes that run a challenge's own Python (challenge_python.h, harness/call_reference.py,
// harness/call_inputs.py, harness/call_check.py) have a few of them:
//
//   supervisor                reference, inputs, or check
//   reference_tensor x N, build
//                             built                     imported, prepare() called
//   then for every replay
//   call, or fill             called                    expected outputs, or inputs, are in memory
//   judge                     judged                    of the outputs that are in memory
inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kProtocolMagic = 0x4b4a5250;  // "KJRP"

enum class MessageKind : std::uint32_t {
  setup = 1,
  memory,
  build,
  built,
  calibrate,
  calibrated,
  arm,
  armed,
  release,
  done,
  copied,
  failed,
  reference_tensor,
  call,
  called,
  fill,
  judge,
  judged,
};

enum class ReplayCache : std::uint32_t { as_is, cold, hot };  // as_is: an untimed replay

struct Setup {  // with three descriptors: bundle, eviction buffer, transfer buffer
  static constexpr auto kKind = MessageKind::setup;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t arm = 0;     // ArmName
  std::uint32_t start = 0;   // which worker of this arm it is, from 1
  std::uint32_t driver = 0;  // DriverKind
  std::uint32_t device = 0;
  std::uint32_t spin = 0;  // wait for messages without sleeping
  std::uint64_t eviction_bytes = 0;
  std::uint64_t transfer_bytes = 0;
  std::uint64_t block_timeout_ns = 0;
};

// What a region's shared memory is for; says access and place too (rebuild.h).
enum class Purpose : std::uint32_t { input, inout_source, pristine };

struct Memory {  // with one descriptor
  static constexpr auto kKind = MessageKind::memory;
  std::uint32_t region = 0;  // index into Bundle::regions
  Purpose purpose = Purpose::input;
};

struct Build {
  static constexpr auto kKind = MessageKind::build;
  std::uint32_t memories = 0;  // how many `memory` came before
};

struct Built {
  static constexpr auto kKind = MessageKind::built;
  std::uint32_t shapes = 0;
};

struct Calibrate {
  static constexpr auto kKind = MessageKind::calibrate;
  std::uint64_t seed = 0;
};

struct Calibrated {
  static constexpr auto kKind = MessageKind::calibrated;
  double null_graph_ns = 0;
  double tick_ns = 0;
};

struct Arm {
  static constexpr auto kKind = MessageKind::arm;
  std::uint32_t shape = 0;  // index into Bundle::shapes
  ReplayCache cache = ReplayCache::as_is;
  std::uint64_t poison = 0;  // seed of the outputs' random bytes
  std::uint64_t slots = 0;   // seed of where stamps and events lie
};

struct Armed {
  static constexpr auto kKind = MessageKind::armed;
  double restore_ns = 0, evict_ns = 0;
};

struct Release {
  static constexpr auto kKind = MessageKind::release;
};

struct Done {
  static constexpr auto kKind = MessageKind::done;
  double host_ns = 0;
};

struct Copied {
  static constexpr auto kKind = MessageKind::copied;
  double event_ns = 0, stamp_ns = 0, copy_ns = 0;
  std::uint32_t gave_up = 0;    // the block kernel ran out of time before the release
  std::uint32_t disturbed = 0;  // something else wrote to the flag or the stamps
};

// What a worker was doing when it failed.
enum class Stage : std::uint32_t {
  own = 0,      // what kjudge does in every worker, before the bundle has a part in it
  rebuild = 1,  // the bundle's memory, modules, graphs
  replay = 2,
};

struct Failed {
  static constexpr auto kKind = MessageKind::failed;
  std::int32_t result = 0;  // CUresult; 0: not the driver's
  Stage stage = Stage::own;
  std::uint32_t text_bytes = 0;
  std::array<char, 900> text{};
};

struct ReferenceTensor {  // with one descriptor
  static constexpr auto kKind = MessageKind::reference_tensor;
  std::uint32_t shape = 0;   // in the order of the request
  std::uint32_t tensor = 0;  // inputs, then outputs, in the challenge's order
  std::uint64_t size_bytes = 0;
};

struct Call {
  static constexpr auto kKind = MessageKind::call;
  std::uint32_t shape = 0;
};

struct Called {
  static constexpr auto kKind = MessageKind::called;
};

struct Fill {
  static constexpr auto kKind = MessageKind::fill;
  std::uint32_t shape = 0;   // as in the request
  std::uint32_t regime = 0;  // of the shape's
  std::uint64_t seed = 0;
};

struct Judge {
  static constexpr auto kKind = MessageKind::judge;
  std::uint32_t shape = 0;   // as in the request
  std::uint32_t regime = 0;  // of the shape's
  std::uint32_t output = 0;  // of the shape's
};

struct Judged {
  static constexpr auto kKind = MessageKind::judged;
  double error = 0;
  std::uint32_t reserved = 0;
  std::uint32_t text_bytes = 0;
  std::array<char, 900> text{};
};

// What the supervisor makes of a worker's words and numbers, which may be anything.
std::string readable(const Failed& failed);  // one line of printable ASCII
double time_of(double ns);                   // NaN unless it is a length of time
bool plausible(const Calibrated& calibrated);

// One end of the conversation. All blocking calls wait in slices and call `idle` between them,
// which may throw.
class Channel {
 public:
  using Clock = std::chrono::steady_clock;
  using Idle = std::function<void()>;

  Channel(Fd socket, Idle idle) : socket_(std::move(socket)), idle_(std::move(idle)) {}

  // True: receive() polls without sleeping. For GPUs, where cores are idle and a sleeping thread's
  // wake-up would be in the supervisor's time.
  void spin(bool on) { spin_ = on; }

  struct Message {
    MessageKind kind{};
    std::vector<std::byte> body;
    std::vector<Fd> fds;
  };
  struct Received {
    enum { message, closed, late, malformed } state = closed;
    Message message_body;
    std::string problem;  // of malformed
    Clock::time_point at;
  };
  Received receive(Clock::time_point deadline);

  // False when the other side is gone.
  template <class T>
  bool send(const T& body, std::span<const int> fds = {}) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxBody);
    return send_bytes(T::kKind, std::is_empty_v<T> ? nullptr : &body,
                      std::is_empty_v<T> ? 0 : sizeof(T), fds);
  }

  // The body of a message of kind T; nullopt when its size is wrong.
  template <class T>
  static std::optional<T> read(const Message& message) {
    static_assert(std::is_trivially_copyable_v<T>);
    T body{};
    if (message.kind != T::kKind || message.body.size() != (std::is_empty_v<T> ? 0 : sizeof(T))) {
      return std::nullopt;
    }
    if (!message.body.empty()) std::memcpy(&body, message.body.data(), message.body.size());
    return body;
  }

  static constexpr std::size_t kMaxBody = 1024;
  static constexpr std::size_t kMaxFds = 4;

 private:
  bool send_bytes(MessageKind kind, const void* body, std::size_t size, std::span<const int> fds);

  Fd socket_;
  Idle idle_;
  bool spin_ = false;
};

// Two connected ends, close-on-exec.
std::array<Fd, 2> socket_pair();

// Named steps of the protocol at which KJUDGE_TEST_KILL=ACTOR:STEP[:START] kills the process that
// comes there; ACTOR is baseline, submission or supervisor, START the ordinal of the arm's worker
// (default: every one).
void reach(std::string_view actor, std::string_view step, unsigned start = 1);

}  // namespace kjudge
