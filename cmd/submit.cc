// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <iostream>

#include "error.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "options.h"
#include "web/server/contest_client.h"

namespace kjudge {
namespace {

struct ClientOptions {
  bool json = false;
  std::string server, results;
  double patience_s = 600;
};

struct SubmitOptions : ClientOptions {
  std::string path, run, challenge, contact;
  bool no_keep = false, no_publish = false, no_wait = false;
};

struct StatusOptions : ClientOptions {
  int number = 0;
  bool wait = false;
};

std::string token() {
  const char* given = std::getenv("KERNELS_TOKEN");
  std::string text = given != nullptr ? given : "";
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.erase(0, 1);
  return text;
}

// What a server says could drive a terminal, and repeat the token.
std::string without_token(std::string text) {
  const std::string secret = token();
  for (std::size_t at = 0; !secret.empty() && (at = text.find(secret, at)) != text.npos;) {
    text.replace(at, secret.size(), "***");
  }
  return text;
}

std::string shown(std::string text) { return printable(without_token(std::move(text))); }

void say(const std::string& text) { kjudge::say(without_token(text)); }

std::unique_ptr<ContestClient> client_of(const ClientOptions& options) {
  if (!options.results.empty()) return local_client(options.results, say);
  if (options.server.empty()) {
    throw Error(Fault::usage, "say --server URL, or --results FOLDER for a queue on this machine");
  }
  return server_client(options.server, token(), std::chrono::duration<double>(options.patience_s),
                       say);
}

int status_of(ClientProblem::Kind kind) {
  switch (kind) {
    case ClientProblem::Kind::authentication:
      return exit_authentication;
    case ClientProblem::Kind::files:
      return exit_malformed;
    case ClientProblem::Kind::request:
      return exit_usage;
    case ClientProblem::Kind::try_later:
      return exit_try_later;
    case ClientProblem::Kind::answer:
      break;
  }
  return exit_io;
}

int status_of(const Json& submission) {
  if (!is_done(submission)) return exit_try_later;
  const std::string outcome = outcome_of(submission);
  if (outcome.empty()) {
    say(cat("submission ", number_of(submission),
            ": done, but the server gives no verdict; tell the organizer"));
  }
  if (outcome == "accepted") return exit_done;
  return outcome == "not_accepted" ? exit_not_accepted : exit_judge_error;
}

enum class Wait { yes, no };

// What both commands do with a submission: its link first, then what becomes of it.
int follow(ContestClient& client, Json submission, const ClientOptions& options, Wait wait,
           bool show) {
  if (options.json) {
    say(url_of(submission));
  } else {
    std::cout << shown(url_of(submission)) << std::endl;
  }
  try {
    if (wait == Wait::yes) submission = wait_until_done(client, submission, say);
  } catch (const Interrupted&) {
    say(cat("stopped waiting; the submission goes on: kjudge status ", number_of(submission),
            " --wait"));
    throw;
  }
  if (options.json) {
    std::cout << shown(print_json(submission));
  } else if (show && is_done(submission)) {
    std::cout << shown(evaluations_text(submission));
  } else if (show) {
    say(cat("submission ", number_of(submission), ": ", state_text(submission)));
  }
  return show ? status_of(submission) : exit_done;
}

template <class Work>
int with_client(const ClientOptions& options, Work work) {
  try {
    return work(*client_of(options));
  } catch (const ClientProblem& problem) {
    say(problem.what());
    return status_of(problem.kind());
  }
}

std::string default_path() {
  const bool alone =
      !std::filesystem::exists("submission.py") && std::filesystem::exists("submission.cu");
  return alone ? "submission.cu" : "submission.py";
}

int submit(const SubmitOptions& options) {
  HandInWish wish;
  wish.path = options.path.empty() ? default_path() : options.path;
  wish.run = options.run;
  wish.challenge =
      options.challenge.empty() ? choose_challenge("", wish.path).name : options.challenge;
  wish.contact = options.contact;
  wish.keep = !options.no_keep;
  wish.publish = !options.no_publish;
  const Wait wait = options.no_wait ? Wait::no : Wait::yes;
  return with_client(options, [&](ContestClient& client) {
    return follow(client, client.hand_in(wish), options, wait, wait == Wait::yes);
  });
}

int status_command(const StatusOptions& options) {
  return with_client(options, [&](ContestClient& client) {
    return follow(client, client.ask(options.number), options, options.wait ? Wait::yes : Wait::no,
                  true);
  });
}

void add_client_options(CLI::App& command, ClientOptions& options) {
  CLI::Option* server =
      command
          .add_option("--server", options.server,
                      "Address of the contest's server; KERNELS_TOKEN holds the token")
          ->type_name("URL")
          ->envname("KJUDGE_SERVER");
  command
      .add_option("--results", options.results,
                  "Instead of a server: a results directory on this machine, as its organizer")
      ->type_name("FOLDER")
      ->excludes(server);
  command
      .add_option("--patience", options.patience_s, "How long to ask a server that does not answer")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9))
      ->check(finite_number());
}

}  // namespace

void add_submit(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<SubmitOptions>(
      app, "submit", "Hand in a submission and wait for its verdict", command);
  command
      ->add_option("path", options->path,
                   "A .py or .cu file, or a folder or archive with submission.py or "
                   "submission.cu; else ./submission.py")
      ->type_name("FILE|FOLDER");
  command->add_option("--run", options->run, "Name your submissions are grouped under")
      ->type_name("NAME")
      ->required()
      ->envname("KJUDGE_RUN");
  command
      ->add_option("--challenge", options->challenge,
                   "NAME[:dtype[:gpu[:shape]]], or all; else the one beside or above the "
                   "submission, else the "
                   "only package that this program has")
      ->type_name("NAME")
      ->envname("KJUDGE_CHALLENGE");
  command->add_option("--contact", options->contact, "How to reach you")->type_name("TEXT");
  command->add_flag("--no-keep", options->no_keep,
                    "Ask that the files be removed once judged; then it is not ranked");
  command->add_flag("--no-publish", options->no_publish,
                    "Ask that the code be shown to nobody, whatever the challenge says");
  command->add_flag("--no-wait", options->no_wait, "Only hand in");
  add_client_options(*command, *options);
  command->callback([=, &status] { status = submit(*options); });
}

void add_status(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<StatusOptions>(
      app, "status", "Show what became of a submission that was handed in", command);
  command->add_option("number", options->number, "Number of the submission")
      ->type_name("NUMBER")
      ->required()
      ->check(CLI::Range(1, 1 << 30))
      ->default_str("");
  command->add_flag("--wait", options->wait, "Until it is judged");
  add_client_options(*command, *options);
  command->callback([=, &status] { status = status_command(*options); });
}

}  // namespace kjudge
