// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "web/server/http.h"

namespace kjudge {

// What keeps slow, silent and greedy clients from the others.
struct HttpLimits {
  std::size_t connections = 500;  // beyond them: 503
  std::size_t bodies = 64;        // that are taken at the same time; beyond them: 503
  std::size_t bodies_each = 8;    // of them of the same HttpRequest::who; beyond them: 429
  std::size_t anonymous = 16;     // the same of HttpBody::is_anonymous()
  std::size_t threads = 16;       // that answer; most of their time they wait for the disk
  std::size_t header_bytes = 8192;
  std::chrono::seconds idle{30};    // between two requests
  std::chrono::seconds header{10};  // for a whole one, or a whole anonymous body
  std::chrono::seconds pause{20};   // in which some of a body must come
  std::chrono::seconds answer{30};  // in which 64 KiB of one must go, or the rest of it
  std::chrono::seconds body{300};   // for a whole one
  std::chrono::seconds linger{20};  // to read what is refused: a client that writes hears nothing
  std::chrono::seconds ending{30};  // for what is under way when the server ends
};

// An HTTP/1.1 server without TLS: one thread moves bytes, others answer.
class HttpServer {
 public:
  // One line for each request that was answered; of errors that are not the client's another.
  using Log = std::function<void(const std::string& line)>;
  struct Logs {
    Log access, trouble;
  };
  // Listens on "ADDRESS:PORT", an IPv6 address in brackets; port 0 is any that is free.
  // Fault::usage for what is no such address, Fault::host when it cannot be had.
  HttpServer(HttpService& service, const std::string& listen, Logs logs,
             const HttpLimits& limits = {});
  ~HttpServer();

  std::string address() const;  // that it listens on, with the port

  // Serves until `stop`, which is asked every 50 ms, says so; then takes no more, answers what is
  // under way, and returns.
  void run(const std::function<bool()>& stop);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace kjudge
