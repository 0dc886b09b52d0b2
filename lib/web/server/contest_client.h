// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "json.h"

namespace kjudge {

// What a contestant's client does, as harness/submit.py: hand in, ask, wait; either at a server or
// at a results directory on this machine.

// Why it stops.
class ClientProblem : public std::runtime_error {
 public:
  enum class Kind {
    authentication,  // the token is missing, unknown or not allowed that
    files,           // too large, or not to be read
    request,         // no such challenge or submission, another's run
    try_later,       // the server did not answer for as long as one waits
    answer           // it is none of a kjudge server
  };
  ClientProblem(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

struct HandInWish {
  std::filesystem::path path;  // a .py or .cu file, a folder, an archive
  std::string run, challenge, contact;
  bool keep = true, publish = true;
};

class ContestClient {
 public:
  using Say = std::function<void(const std::string&)>;
  virtual ~ContestClient() = default;
  // Both answer a submission as openapi.json has it, with number, url and state checked. Throw
  // ClientProblem, and Fault::usage for what can never be handed in.
  virtual Json hand_in(const HandInWish& wish) = 0;
  virtual Json ask(int number) = 0;
};

// `address` as HttpClient has it; `say` hears of what takes a while. Asks for `patience` a server
// that does not answer.
std::unique_ptr<ContestClient> server_client(const std::string& address, const std::string& token,
                                             std::chrono::duration<double> patience,
                                             ContestClient::Say say);
// Straight into the queue, as the organizer; the challenge's folder or name is in the wish.
std::unique_ptr<ContestClient> local_client(const std::filesystem::path& results,
                                            ContestClient::Say say);

// Asks until it is done, and says what changes. Lets Interrupted pass.
Json wait_until_done(ContestClient& client, Json submission, const ContestClient::Say& say);

// Of a submission.
int number_of(const Json& submission);
std::string url_of(const Json& submission);
// For people: "waiting, position 3 in the queue".
std::string state_text(const Json& submission);
bool is_done(const Json& submission);
// For people: every evaluation's shapes, score and rank. Throws ClientProblem where one cannot be
// read.
std::string evaluations_text(const Json& submission);
// "accepted", "not_accepted", "judge_error": of all evaluations together; "" where there is none.
std::string outcome_of(const Json& submission);

}  // namespace kjudge
