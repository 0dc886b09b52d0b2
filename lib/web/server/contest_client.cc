// SPDX-License-Identifier: Apache-2.0
#include "web/server/contest_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

#include "archive.h"
#include "error.h"
#include "file.h"
#include "judge/interrupt.h"
#include "judge/pipeline.h"
#include "judge/report.h"
#include "store/challenges.h"
#include "store/random.h"
#include "store/submission_files.h"
#include "web/server/api_json.h"
#include "web/server/http_client.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using ProblemKind = ClientProblem::Kind;

void pause_for(std::chrono::duration<double> time) {
  const auto until = Clock::now() + time;
  while (Clock::now() < until) {
    check_interrupt();
    std::this_thread::sleep_for(std::min<std::chrono::duration<double>>(
        std::chrono::milliseconds(50), until - Clock::now()));
  }
}

// Answers are read leniently: a newer server may say more.
const Json* member(const Json& json, std::string_view name) {
  const auto* object = std::get_if<Json::Object>(&json.value);
  if (object == nullptr) return nullptr;
  for (const JsonMember& one : *object) {
    if (one.name == name) return &one.value;
  }
  return nullptr;
}

template <class T>
const T* member_as(const Json& json, std::string_view name) {
  const Json* found = member(json, name);
  return found != nullptr ? std::get_if<T>(&found->value) : nullptr;
}

template <class T>
const T& need(const Json& json, std::string_view name) {
  if (const T* found = member_as<T>(json, name)) return *found;
  throw Error(Fault::malformed, cat("an answer whose \"", name, "\" is missing or wrong"));
}

std::string text_or_empty(const Json& json, std::string_view name) {
  const auto* found = member_as<std::string>(json, name);
  return found != nullptr ? *found : "";
}

double need_number(const Json& json, std::string_view name) {
  if (const auto* whole = member_as<std::int64_t>(json, name)) return static_cast<double>(*whole);
  return need<double>(json, name);
}

Json checked_submission(Json submission) {
  const auto& state = need<std::string>(submission, "state");
  const auto number = need<std::int64_t>(submission, "number");
  need<std::string>(submission, "url");
  if ((state != "waiting" && state != "judging" && state != "done") || number < 1 ||
      number > 1 << 30) {
    throw Error(Fault::malformed, "an answer whose state or number is wrong");
  }
  if (state == "done") {
    for (const Json& one : need<Json::List>(submission, "evaluations")) {
      if (member_as<std::string>(one, "verdict") == nullptr) {
        throw Error(Fault::malformed, "evaluations are no list of objects with a verdict");
      }
    }
  }
  return submission;
}

