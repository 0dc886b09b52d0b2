// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace kjudge {

struct HttpReply {
  int status = 0;
  std::string location, retry_after;  // headers
  std::string body;
};

// The server is not there, or did not answer to the end: it may do so later.
class NoReply : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One request a connection, over http or https with the certificate checked. Follows no
// redirection.
class HttpClient {
 public:
  // "https://contest.example.org/kjudge". Fault::usage for what could never be asked.
  explicit HttpClient(const std::string& address);

  const std::string& address() const { return address_; }  // without '/' at its end
  // Whether others could read what is sent.
  bool is_private() const;

  struct Request {
    std::string method, path;  // path after the address's own
    std::string token;
    std::string body;  // JSON; empty: none
  };
  // Throws NoReply; Fault::host for a certificate that is not the server's, which waiting does not
  // mend; Interrupted (judge/interrupt.h).
  HttpReply ask(const Request& request) const;

  std::chrono::seconds patience{30};  // in which some of an answer must come
  std::uint64_t limit_bytes = 16 << 20;

 private:
  std::string address_, host_, port_, prefix_;
  bool tls_ = false;
};

}  // namespace kjudge
