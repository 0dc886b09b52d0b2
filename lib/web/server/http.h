// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "file.h"

namespace kjudge {

// What the server's two halves say to each other: http_server.h moves bytes and knows nothing of
// contests, contest_service.h answers and knows nothing of sockets.

struct HttpRequest {
  std::string method, path;   // path without the query, still percent-encoded
  std::string authorization;  // as the header has it; never logged
  std::string if_none_match;
  std::string content_type;
  bool has_body = false;
  std::string who;  // whose it is, once begin() knows; for the log
};

struct HttpAnswer {
  int status = 200;
  std::string content_type;
  std::string body;  // or, where it is valid, `file`
  Fd file;
  std::uint64_t file_bytes = 0;
  std::string etag;  // quoted; empty: none
  std::string cache_control;
  std::vector<std::pair<std::string, std::string>> headers;  // further ones
};

// Ends a request with a status and {"error": message}.
class HttpProblem : public std::runtime_error {
 public:
  HttpProblem(int status, const std::string& message, int retry_after_s = 0)
      : std::runtime_error(message), status_(status), retry_after_s_(retry_after_s) {}
  // 405; `allowed` is a list as the header has it.
  static HttpProblem wrong_method(const std::string& allowed) {
    HttpProblem problem(405, "expected " + allowed);
    problem.allowed_ = allowed;
    return problem;
  }
  int status() const { return status_; }
  int retry_after_s() const { return retry_after_s_; }
  const std::string& allowed() const { return allowed_; }

 private:
  int status_, retry_after_s_;
  std::string allowed_;
};
HttpAnswer answer_of(const HttpProblem& problem);

// Takes the body of one request, piece by piece, then answers. May throw HttpProblem from either.
class HttpBody {
 public:
  virtual ~HttpBody() = default;
  // Quick: on the thread that moves bytes.
  virtual void take(std::string_view bytes) = 0;
  virtual HttpAnswer finish() = 0;
  // Of anybody, and small: these have few places and little time of their own, so that they keep
  // nobody from handing in.
  virtual bool is_anonymous() const { return false; }
};

class HttpService {
 public:
  virtual ~HttpService() = default;
  // Once the header is there, on any of several threads: an answer, or what takes the body. Throws
  // HttpProblem. The body's size is held to limit_bytes() by the caller.
  using Begun = std::variant<HttpAnswer, std::unique_ptr<HttpBody>>;
  virtual Begun begin(HttpRequest& request) = 0;
  virtual std::uint64_t limit_bytes() const = 0;  // of a body
};

}  // namespace kjudge