// nullopt for what is no number of seconds, which leaves the pause to the client.
std::optional<double> seconds_of(std::string_view retry_after) {
  const bool digits =
      !retry_after.empty() && std::all_of(retry_after.begin(), retry_after.end(),
                                          [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  // A billion seconds are for ever, and more digits would be no number of the machine's.
  std::int64_t seconds = 0;
  const std::string_view first = retry_after.substr(0, 10);
  std::from_chars(first.data(), first.data() + first.size(), seconds);
  return static_cast<double>(std::min<std::int64_t>(seconds, 1'000'000'000));
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    }
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// A folder as an archive, without what kjudge leaves out.
std::string archive_of(const fs::path& folder) {
  const TempDir work("kjudge-submit");
  const fs::path files = work.path() / "files";
  try {
    copy_submission(folder, files, std::uint64_t{1} << 30);
  } catch (const Error& error) {
    if (error.fault() != Fault::submission) throw;
    throw Error(Fault::usage, cat(folder.string(), ": ", error.what()));
  }
  std::vector<ArchiveFile> packed;
  for (const auto& item : fs::recursive_directory_iterator(files)) {
    if (!item.is_regular_file()) continue;
    const bool executable =
        (item.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
    packed.push_back(
        {item.path().lexically_relative(files).string(), read_file(item.path()), executable});
  }
  return make_archive(std::move(packed));
}

void require_kind(const fs::path& path) {
  if (!fs::exists(path)) throw Error(Fault::usage, cat(path.string(), ": no such file or folder"));
  if (fs::is_directory(path) || is_archive(path)) return;
  if (path.extension() == ".py" || path.extension() == ".cu") return;
  throw Error(Fault::usage,
              cat(path.string(),
                  ": not a file that can be handed in; these are folders and files named *.py, "
                  "*.cu, *.tar, *.tar.gz, *.tgz, *.tar.zst, *.zip (in lower case)"));
}

void add_files(Json::Object& body, const fs::path& path) {
  require_kind(path);
  const auto add = [&](const char* name, std::string value) {
    body.push_back({name, Json{std::move(value)}});
  };
  if (fs::is_directory(path)) {
    add("file", "submission.tar.zst");
    return add("archive", base64(archive_of(path)));
  }
  if (is_archive(path)) {
    add("file", path.filename().string());
    return add("archive", base64(read_file(path)));
  }
  const std::string code = read_file(path);
  const Json written = parse_json(print_flat_json(Json{code}), path.string(), Fault::bug);
  if (std::get<std::string>(written.value) != code) {
    throw ClientProblem(ProblemKind::files, cat(path.string(), ": not UTF-8"));
  }
  add("file", path.extension() == ".cu" ? "submission.cu" : "submission.py");
  add("code", code);
}

class ServerClient : public ContestClient {
 public:
  ServerClient(const std::string& address, const std::string& token,
               std::chrono::duration<double> patience, Say say)
      : http_(address), token_(token), patience_(patience), say_(std::move(say)) {
    if (token.empty()) {
      throw ClientProblem(ProblemKind::authentication,
                          "KERNELS_TOKEN is not set; export the token that the organizer gave you");
    }
    if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; })) {
      throw ClientProblem(ProblemKind::authentication,
                          "KERNELS_TOKEN holds characters that no token has");
    }
    if (!http_.is_private()) {
      say_(cat(http_.address(), ": without https others can read your token on its way"));
    }
  }

  Json hand_in(const HandInWish& wish) override {
    Json::Object body = {
        {"id", Json{random_uuid()}}, {"run", Json{wish.run}}, {"challenge", Json{wish.challenge}}};
    add_files(body, wish.path);
    if (!wish.contact.empty()) body.push_back({"contact", Json{wish.contact}});
    if (!wish.keep) body.push_back({"keep", Json{false}});
    if (!wish.publish) body.push_back({"publish", Json{false}});
    return ask("POST", "/api/submissions", print_flat_json(Json{std::move(body)}));
  }

  Json ask(int number) override { return ask("GET", cat("/api/submissions/", number), ""); }

 private:
  struct TryAgain {
    std::string why;
    std::optional<double> after_s;
  };

  // Asks again while the server cannot answer.
  Json ask(const std::string& method, const std::string& path, const std::string& body) {
    const auto deadline = Clock::now() + patience_;
    double pause_s = 0.2;
    for (bool told = false;; told = true) {
      try {
        return ask_once(method, path, body);
      } catch (const TryAgain& problem) {
        const std::chrono::duration<double> pause(problem.after_s.value_or(pause_s));
        if (Clock::now() + pause > deadline) {
          throw ClientProblem(ProblemKind::try_later, cat(problem.why, "; try again later"));
        }
        if (!told) {
          say_(cat(problem.why, "; trying again for up to ", static_cast<long>(patience_.count()),
                   " s"));
        }
        pause_for(pause);
        pause_s = std::min(2 * pause_s, 5.0);
      }
    }
  }

  Json ask_once(const std::string& method, const std::string& path, const std::string& body) {
    HttpReply reply;
    try {
      reply = http_.ask({method, path, token_, body});
    } catch (const NoReply& problem) {
      throw TryAgain{problem.what(), {}};
    }
    if (reply.status != 200 && reply.status != 201) fail(reply);
    try {
      return checked_submission(parse_json(reply.body, http_.address(), Fault::malformed));
    } catch (const Error& error) {
      throw ClientProblem(
          ProblemKind::answer,
          cat(http_.address(), ": not the answer of a kjudge server (", error.what(), ")"));
    }
  }

  [[noreturn]] void fail(const HttpReply& reply) {
    const int status = reply.status;
    if (status >= 300 && status < 400) {
      throw ClientProblem(
          ProblemKind::request,
          reply.location.empty()
              ? cat(http_.address(), " sends elsewhere without saying where (status ", status,
                    "); ask the organizer for the address to give to --server")
              : cat(http_.address(), " sends elsewhere, to ", reply.location,
                    "; if you trust it, say --server"));
    }
    std::string why = "no reason given";
    try {
      why = need<std::string>(parse_json(reply.body, "", Fault::malformed), "error");
    } catch (const Error&) {
      // It stays without one.
    }
    const std::string message = cat(http_.address(), ": ", why, " (status ", status, ")");
    if (status == 401 || status == 403) throw ClientProblem(ProblemKind::authentication, message);
    if (status == 413 || status == 422) throw ClientProblem(ProblemKind::files, message);
    if (status == 429 || status >= 500) {
      throw TryAgain{message, seconds_of(reply.retry_after)};
    }
    throw ClientProblem(ProblemKind::request, message);
  }

  const HttpClient http_;
  const std::string token_;
  const std::chrono::duration<double> patience_;
  const Say say_;
};

class LocalClient : public ContestClient {
 public:
  LocalClient(const fs::path& results, Say say)
      : results_(results),
        say_(std::move(say)),
        reader_(results_, kept_challenges(results_), left_out()) {}

  Json hand_in(const HandInWish& wish) override {
    require_kind(wish.path);
    ResultsDirectory::HandIn hand_in;
    if (wish.challenge == kAllChallenges) {
      require_kept(wish);
      hand_in.challenge = kAllChallenges;
      hand_in.limit_bytes = ChallengeLimits().submission_bytes;
    } else {
      const auto [name, parts] = split_name(wish.challenge);
      const Challenge challenge = read_challenge(find_challenge(name, {}));
      hand_in.challenge = challenge.name;
      hand_in.variant = wanted_of(challenge, parse_request(challenge.name + parts));
      hand_in.limit_bytes = challenge.limits.submission_bytes;
    }
    hand_in.from = wish.path;
    hand_in.run = wish.run;
    hand_in.id = random_uuid();
    hand_in.contact = wish.contact;
    hand_in.keep = wish.keep;
    hand_in.publish = wish.publish;
    try {
      hand_in.after = reader_.index().last_number();
      return ask(results_.add(hand_in, {}));
    } catch (const Error& error) {
      if (error.fault() != Fault::submission) throw;
      throw ClientProblem(ProblemKind::files, error.what());
    }
  }

  Json ask(int number) override {
    const StoredSubmission submission = results_.submission(number);
    if (view_ == nullptr || reader_.look()) {
      Site site = reader_.read();
      view_ = std::make_unique<ContestView>(std::move(site), left_out());
    }
    std::vector<std::string> wanted;
    const std::string& challenge = submission.identity.challenge;
    if (!challenge.empty() && challenge != kAllChallenges) wanted.push_back(challenge);
    Json answer = submission_answer(*view_, submission, wanted, "");
    // There is no page, but a folder.
    for (JsonMember& one : std::get<Json::Object>(answer.value)) {
      if (one.name == "url") one.value = Json{submission.folder.string()};
    }
    return answer;
  }

 private:
  ResultsDirectory::Report left_out() const {
    return [this](const Error& error) { say_(described(error)); };
  }

  static void require_kept(const HandInWish& wish) {
    if (!wish.keep) throw Error(Fault::usage, "--no-keep goes with one challenge, not with all");
  }

  ResultsDirectory results_;
  const Say say_;
  SiteReader reader_;
  std::unique_ptr<ContestView> view_;
};

std::pair<std::string, std::string> interval_texts(const Json& measured) {
  const Json* interval = member(measured, "interval");
  if (interval == nullptr) throw Error(Fault::malformed, "a score without an interval");
  std::array<char, 64> speedup{}, range{};
  std::snprintf(speedup.data(), speedup.size(), "%.3fx", need_number(measured, "speedup"));
  std::snprintf(range.data(), range.size(), "[%.3f, %.3f]", need_number(*interval, "low"),
                need_number(*interval, "high"));
  return {speedup.data(), range.data()};
}

std::string left_aligned(const std::vector<std::array<std::string, 4>>& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < 3; ++column) {
      std::size_t width = 0;
      for (const auto& other : rows) width = std::max(width, other[column].size());
      text += row[column] + std::string(width - row[column].size() + 2, ' ');
    }
    text += row[3] + "\n";
  }
  return text;
}

