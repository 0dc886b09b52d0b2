// SPDX-License-Identifier: Apache-2.0
#include "web/server/http_server.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "error.h"
#include "file.h"

using namespace kjudge;
using namespace std::chrono_literals;

namespace {

// Answers a GET with its path, and a POST with how many bytes there were.
class Echo : public HttpService {
 public:
  Begun begin(HttpRequest& request) override {
    if (request.path.starts_with("/ada")) request.who = "ada";
    if (request.path == "/ada/refused") throw HttpProblem(429, "slowly", 7);
    if (request.path == "/ada/read") throw HttpProblem::wrong_method("GET, HEAD");
    if (request.method == "POST") return std::make_unique<Body>(request.path == "/anonymous");
    if (request.path == "/broken") throw Error(Fault::host, "no disk");
    if (request.path == "/refused") throw HttpProblem(429, "slowly", 7);
    HttpAnswer answer;
    answer.body = request.path == "/large" ? std::string(64 << 20, 'x') : request.path;
    return answer;
  }
  std::uint64_t limit_bytes() const override { return 1000; }

 private:
  class Body : public HttpBody {
   public:
    explicit Body(bool anonymous) : anonymous_(anonymous) {}
    bool is_anonymous() const override { return anonymous_; }
    void take(std::string_view bytes) override { count_ += bytes.size(); }
    HttpAnswer finish() override {
      HttpAnswer answer;
      answer.body = std::to_string(count_);
      return answer;
    }
    const bool anonymous_;
    std::size_t count_ = 0;
  };
};

class Running {
 public:
  explicit Running(const HttpLimits& limits = {})
      : server_(echo_, "127.0.0.1:0",
                {[this](const std::string& line) { note(line); },
                 [this](const std::string& line) { note(line); }},
                limits),
        thread_([this] { server_.run([this] { return stopping_.load(); }); }) {}
  ~Running() { stop(); }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  Fd connect() const {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    const std::string text = server_.address();
    address.sin_port = ::htons(static_cast<std::uint16_t>(std::stoi(text.substr(10))));
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  void note(const std::string& line) {
    const std::lock_guard lock(mutex_);
    log_ += line + "\n";
  }

  Echo echo_;
  std::mutex mutex_;
  std::string log_;
  std::atomic<bool> stopping_ = false;
  HttpServer server_;
  std::thread thread_;
};

void send_text(const Fd& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// All that comes until the server closes.
std::string read_to_end(const Fd& fd) {
  std::string text;
  char block[4096];
  for (ssize_t n; (n = ::recv(fd.get(), block, sizeof block, 0)) > 0;) {
    text.append(block, static_cast<std::size_t>(n));
  }
  return text;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

// All but the limit that is tested last longer than a test may.
HttpLimits patient() {
  HttpLimits limits;
  limits.idle = limits.header = limits.pause = limits.body = limits.answer = 1000s;
  limits.linger = limits.ending = 1s;
  return limits;
}

// Sends what was begun and then byte after byte, until it is let go: a server that did not would
// hold this for ever.
void check_dripping(const HttpLimits& limits, const std::string& begun) {
  const Running server(limits);
  const Fd fd = server.connect();
  send_text(fd, begun);
  pollfd one{fd.get(), POLLIN, 0};
  while (::poll(&one, 1, 20) == 0) send_text(fd, "x");
  CHECK(read_to_end(fd) == "");
}

}  // namespace

TEST_CASE("a request and its answer, with what keeps browsers safe") {
  Running server;
  const Fd fd = server.connect();
  send_text(fd, "GET /a?token=secret HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string answer = read_to_end(fd);
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer.ends_with("\r\n\r\n/a"));
  CHECK(has(answer, "Content-Security-Policy: default-src 'none';"));
  CHECK(has(answer, "X-Content-Type-Options: nosniff\r\n"));
  server.stop();
  CHECK(has(server.log(), "127.0.0.1 - GET /a 200 2 "));
  CHECK_FALSE(has(server.log(), "secret"));
}

TEST_CASE("what a service throws becomes an answer, and its reason stays here") {
  Running server;
  const Fd fd = server.connect();
  send_text(fd, "GET /broken HTTP/1.1\r\n\r\nGET /refused HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string answers = read_to_end(fd);
  CHECK(answers.starts_with("HTTP/1.1 503 "));
  CHECK_FALSE(has(answers, "no disk"));
  CHECK(has(answers, "HTTP/1.1 429 Too Many Requests\r\n"));
  CHECK(has(answers, "Retry-After: 7\r\n"));
  CHECK(has(answers, "{\"error\": \"slowly\"}"));
  CHECK(has(server.log(), "GET /broken: no disk"));
}

TEST_CASE("clients that are silent or slow are let go") {
  HttpLimits limits = patient();
  SUBCASE("nothing is said") {
    limits.idle = 1s;
    const Running server(limits);
    CHECK(read_to_end(server.connect()) == "");
  }
  SUBCASE("a header drips, however steadily") {
    limits.header = 1s;
    check_dripping(limits, "GET / HTTP/1.1\r\nX: ");
  }
  SUBCASE("a body stops") {
    limits.pause = 1s;
    Running server(limits);
    const Fd fd = server.connect();
    send_text(fd, "POST / HTTP/1.1\r\nContent-Length: 900\r\n\r\nbegun");
    CHECK(read_to_end(fd) == "");
    server.stop();
    CHECK(has(server.log(), "127.0.0.1 - POST / 408 0 "));
  }
  SUBCASE("a body drips, however steadily") {
    limits.body = 1s;
    check_dripping(limits, "POST / HTTP/1.1\r\nContent-Length: 999\r\n\r\n");
  }
  SUBCASE("an anonymous body drips") {
    limits.header = 1s;
    check_dripping(limits, "POST /anonymous HTTP/1.1\r\nContent-Length: 999\r\n\r\n");
  }
  SUBCASE("an answer is not taken") {
    limits.answer = 1s;
    Running server(limits);
    const Fd fd = server.connect();
    send_text(fd, "GET /large HTTP/1.1\r\n\r\n");
    while (!has(server.log(), "GET /large 200 ")) std::this_thread::sleep_for(10ms);
    CHECK(read_to_end(fd).size() < 64u << 20);
  }
}

TEST_CASE("bodies of nobody known keep nobody from handing in") {
  HttpLimits limits = patient();
  limits.bodies = 1;
  limits.anonymous = 2;
  const Running server(limits);
  constexpr std::string_view kBegun =
      "POST /anonymous HTTP/1.1\r\nContent-Length: 999\r\n\r\nbegun";
  const Fd first = server.connect(), second = server.connect();
  send_text(first, kBegun);
  send_text(second, kBegun);
  std::string refused;
  while (!refused.starts_with("HTTP/1.1 503 ")) {  // once both are being taken
    const Fd fd = server.connect();
    send_text(fd, kBegun);
    ::shutdown(fd.get(), SHUT_WR);
    refused = read_to_end(fd);
  }
  const Fd fd = server.connect();
  send_text(fd, "POST / HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
  CHECK(read_to_end(fd).ends_with("\r\n\r\n3"));
}

TEST_CASE("whose a request was is logged also where it is refused; 405 says what is allowed") {
  Running server;
  const Fd fd = server.connect();
  send_text(fd,
            "GET /ada/refused HTTP/1.1\r\n\r\nDELETE /ada/read HTTP/1.1\r\n"
            "Connection: close\r\n\r\n");
  CHECK(has(read_to_end(fd), "Allow: GET, HEAD\r\n"));
  server.stop();
  CHECK(has(server.log(), "127.0.0.1 ada GET /ada/refused 429 "));
  CHECK(has(server.log(), "127.0.0.1 ada DELETE /ada/read 405 "));
}

TEST_CASE("beyond the most connections one hears that there are too many") {
  HttpLimits limits;
  limits.connections = 3;
  Running server(limits);
  std::vector<Fd> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(server.connect());
    send_text(held.back(), "GET /held HTTP/1.1\r\n\r\n");
    char first;
    REQUIRE(::recv(held.back().get(), &first, 1, 0) == 1);  // it is served
  }
  const std::string answer = read_to_end(server.connect());
  CHECK(answer.starts_with("HTTP/1.1 503 "));
  CHECK(has(answer, "Retry-After: "));
  held.pop_back();
  std::string served;
  while (!has(served, " 200 ")) {  // once the server has seen that it is gone
    const Fd fd = server.connect();
    send_text(fd, "GET /again HTTP/1.1\r\nConnection: close\r\n\r\n");
    served = read_to_end(fd);
  }
}

TEST_CASE("a body over the limit is refused by its length, and by its bytes") {
  Running server;
  const Fd said = server.connect(), unsaid = server.connect(), right = server.connect();
  send_text(said, "POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
  ::shutdown(said.get(), SHUT_WR);
  CHECK(has(read_to_end(said), "413 Payload Too Large"));
  send_text(unsaid, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
                        std::string(1001, 'x') + "\r\n");
  ::shutdown(unsaid.get(), SHUT_WR);
  CHECK(has(read_to_end(unsaid), "413 Payload Too Large"));
  send_text(right, "POST / HTTP/1.1\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" +
                       std::string(1000, 'x'));
  CHECK(read_to_end(right).ends_with("\r\n\r\n1000"));
}

TEST_CASE("a body of two lengths, or of a length and chunks, is no request") {
  Running server;
  for (const std::string_view lengths :
       {"Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999999\r\n"}) {
    const Fd sly = server.connect();
    send_text(sly, "POST / HTTP/1.1\r\n");
    send_text(sly, lengths);
    send_text(sly, "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
    const std::string answer = read_to_end(sly);
    INFO(lengths);
    CHECK(answer.starts_with("HTTP/1.1 400 "));
    CHECK_FALSE(has(answer, "HTTP/1.1 2"));
  }
}

TEST_CASE("addresses to listen on") {
  Echo echo;
  const HttpServer::Logs logs{[](const auto&) {}, [](const auto&) {}};
  for (const char* wrong : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                            "::1:80", "example.org:80", ":80"}) {
    CHECK_THROWS_AS(HttpServer(echo, wrong, logs), Error);
  }
  HttpServer first(echo, "localhost:0", logs);
  CHECK(first.address().starts_with("127.0.0.1:"));
  CHECK_THROWS_AS(HttpServer(echo, first.address(), logs), Error);
}
