// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <iostream>
#include <mutex>
#include <optional>
#include <set>

#include "error.h"
#include "judge/interrupt.h"
#include "judge/report.h"
#include "judge/sandbox.h"
#include "options.h"
#include "server_address.h"
#include "web/server/contest_service.h"
#include "web/server/http_server.h"
#include "web/server/serving_json.h"

namespace kjudge {
namespace {

struct ServeOptions {
  bool json = false;
  std::string results, listen = "127.0.0.1:8080", url, packages, access_log, count_metrics;
  std::vector<std::string> challenges;
  double uploads_per_minute = 30;
  bool unsafe = false;
};

// Lines from several threads, each whole.
class LineLog {
 public:
  // Empty: stderr.
  explicit LineLog(const std::string& path) {
    if (path.empty()) return;
    file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
    if (!file_.valid()) throw_errno(path);
  }
  void write(const std::string& text) const {
    const std::string line = text + "\n";
    // A log that cannot be written is no reason to answer nobody.
    (void)!::write(file_.valid() ? file_.get() : STDERR_FILENO, line.data(), line.size());
  }

 private:
  Fd file_;
};

std::vector<Challenge> read_challenges(const std::vector<std::string>& names) {
  std::vector<Challenge> challenges;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    challenges.push_back(read_challenge(find_challenge(name, {})));
    const std::string& found = challenges.back().name;
    if (found == kAllChallenges || !seen.insert(found).second) {
      throw Error(Fault::usage, cat("--challenge ", name, ": ",
                                    found == kAllChallenges
                                        ? "\"all\" is what contestants say for every challenge; "
                                          "give it another name"
                                        : cat("there are two named ", found)));
    }
  }
  return challenges;
}

std::string site_url(const std::string& given, const std::string& address) {
  if (given.empty()) return cat("http://", address);
  ServerAddress parts;
  return require_server_address(given, parts, "--url");
}

int serve(const ServeOptions& options) {
  // Each arena keeps what its largest page took, and the threads that make pages are many.
  ::mallopt(M_ARENA_MAX, 2);
  ContestServiceOptions service_options;
  service_options.challenges = read_challenges(options.challenges);
  service_options.packages = options.packages;
  service_options.metric_counts = options.count_metrics;
  service_options.uploads_per_minute = options.uploads_per_minute;
  if (!options.unsafe) {
    // What is handed in here is run by judges that are told the same.
    Sandbox({Driver::open(DriverKind::host), 0, {options.results}});
  }
  ResultsDirectory results = ResultsDirectory::make(options.results);
  const LineLog said(""), access(options.access_log);
  const auto line = [&](const std::string& text) { said.write("kjudge: " + hanging(text)); };
  std::optional<ContestService> service;
  // The port is known only when it is had, and links need it.
  class Later : public HttpService {
   public:
    explicit Later(std::optional<ContestService>& service) : service_(service) {}
    Begun begin(HttpRequest& request) override { return service_->begin(request); }
    std::uint64_t limit_bytes() const override { return service_->limit_bytes(); }

   private:
    std::optional<ContestService>& service_;
  } later(service);
  HttpServer server(later, options.listen,
                    {[&](const std::string& text) { access.write(utc_now() + " " + text); }, line});
  service_options.url = site_url(options.url, server.address());
  service.emplace(results, std::move(service_options),
                  [&](const Error& error) { line(described(error)); });
  if (options.json) {
    std::cout << print_flat_json(serving_json(server.address())) << "\n";
  } else {
    std::cout << "http://" << server.address() << "/\n";
  }
  std::cout << std::flush;
  server.run([] {
    try {
      check_interrupt();
      return false;
    } catch (const Interrupted&) {
      return true;
    }
  });
  return exit_done;
}

}  // namespace

void add_serve(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options = add_command<ServeOptions>(
      app, "serve", "Take submissions over HTTP and show the pages of a contest", command);
  command->add_option("results", options->results, "Results directory; made if need be")
      ->type_name("FOLDER")
      ->required()
      ->envname("KJUDGE_RESULTS");
  command
      ->add_option("--challenge", options->challenges,
                   "Folder with challenge.json, or the name of a package, that may be handed in "
                   "for; may be given several times")
      ->type_name("FOLDER|NAME")
      ->required()
      ->allow_extra_args(false)
      ->envname("KJUDGE_CHALLENGE");
  command
      ->add_option("--listen", options->listen,
                   "Where to listen; others than this machine come by a reverse proxy with TLS")
      ->type_name("ADDRESS:PORT")
      ->envname("KJUDGE_LISTEN");
  command
      ->add_option("--url", options->url,
                   "Address that contestants see, for links; else http and where it listens")
      ->type_name("URL")
      ->envname("KJUDGE_SERVER");
  command
      ->add_option("--packages", options->packages,
                   "Folder of what pack made, NAME-VERSION.tar.zst, to download")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--uploads-per-minute", options->uploads_per_minute,
                   "Submissions that each token may hand in, after the first 20")
      ->type_name("N")
      ->check(CLI::Range(0.01, 1e6))
      ->check(finite_number());
  command
      ->add_option("--access-log", options->access_log,
                   "Append a line for each request; else stderr")
      ->type_name("FILE");
  command
      ->add_option(
          "--count-metrics", options->count_metrics,
          "Count there which metrics of profiles visitors look at; else nothing is counted")
      ->type_name("FILE");
  command->add_flag("--unsafe", options->unsafe,
                    "Take submissions although no sandbox works on this machine");
  command->callback([=, &status] { status = serve(*options); });
}

}  // namespace kjudge
