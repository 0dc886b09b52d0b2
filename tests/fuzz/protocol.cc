// SPDX-License-Identifier: Apache-2.0
// Any bytes, with any number of descriptors, as messages between supervisor and worker. Each
// message of the input is one byte of descriptors, two of its size, and as many bytes, the
// protocol's header among them. It is read as every kind of message that either side waits for, and
// what the supervisor makes of a worker's is held to its bounds.

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "replay/protocol.h"

using namespace kjudge;

namespace {

void must(bool right) {
  if (!right) std::abort();
}

// False when the kernel takes no more.
bool send_raw(int socket, std::span<const std::uint8_t> bytes, std::size_t descriptors) {
  std::array<int, 8> fds;
  fds.fill(socket);
  descriptors = std::min(descriptors, fds.size());
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptors > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * descriptors);
    std::memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * descriptors);
  }
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

template <class... Kinds>
void read_as(const Channel::Message& message) {
  const int read = (... + (Channel::read<Kinds>(message) ? 1 : 0));
  must(read <= 1);
}

void read(const Channel::Message& message) {
  must(message.body.size() <= Channel::kMaxBody && message.fds.size() <= Channel::kMaxFds);
  read_as<Setup, Memory, Build, Built, Calibrate, Calibrated, Arm, Armed, Release, Done, Copied,
          Failed, ReferenceTensor, Call, Called, Fill>(message);
  const auto length = [](double ns) { return ns >= 0 && std::isfinite(ns); };
  if (const auto failed = Channel::read<Failed>(message)) {
    const std::string text = readable(*failed);
    must(text.size() <= failed->text.size());
    for (const char c : text) must(c >= ' ' && c <= '~');
  }
  if (const auto calibrated = Channel::read<Calibrated>(message);
      calibrated && plausible(*calibrated)) {
    must(length(calibrated->null_graph_ns) && length(calibrated->tick_ns));
  }
  if (const auto done = Channel::read<Done>(message)) {
    const double ns = time_of(done->host_ns);
    must(std::isnan(ns) || length(ns));
  }
}

int lowest_free_descriptor() {
  const int fd = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
  must(fd >= 0);
  ::close(fd);
  return fd;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int free_before = lowest_free_descriptor();
  {
    std::span<const std::uint8_t> rest(data, size);
    auto [ours, theirs] = socket_pair();
    Channel channel(std::move(ours), [] {});
    while (rest.size() >= 3) {
      const std::size_t descriptors = rest[0];
      const std::size_t wanted = rest[1] | std::size_t{rest[2]} << 8;
      rest = rest.subspan(3);
      const auto bytes = rest.first(std::min(wanted, rest.size()));
      rest = rest.subspan(bytes.size());
      if (!send_raw(theirs.get(), bytes, descriptors)) break;
      // An empty message reads as the end of the stream.
      const auto received =
          channel.receive(Channel::Clock::now() + std::chrono::seconds(bytes.empty() ? 0 : 5));
      must(received.state != Channel::Received::late || bytes.empty());
      if (received.state == Channel::Received::message) read(received.message_body);
    }
    theirs.reset();
    must(channel.receive(Channel::Clock::now() + std::chrono::seconds(5)).state ==
         Channel::Received::closed);
  }
  must(lowest_free_descriptor() == free_before);  // none was left open
  return 0;
}
