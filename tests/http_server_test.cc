// SPDX-License-Identifier: Apache-2.0
#include "web/server/http_server.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "file.h"

namespace kjudge {
namespace {

class Swallow : public HttpBody {
 public:
  void take(std::string_view) override {}
  HttpAnswer finish() override { return {}; }
};

class Quiet : public HttpService {
 public:
  Begun begin(const HttpRequest& request) override {
    if (request.method == "POST") return std::make_unique<Swallow>();
    return HttpAnswer{};
  }
  std::uint64_t limit_bytes() const override { return 1000; }
};

// A server in a thread of its own.
class Running {
 public:
  explicit Running(const HttpLimits& limits)
      : server_(service_, "127.0.0.1:0", {[](const std::string&) {}, [](const std::string&) {}},
                limits),
        thread_([this] { server_.run([this] { return stop_.load(); }); }) {}
  ~Running() {
    stop_ = true;
    thread_.join();
  }

  Fd connect() const {
    const std::string address = server_.address();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    return fd;
  }

 private:
  Quiet service_;
  HttpServer server_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

void say(const Fd& fd, std::string_view text) {
  REQUIRE(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
}

// Until the server ends the connection.
std::string hear(const Fd& fd) {
  std::string all;
  std::array<char, 4096> block{};
  for (ssize_t n = 0; (n = ::read(fd.get(), block.data(), block.size())) > 0;) {
    all.append(block.data(), static_cast<std::size_t>(n));
  }
  return all;
}

// All but the time that is tested last longer than a test may.
HttpLimits patient() {
  constexpr std::chrono::seconds kLong(1000);
  HttpLimits limits;
  limits.idle = limits.header = limits.pause = limits.body = kLong;
  limits.linger = std::chrono::seconds(1);
  return limits;
}

}  // namespace

TEST_CASE("a client that never ends its header is let go") {
  HttpLimits limits = patient();
  limits.header = std::chrono::seconds(1);
  const Running server(limits);
  const Fd slow = server.connect();
  say(slow, "GET / HTTP/1.1\r\nHost: x\r\nX: ");
  CHECK(hear(slow).empty());
}

TEST_CASE("a client that says nothing is let go") {
  HttpLimits limits = patient();
  limits.idle = std::chrono::seconds(1);
  const Running server(limits);
  CHECK(hear(server.connect()).empty());
}

TEST_CASE("a body that stops coming, or comes for too long, ends") {
  constexpr std::string_view kBegun =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\nbegun";
  HttpLimits limits = patient();
  SUBCASE("stops") { limits.pause = std::chrono::seconds(1); }
  SUBCASE("too long") { limits.body = std::chrono::seconds(1); }
  const Running server(limits);
  const Fd slow = server.connect();
  say(slow, kBegun);
  CHECK(hear(slow).empty());
}

TEST_CASE("chunks without end are held to the limit of a body") {
  const Running server(patient());
  const Fd greedy = server.connect();
  say(greedy, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 11; ++i) say(greedy, "64\r\n" + std::string(100, '#') + "\r\n");
  CHECK(hear(greedy).starts_with("HTTP/1.1 413 "));
}

TEST_CASE("past the limit of connections one is turned away, the others stay") {
  HttpLimits limits = patient();
  limits.connections = 1;
  const Running server(limits);
  const Fd first = server.connect();
  say(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  std::array<char, 16> begin{};
  REQUIRE(::recv(first.get(), begin.data(), begin.size(), MSG_WAITALL) == begin.size());
  const std::string refused = hear(server.connect());
  CHECK(refused.starts_with("HTTP/1.1 503 "));
  CHECK(refused.find("Retry-After: ") != refused.npos);
  say(first, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  CHECK(hear(first).find("HTTP/1.1 200 OK") != std::string::npos);
}

TEST_CASE("a body of two lengths, or of a length and chunks, is no request") {
  const Running server(patient());
  for (const std::string_view lengths :
       {"Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999999\r\n"}) {
    const Fd sly = server.connect();
    say(sly, "POST / HTTP/1.1\r\nHost: x\r\n");
    say(sly, lengths);
    say(sly, "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = hear(sly);
    INFO(lengths);
    CHECK(answer.starts_with("HTTP/1.1 400 "));
    CHECK(answer.find("HTTP/1.1 2") == answer.npos);
  }
}

}  // namespace kjudge