std::string evaluation_text(const Json& evaluation) {
  std::string text = need<std::string>(evaluation, "challenge");
  const std::string variant = text_or_empty(evaluation, "variant");
  if (!variant.empty()) {
    text = "partial, " + variant;
  } else if (const std::string dtype = text_or_empty(evaluation, "dtype"); !dtype.empty()) {
    text += " " + dtype;
  }
  if (const std::string gpu = text_or_empty(evaluation, "gpu"); !gpu.empty()) text += " on " + gpu;
  text += cat(": ", need<std::string>(evaluation, "verdict"), "\n");
  if (const std::string message = text_or_empty(evaluation, "message"); !message.empty()) {
    text += indented(message, "  ");
  }
  const Json none{Json::Object{}};
  const Json* found = member(evaluation, "score");
  const Json& score = found != nullptr ? *found : none;
  std::map<std::string, std::pair<std::string, std::string>> measured;
  if (const auto* shapes = member_as<Json::List>(score, "shapes")) {
    for (const Json& shape : *shapes) {
      measured[need<std::string>(shape, "name")] = interval_texts(shape);
    }
  }
  std::vector<std::array<std::string, 4>> rows = {{"shape", "speedup", "interval", "verdict"}};
  std::string messages;
  if (const auto* shapes = member_as<Json::List>(evaluation, "shapes")) {
    for (const Json& shape : *shapes) {
      const auto& name = need<std::string>(shape, "name");
      const auto& [speedup, interval] = measured[name];
      rows.push_back({name, speedup, interval, need<std::string>(shape, "verdict")});
      if (const std::string message = text_or_empty(shape, "message"); !message.empty()) {
        messages += cat(name, ": ", hanging(message), "\n");
      }
    }
  }
  if (rows.size() > 1) text += left_aligned(rows);
  text += messages;
  if (member(score, "speedup") != nullptr) {
    const auto [speedup, interval] = interval_texts(score);
    text += cat("score: ", speedup, " ", interval, "\n");
  }
  const std::string among = variant.empty() ? "" : cat(", among those of ", variant);
  const auto* invalid = member_as<Json::List>(evaluation, "invalid");
  if (invalid != nullptr) {
    for (const Json& one : *invalid) {
      const auto* reason = std::get_if<std::string>(&one.value);
      if (reason == nullptr) throw Error(Fault::malformed, "a reason that is no text");
      text += cat("does not count: ", *reason, "\n");
    }
  }
  const auto* pending = member_as<bool>(evaluation, "pending");
  if (member(evaluation, "rank") != nullptr) {
    text += cat("rank: ", need<std::int64_t>(evaluation, "rank"), " of ",
                need<std::int64_t>(evaluation, "of"), among, "\n");
  } else if (pending != nullptr && *pending) {
    text +=
        cat("rank: pending", among, ", until it is judged again: it is faster than the first\n");
  } else if (const std::string why = text_or_empty(score, "why_not");
             !why.empty() && invalid == nullptr) {
    text += cat("not ranked: ", why, "\n");
  }
  std::string log = text_or_empty(evaluation, "log");
  while (log.ends_with('\n')) log.pop_back();
  if (!log.empty() && text_or_empty(evaluation, "verdict") != "accepted") {
    text += cat("log:\n", indented(log, "  "));
  }
  return text;
}

