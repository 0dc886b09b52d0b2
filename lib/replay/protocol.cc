// SPDX-License-Identifier: Apache-2.0
#include "replay/protocol.h"

#include <immintrin.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "replay/plausible.h"
#include "replay/replay.h"

namespace kjudge {
namespace {

struct Header {
  std::uint32_t magic = kProtocolMagic;
  MessageKind kind{};
};

constexpr auto kSlice = std::chrono::milliseconds(50);

}  // namespace

std::string readable(const Failed& failed) {
  std::string text;
  const std::size_t size = std::min<std::size_t>(failed.text_bytes, failed.text.size());
  for (std::size_t i = 0; i < size; ++i) {
    const char c = failed.text[i];
    text += c >= ' ' && c <= '~' ? c : '?';
  }
  return text;
}

double time_of(double ns) { return ns >= 0 && ns <= kMostNs ? ns : std::nan(""); }

bool plausible(const Calibrated& calibrated) {
  constexpr double kLongestGraphNs = 1e9, kLongestTickNs = 1e6;
  return calibrated.null_graph_ns >= 0 && calibrated.null_graph_ns < kLongestGraphNs &&
         calibrated.tick_ns >= 0 && calibrated.tick_ns < kLongestTickNs;
}

bool Channel::send_bytes(MessageKind kind, const void* body, std::size_t size,
                         std::span<const int> fds) {
  KJ_CHECK(fds.size() <= kMaxFds);
  Header header;
  header.kind = kind;
  std::array<iovec, 2> parts = {{{&header, sizeof header}, {const_cast<void*>(body), size}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = size == 0 ? 1 : 2;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return true;
    if (errno == EPIPE || errno == ECONNRESET) return false;
    if (errno != EINTR) throw_errno("send to the other side of a replay");
    idle_();
  }
}

Channel::Received Channel::receive(Clock::time_point deadline) {
  Received received;
  std::array<std::byte, sizeof(Header) + kMaxBody> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control;
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;

  auto slice_end = Clock::now() + kSlice;
  ssize_t n = -1;
  bool reset = false;
  for (;;) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    received.at = Clock::now();
    if (n >= 0) break;
    if (errno == ECONNRESET) {
      // It ended with messages unread. That is told once, before what it had sent.
      if (std::exchange(reset, true)) return received;
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) throw_errno("receive from the other side of a replay");
    if (received.at >= deadline) {
      received.state = Received::late;
      return received;
    }
    if (!spin_) {
      pollfd polled{socket_.get(), POLLIN, 0};
      const auto wait = std::min<Clock::duration>(deadline - received.at, kSlice);
      ::poll(&polled, 1,
             static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count()));
    } else {
      _mm_pause();
    }
    if (Clock::now() >= slice_end) {
      idle_();
      slice_end = Clock::now() + kSlice;
    }
  }
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
       entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level != SOL_SOCKET || entry->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= entry->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(entry) + at, sizeof fd);
      received.message_body.fds.emplace_back(fd);
    }
  }
  if (n == 0) return received;  // a message always has its header: this is the end of the stream

  Header header;
  const auto size = static_cast<std::size_t>(n);
  if (size >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  if (size < sizeof header || header.magic != kProtocolMagic ||
      (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    received.state = Received::malformed;
    received.problem = cat("a message of ", size, " bytes that is none of the protocol's");
    return received;
  }
  received.state = Received::message;
  received.message_body.kind = header.kind;
  received.message_body.body.assign(bytes.begin() + sizeof header, bytes.begin() + n);
  return received;
}

std::array<Fd, 2> socket_pair() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_errno("socketpair");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

namespace {

constexpr std::string_view kWorkerSteps[] = {
    "start", "setup", "memory", "build",   "built",    "calibrate", "arm",  "restore", "poison",
    "evict", "queue", "armed",  "release", "launched", "done",      "copy", "copied",
};
constexpr std::string_view kSupervisorSteps[] = {
    "context",  "inputs", "reference",  "started",  "built",    "self-check",
    "checking", "round",  "calibrated", "filled",   "expected", "armed",
    "released", "done",   "checked",    "finished",
};

}  // namespace

std::vector<std::string> kill_points() {
  std::vector<std::string> points;
  for (const std::string_view arm : {"baseline", "submission"}) {
    for (const std::string_view step : kWorkerSteps) points.push_back(cat(arm, ":", step));
  }
  for (const std::string_view step : kSupervisorSteps) points.push_back(cat("supervisor:", step));
  return points;
}

void reach(std::string_view actor, std::string_view step, unsigned start) {
  // Read once: an environment variable is not looked up between two clocks.
  static const char* const wanted = std::getenv("KJUDGE_TEST_KILL");
  if (wanted == nullptr) return;
  const std::string point = cat(actor, ":", step);
  const std::string_view text = wanted;
  if (!text.starts_with(point)) return;
  const std::string_view rest = text.substr(point.size());
  if (rest.empty() || rest == cat(":", start)) ::raise(SIGKILL);
}

}  // namespace kjudge
