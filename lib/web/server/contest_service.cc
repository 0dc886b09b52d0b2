// SPDX-License-Identifier: Apache-2.0
#include "web/server/contest_service.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "error.h"
#include "file.h"
#include "file_names.h"
#include "sha256.h"
#include "store/numbered_folders.h"
#include "web/assets.h"
#include "web/fragments.h"
#include "web/pages.h"
#include "web/server/api_json.h"
#include "web/server/openapi.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSubmissions = "/api/submissions";
constexpr std::string_view kChallenges = "/api/challenges";
constexpr std::string_view kLeaderboard = "/api/leaderboard/";
constexpr std::string_view kPackages = "/packages/";
constexpr std::string_view kMetrics = "/api/metrics";
constexpr std::string_view kScheme = "bearer ";  // before a token, in any case

HttpAnswer json_answer(const Json& json, int status = 200) {
  HttpAnswer answer;
  answer.status = status;
  answer.content_type = "application/json";
  answer.body = print_flat_json(json) + "\n";
  return answer;
}

bool names_etag(std::string_view header, std::string_view etag) {
  while (!header.empty()) {
    const std::size_t comma = std::min(header.find(','), header.size());
    std::string_view one = header.substr(0, comma);
    header.remove_prefix(std::min(comma + 1, header.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.starts_with("W/")) one.remove_prefix(2);  // as a proxy that compresses makes it
    if (one == "*" || one == etag) return true;
  }
  return false;
}

// Answered with 304 where the client has it already.
HttpAnswer with_etag(HttpAnswer answer, const HttpRequest& request, const std::string& hash) {
  answer.etag = cat("\"", hash.substr(0, 32), "\"");
  if (answer.cache_control.empty()) answer.cache_control = "no-cache";
  if (names_etag(request.if_none_match, answer.etag)) {
    answer.status = 304;
    answer.body.clear();
    answer.file.reset();
  }
  return answer;
}
HttpAnswer with_etag(HttpAnswer answer, const HttpRequest& request) {
  const std::string hash = sha256_hex(answer.body);
  return with_etag(std::move(answer), request, hash);
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string decoded_path(std::string_view path) {
  std::string decoded;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      decoded += path[i];
      continue;
    }
    const int high = i + 2 < path.size() ? hex_value(path[i + 1]) : -1;
    const int low = i + 2 < path.size() ? hex_value(path[i + 2]) : -1;
    if (high < 0 || low < 0) throw HttpProblem(400, "the address has a \"%\" without two digits");
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string type_of(std::string_view address) {
  if (address.ends_with(".css")) return "text/css; charset=utf-8";
  if (address.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (address.ends_with(".svg")) return "image/svg+xml";
  if (address.ends_with(".csv")) return "text/csv; charset=utf-8";
  return "text/html; charset=utf-8";
}

// nullopt: not a number that a submission can have.
std::optional<int> submission_number(std::string_view text) {
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size() || number < 1) return {};
  return std::to_string(number) == text ? std::optional(number) : std::nullopt;
}

[[noreturn]] void no_such(const std::string& what) {
  throw HttpProblem(404, "there is no " + what);
}

void allow(const HttpRequest& request, std::initializer_list<std::string_view> methods) {
  std::string list;
  for (const std::string_view method : methods) {
    if (request.method == method) return;
    list += cat(list.empty() ? "" : ", ", method);
  }
  throw HttpProblem::wrong_method(list);
}

void require_json(const HttpRequest& request) {
  const std::string type = folded_name(request.content_type);
  if (!type.empty() && !type.starts_with("application/json")) {
    throw HttpProblem(415, "Content-Type: expected application/json");
  }
}

}  // namespace

// One upload on its way: into a folder that is swept away if this process ends, then into the
// queue.
class ContestService::Upload : public HttpBody {
 public:
  Upload(ContestService& service, std::string owner, std::string token)
      : service_(service),
        owner_(std::move(owner)),
        token_(std::move(token)),
        folder_(service.results_.path() / "submissions"),
        reader_(folder_.path() / "content", service.submission_limit_) {}

  void take(std::string_view bytes) override { reader_.take(bytes); }

  HttpAnswer finish() override {
    service_.owner_of(token_);  // which may have been revoked while a slow line brought the rest
    const UploadRequest request = reader_.finish();
    if (const std::string rule = name_rule(request.run); !rule.empty()) {
      throw HttpProblem(400, cat("run: the name ", rule));
    }
    const VariantRequest asked = asked_for(request.challenge);
    const Challenge* challenge = service_.find_challenge(asked.challenge);
    if (challenge == nullptr && asked.challenge != kAllChallenges) {
      throw HttpProblem(400, cat("challenge: there is no \"", asked.challenge, "\" here; there is ",
                                 service_.challenge_names()));
    }
    if (challenge == nullptr && !request.keep) {
      throw HttpProblem(400, "keep: false goes with one challenge, not with all");
    }
    std::vector<SubmissionIdentity> present;
    const auto known = service_.contest_.find_id(request.id);
    if (known) {
      present.push_back(service_.results_.submission(*known).identity);
      require_own(present.back());
    }
    const int number = add(request, challenge, wanted_of(challenge, asked), std::move(present));
    const StoredSubmission submission = service_.results_.submission(number);
    require_own(submission.identity);
    HttpAnswer answer = json_answer(service_.submission_json(submission), known ? 200 : 201);
    answer.cache_control = "no-store";
    answer.headers.emplace_back("Location", cat(kSubmissions, "/", number));
    return answer;
  }

 private:
  static VariantRequest asked_for(const std::string& text) {
    try {
      return parse_request(text);
    } catch (const Error& error) {
      throw HttpProblem(400, cat("challenge: ", error.what()));
    }
  }

  static VariantRequest wanted_of(const Challenge* challenge, const VariantRequest& asked) {
    if (challenge == nullptr && asked == VariantRequest{kAllChallenges}) return {};
    if (challenge == nullptr) {
      throw HttpProblem(400,
                        "challenge: all is every challenge, whole, on every GPU; nothing "
                        "goes with it");
    }
    try {
      return kjudge::wanted_of(*challenge, asked);
    } catch (const Error& error) {
      throw HttpProblem(400, error.what());
    }
  }

  void require_own(const SubmissionIdentity& identity) const {
    if (same_name(identity.owner, owner_)) return;
    throw HttpProblem(409, "id: somebody else used it; draw another");
  }

  // `present` has the one with the same id, where that is known.
  int add(const UploadRequest& request, const Challenge* challenge, const VariantRequest& variant,
          std::vector<SubmissionIdentity>&& present) {
    const fs::path named = folder_.path() / "in" / request.file;
    fs::create_directory(named.parent_path());
    fs::rename(folder_.path() / "content", named);
    ResultsDirectory::HandIn hand_in;
    hand_in.from = named;
    hand_in.run = request.run;
    hand_in.challenge = challenge != nullptr ? challenge->name : kAllChallenges;
    hand_in.variant = variant;
    hand_in.limit_bytes =
        challenge != nullptr ? challenge->limits.submission_bytes : service_.submission_limit_;
    hand_in.id = request.id;
    hand_in.owner = owner_;
    hand_in.contact = request.contact;
    hand_in.keep = request.keep;
    hand_in.publish = request.publish;
    ContestWatch& contest = service_.contest_;
    hand_in.id_of = [&](int number) { return contest.id_of(number); };
    SubmissionIdentity last;
    last.number = contest.known_up_to();
    present.push_back(std::move(last));
    try {
      const int number = service_.results_.add(hand_in, present);
      contest.note(number, request.id);
      contest.wake();
      return number;
    } catch (const Error& error) {
      if (error.fault() == Fault::submission) throw HttpProblem(422, error.what());
      if (error.fault() == Fault::usage) throw HttpProblem(409, error.what());
      throw;
    }
  }

  ContestService& service_;
  const std::string owner_, token_;
  const UnfinishedFolder folder_;
  UploadReader reader_;
};

// What a visitor of a profile's page looked at.
class ContestService::Sights : public HttpBody {
 public:
  Sights(MetricCounts& counts, const ContestWatch& contest) : counts_(counts), contest_(contest) {}

  bool is_anonymous() const override { return true; }

  void take(std::string_view bytes) override {
    constexpr std::size_t kMostBytes = 1 << 16;
    if (text_.size() + bytes.size() > kMostBytes) {
      throw HttpProblem(413, cat("more than ", kMostBytes, " bytes"));
    }
    text_ += bytes;
  }

  HttpAnswer finish() override {
    MetricSights sights;
    try {
      sights = metric_sights_from_json(text_, "the body");
    } catch (const Error& error) {
      throw HttpProblem(400, error.what());
    }
    counts_.add(sights, contest_.view()->site.metrics);
    HttpAnswer answer;
    answer.status = 204;
    answer.cache_control = "no-store";
    return answer;
  }

 private:
  MetricCounts& counts_;
  const ContestWatch& contest_;
  std::string text_;
};

ContestService::ContestService(ResultsDirectory& results, ContestServiceOptions options,
                               ResultsDirectory::Report report)
    : results_(results),
      options_(std::move(options)),
      report_(report),
      owners_(results.path(), report),
      uploads_(options_.upload_burst, options_.uploads_per_minute / 60),
      requests_(options_.request_burst, options_.requests_per_s),
      sights_(options_.request_burst, options_.requests_per_s),
      contest_(results, options_.challenges, report) {
  if (!options_.metric_counts.empty()) metric_counts_.emplace(options_.metric_counts, report);
  for (const Challenge& one : options_.challenges) {
    submission_limit_ = std::max(submission_limit_, one.limits.submission_bytes);
  }
  // As base64, or as text with every other character escaped, and the other fields.
  limit_bytes_ = 2 * submission_limit_ + (1 << 16);
}

const Challenge* ContestService::find_challenge(const std::string& name) const {
  for (const Challenge& one : options_.challenges) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string ContestService::challenge_names() const {
  std::string names;
  for (const Challenge& one : options_.challenges) {
    names += cat(names.empty() ? "" : ", ", one.name);
  }
  return names;
}

std::string ContestService::authenticate(HttpRequest& request) {
  const std::string_view header = request.authorization;
  if (header.empty()) {
    throw HttpProblem(401, "a token is needed; the organizer gives it, KERNELS_TOKEN holds it");
  }
  if (folded_name(header.substr(0, kScheme.size())) != kScheme) {
    throw HttpProblem(401, "Authorization: expected Bearer and a token");
  }
  return request.who = owner_of(header.substr(kScheme.size()));
}

std::string ContestService::owner_of(std::string_view token) {
  const auto owner = owners_.find(token);
  if (!owner) throw HttpProblem(401, "the token is unknown or revoked; ask the organizer");
  return *owner;
}

HttpService::Begun ContestService::begin(HttpRequest& request) {
  if (request.path == kSubmissions) {
    allow(request, {"POST"});
    return begin_upload(request);
  }
  if (request.path == kMetrics && metric_counts_) {
    allow(request, {"POST"});
    return begin_sights(request);
  }
  allow(request, {"GET", "HEAD"});
  return get(request);
}

// Nobody is known here, so all have one limit together.
HttpService::Begun ContestService::begin_sights(const HttpRequest& request) {
  if (const int wait_s = sights_.wait_s(""); wait_s > 0) {
    throw HttpProblem(429, "too many visits to count", wait_s);
  }
  require_json(request);
  return std::make_unique<Sights>(*metric_counts_, contest_);
}

HttpService::Begun ContestService::begin_upload(HttpRequest& request) {
  const std::string owner = authenticate(request);
  if (const int wait_s = uploads_.wait_s(folded_name(owner)); wait_s > 0) {
    throw HttpProblem(429, "too many submissions with this token", wait_s);
  }
  require_json(request);
  return std::make_unique<Upload>(*this, owner, request.authorization.substr(kScheme.size()));
}

HttpAnswer ContestService::get(HttpRequest& request) {
  const std::string path = decoded_path(request.path);
  const auto rest = [&](std::string_view prefix) { return path.substr(prefix.size()); };
  if (path.starts_with(cat(kSubmissions, "/"))) {
    return get_submission(request, rest(cat(kSubmissions, "/")));
  }
  if (path == kChallenges) return get_challenges(request);
  if (path.starts_with(kLeaderboard)) return get_leaderboard(request, rest(kLeaderboard));
  if (path == "/api/openapi.json") {
    HttpAnswer answer;
    answer.content_type = "application/json";
    answer.body = openapi_document();
    return with_etag(std::move(answer), request);
  }
  if (path.starts_with("/api/") || path == "/api") no_such("such part of the interface");
  if (path.starts_with(kPackages)) return get_package(request, rest(kPackages));
  if (!path.starts_with('/')) throw HttpProblem(400, "expected a path that begins with \"/\"");
  return get_page(request, path == "/" ? "index.html" : path.substr(1));
}

HttpAnswer ContestService::get_submission(HttpRequest& request, const std::string& text) {
  const std::string owner = authenticate(request);
  if (const int wait_s = requests_.wait_s(folded_name(owner)); wait_s > 0) {
    throw HttpProblem(429, "too many requests with this token", wait_s);
  }
  const auto number = submission_number(text);
  if (!number || !fs::exists(results_.path() / "submissions" / text)) no_such("such submission");
  const StoredSubmission submission = results_.submission(*number);
  if (folded_name(submission.identity.owner) != folded_name(owner)) {
    throw HttpProblem(403, "the submission is of another's run; its page shows what is public");
  }
  HttpAnswer answer = json_answer(submission_json(submission));
  answer.cache_control = "private, no-cache";
  return with_etag(std::move(answer), request);
}

Json ContestService::submission_json(const StoredSubmission& submission) const {
  std::vector<std::string> wanted;
  const std::string& challenge = submission.identity.challenge;
  if (challenge == kAllChallenges) {
    for (const Challenge& one : options_.challenges) wanted.push_back(one.name);
  } else if (!challenge.empty()) {
    wanted.push_back(challenge);
  }
  return submission_answer(*contest_.view(), submission, wanted, options_.url);
}

HttpAnswer ContestService::get_challenges(const HttpRequest& request) {
  Json::List list;
  for (const Challenge& one : options_.challenges) {
    Json::Object answer = challenge_answer(one, options_.url);
    const std::string name = cat(one.name, "-", one.version, ".tar.zst");
    if (const auto package = find_package(name)) {
      answer.push_back(
          {"package", Json{Json::Object{{"url", Json{cat(options_.url, kPackages, name)}},
                                        {"bytes", Json{static_cast<std::int64_t>(package->bytes)}},
                                        {"sha256", Json{package->sha256}}}}});
    }
    list.push_back(Json{std::move(answer)});
  }
  return with_etag(json_answer(Json{Json::Object{{"challenges", Json{std::move(list)}}}}), request);
}

HttpAnswer ContestService::get_leaderboard(const HttpRequest& request,
                                           const std::string& challenge) {
  const auto view = contest_.view();
  const auto& boards = view->pages.boards();
  const bool known = std::any_of(boards.begin(), boards.end(), [&](const Leaderboard& board) {
    return board.variant.challenge == challenge;
  });
  if (!known && find_challenge(challenge) == nullptr) no_such("such challenge");
  return with_etag(json_answer(leaderboard_answer(*view, challenge, options_.url)), request);
}

// Its hash is computed again only when the file is another.
std::optional<ContestService::Package> ContestService::find_package(const std::string& name) {
  if (options_.packages.empty() || !name.ends_with(".tar.zst") || name.starts_with('.') ||
      name.find('/') != name.npos || name.find('\0') != name.npos) {
    return std::nullopt;
  }
  const fs::path path = options_.packages / name;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  const auto stamp = stamp_of(path);
  const std::lock_guard lock(packages_mutex_);
  Package& package = packages_[name];
  if (package.sha256.empty() || !stamp || !(package.stamp == *stamp)) {
    package = {stamp.value_or(FileStamp{}), static_cast<std::uint64_t>(status.st_size),
               sha256_of_file(fd.get(), path.string())};
  }
  return package;
}

HttpAnswer ContestService::get_package(const HttpRequest& request, const std::string& name) {
  const auto package = find_package(name);
  if (!package) no_such("such package");
  HttpAnswer answer;
  answer.content_type = "application/zstd";
  answer.file = Fd(::open((options_.packages / name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!answer.file.valid()) throw_errno(name);
  answer.file_bytes = package->bytes;
  return with_etag(std::move(answer), request, package->sha256);
}

HttpAnswer ContestService::get_page(const HttpRequest& request, const std::string& address) {
  HttpAnswer answer;
  answer.content_type = type_of(address);
  const auto view = contest_.view();
  auto page = view->pages.render(address);
  if (!page) page = page_of_new(address);
  if (!page) {
    answer.status = 404;
    answer.content_type = "text/html; charset=utf-8";
    answer.cache_control = "no-cache";
    // Its links must lead from wherever it was asked for.
    answer.body = framed({"There is no such page", request.path.substr(1), {}, 0}, {});
    return answer;
  }
  answer.body = std::move(*page);
  if (metric_counts_ && address == "kjudge.js") answer.body += counting_script();
  return with_etag(std::move(answer), request);
}

// Of what was handed in since the view was made: who did has its address already.
std::optional<std::string> ContestService::page_of_new(const std::string& address) const {
  constexpr std::string_view kFirst = "evaluation/", kLast = ".html";
  if (!address.starts_with(kFirst) || !address.ends_with(kLast)) return {};
  const std::string name =
      address.substr(kFirst.size(), address.size() - kFirst.size() - kLast.size());
  const auto number = submission_number(name);
  if (!number || !contest_.id_of(*number) || contest_.view()->find(*number) != nullptr) return {};
  SubmissionSummary submission;
  submission.stored = results_.submission(*number);
  submission.stored.evaluations.clear();
  submission.running.emplace();
  return running_page(submission);
}

}  // namespace kjudge