std::string state_of(const Json& submission) { return need<std::string>(submission, "state"); }

const Json::List& evaluations_of(const Json& submission) {
  return need<Json::List>(submission, "evaluations");
}

}  // namespace

std::unique_ptr<ContestClient> server_client(const std::string& address, const std::string& token,
                                             std::chrono::duration<double> patience,
                                             ContestClient::Say say) {
  return std::make_unique<ServerClient>(address, token, patience, std::move(say));
}

std::unique_ptr<ContestClient> local_client(const fs::path& results, ContestClient::Say say) {
  return std::make_unique<LocalClient>(results, std::move(say));
}

int number_of(const Json& submission) {
  return static_cast<int>(need<std::int64_t>(submission, "number"));
}

std::string url_of(const Json& submission) { return need<std::string>(submission, "url"); }

bool is_done(const Json& submission) { return state_of(submission) == "done"; }

std::string state_text(const Json& submission) {
  std::string now = state_of(submission);
  const bool waiting = now == "waiting", judging = now == "judging";
  const auto* position = member_as<std::int64_t>(submission, "position");
  if (waiting && position != nullptr) now += cat(", position ", *position, " in the queue");
  const auto* gpu = member_as<std::string>(submission, "waits_for");
  if (waiting && gpu != nullptr) {
    now += cat(", for a judge with ", printable(*gpu), ", which none had yet");
  }
  const auto* step = member_as<std::string>(submission, "step");
  if (judging && step != nullptr && ::isatty(STDERR_FILENO) == 1) {
    now += cat(": ", printable(*step));
  }
  return now;
}

Json wait_until_done(ContestClient& client, Json submission, const ContestClient::Say& say) {
  constexpr double kUsualPause = 2, kLongestPause = 3600;
  std::string told;
  while (!is_done(submission)) {
    const std::string now = state_text(submission);
    if (now != told) say(cat("submission ", number_of(submission), ": ", now));
    told = now;
    const Json* poll = member(submission, "poll_s");
    double pause_s = poll != nullptr ? need_number(submission, "poll_s") : kUsualPause;
    if (!(pause_s >= 0 && pause_s <= kLongestPause)) pause_s = kUsualPause;
    pause_for(std::chrono::duration<double>(pause_s));
    submission = client.ask(number_of(submission));
  }
  return submission;
}

std::string evaluations_text(const Json& submission) {
  std::string text;
  try {
    for (const Json& one : evaluations_of(submission)) text += evaluation_text(one);
  } catch (const Error& error) {
    throw ClientProblem(ProblemKind::answer,
                        cat("not the answer of a kjudge server (", error.what(), ")"));
  }
  return text;
}

std::string outcome_of(const Json& submission) {
  std::string outcome;
  for (const Json& one : evaluations_of(submission)) {
    const std::string verdict = text_or_empty(one, "verdict");
    if (verdict == "judge_error") return verdict;
    if (verdict != "accepted") outcome = "not_accepted";
    if (outcome.empty()) outcome = verdict;
  }
  return outcome;
}

}  // namespace kjudge
