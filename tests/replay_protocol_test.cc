// SPDX-License-Identifier: Apache-2.0
#include "replay/protocol.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "replay/replay.h"

using namespace kjudge;

namespace {

Channel::Clock::time_point soon() { return Channel::Clock::now() + std::chrono::seconds(60); }

}  // namespace

TEST_CASE("a message and its descriptors arrive whole") {
  auto [ours, theirs] = socket_pair();
  Channel left(std::move(ours), [] {}), right(std::move(theirs), [] {});
  int pipe_ends[2];
  REQUIRE(::pipe2(pipe_ends, O_CLOEXEC) == 0);
  const Fd reading(pipe_ends[0]), writing(pipe_ends[1]);

  REQUIRE(left.send(Arm{3, ReplayCache::hot, 77, 99}, std::array{writing.get()}));
  auto received = right.receive(soon());
  REQUIRE(received.state == Channel::Received::message);
  const auto arm = Channel::read<Arm>(received.message_body);
  REQUIRE(arm);
  CHECK(arm->shape == 3);
  CHECK(arm->cache == ReplayCache::hot);
  CHECK(arm->poison == 77);
  REQUIRE(received.message_body.fds.size() == 1);
  CHECK(::write(received.message_body.fds[0].get(), "x", 1) == 1);
  char byte = 0;
  CHECK(::read(reading.get(), &byte, 1) == 1);
  CHECK(byte == 'x');

  REQUIRE(left.send(Release{}));
  received = right.receive(soon());
  CHECK(Channel::read<Release>(received.message_body));
  CHECK_FALSE(Channel::read<Arm>(received.message_body));
  CHECK_FALSE(Channel::read<Build>(received.message_body));
}

TEST_CASE("what is no message of the protocol is told from one") {
  auto [ours, theirs] = socket_pair();
  const int raw = theirs.get();
  Channel channel(std::move(ours), [] {});
  const auto after = [&](std::size_t size) {
    std::vector<char> junk(size, 'j');
    REQUIRE(::send(raw, junk.data(), size, 0) == static_cast<ssize_t>(size));
    return channel.receive(soon()).state;
  };
  CHECK(after(1) == Channel::Received::malformed);
  CHECK(after(8) == Channel::Received::malformed);
  CHECK(after(100) == Channel::Received::malformed);
  CHECK(after(5000) == Channel::Received::malformed);  // longer than any
  const std::uint32_t header[2] = {kProtocolMagic, static_cast<std::uint32_t>(MessageKind::done)};
  REQUIRE(::send(raw, header, sizeof header, 0) == sizeof header);
  const auto received = channel.receive(soon());
  CHECK(received.state == Channel::Received::message);
  CHECK_FALSE(Channel::read<Done>(received.message_body));  // without its body
}

TEST_CASE("a worker's numbers are lengths of time, or nothing") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(time_of(0) == 0);
  CHECK(time_of(1.5e6) == 1.5e6);
  for (const double none : {-1.0, 86'400e9 + 1, 1e300, kInfinity, -kInfinity, std::nan("")}) {
    CHECK(std::isnan(time_of(none)));
    CHECK_FALSE(plausible({2560, none}));
    CHECK_FALSE(plausible({none, 32}));
  }
  CHECK(plausible({2560, 32}));
  CHECK(plausible({0, 0}));
  CHECK_FALSE(plausible({2560, 1e6}));
}

// Found beside fuzz_protocol: the result could not be written, and the judge was blamed.
TEST_CASE("an empty graph that takes for ever is not believed") {
  CHECK_FALSE(plausible({std::numeric_limits<double>::infinity(), 32}));
  CHECK_FALSE(plausible({1e300, 32}));
}

TEST_CASE("a worker's words are one line of printable text, however long it says they are") {
  Failed failed;
  const std::string_view text = "kernel \x1b[31m\n\xc3\xa9 faulted";
  std::copy(text.begin(), text.end(), failed.text.begin());
  failed.text_bytes = static_cast<std::uint32_t>(text.size());
  CHECK(readable(failed) == "kernel ?[31m??? faulted");
  failed.text_bytes = 0xffffffff;
  CHECK(readable(failed).size() == failed.text.size());
}

TEST_CASE("more descriptors than any message has are closed, not leaked") {
  const auto open_count = [] {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) != -1;
    return count;
  };
  auto [ours, theirs] = socket_pair();
  const int raw = theirs.get();
  Channel channel(std::move(ours), [] {});
  const int before = open_count();
  std::uint32_t header[2] = {kProtocolMagic, static_cast<std::uint32_t>(MessageKind::release)};
  iovec part{header, sizeof header};
  std::array<int, 32> fds;
  fds.fill(raw);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(rights), fds.data(), sizeof fds);
  REQUIRE(::sendmsg(raw, &message, 0) == sizeof header);
  CHECK(channel.receive(soon()).state == Channel::Received::malformed);
  CHECK(open_count() == before);
}

TEST_CASE("the end of the stream, a deadline and an idle callback that throws end a wait") {
  auto [ours, theirs] = socket_pair();
  int idles = 0;
  Channel channel(std::move(ours), [&] { ++idles; });
  for (const bool spin : {false, true}) {
    channel.spin(spin);
    idles = 0;
    const auto start = Channel::Clock::now();
    CHECK(channel.receive(start + std::chrono::milliseconds(180)).state == Channel::Received::late);
    CHECK(Channel::Clock::now() - start >= std::chrono::milliseconds(180));
    CHECK(idles >= 2);
  }
  channel.spin(false);
  theirs.reset();
  CHECK(channel.receive(soon()).state == Channel::Received::closed);
  CHECK_FALSE(channel.send(Release{}));

  auto [left, right] = socket_pair();
  Channel impatient(std::move(left), [] { throw 7; });
  CHECK_THROWS_AS(impatient.receive(soon()), int);
}

TEST_CASE("every kill point names an actor and a step once") {
  const auto points = kill_points();
  CHECK(points.size() > 40);
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(points[i] != points[j]);
  }
}

// A worker whose driver does not start says so, and ends before it has read what it was sent.
TEST_CASE("what the other side said is heard though it ended with messages unread") {
  auto [ours, theirs] = socket_pair();
  Channel left(std::move(ours), [] {});
  {
    Channel right(std::move(theirs), [] {});
    REQUIRE(left.send(Release{}));
    Failed failed;
    failed.result = 2;
    REQUIRE(right.send(failed));
  }
  const auto received = left.receive(soon());
  REQUIRE(received.state == Channel::Received::message);
  const auto failed = Channel::read<Failed>(received.message_body);
  REQUIRE(failed);
  CHECK(failed->result == 2);
  CHECK(left.receive(soon()).state == Channel::Received::closed);
}
