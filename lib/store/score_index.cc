// SPDX-License-Identifier: Apache-2.0
#include "store/score_index.h"

// The file: kMagic, the rule of scoring, the hash of all that follows; then the terms and the
// submissions, each list after its length, numbers as this machine has them. A machine with other
// numbers finds another hash.

#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <map>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "error.h"
#include "file.h"
#include "score/result_json.h"
#include "store/numbered_folders.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "kjudge-scores/2\n";
constexpr std::size_t kMostIndexBytes = std::size_t{1} << 31;
// Of terms that only one thread knows yet.
constexpr std::uint32_t kLocal = std::uint32_t{1} << 31;

fs::path index_file(const fs::path& results) { return results / "scores.index"; }

class Writer {
 public:
  template <class T>
  void number(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class T, class Body>
  void list(const std::vector<T>& items, const Body& body) {
    number(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) body(item);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) throw Error(Fault::malformed, "scores.index: is cut off");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  template <class T>
  void number(T& value) {
    static_assert(std::is_arithmetic_v<T>);
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  void text(std::string& text) {
    std::uint32_t size = 0;
    number(size);
    text = take(size);
  }
  template <class T, class Body>
  void list(std::vector<T>& items, const Body& body) {
    std::uint32_t size = 0;
    number(size);
    if (size > rest_.size()) throw Error(Fault::malformed, "scores.index: is cut off");
    items.resize(size);
    for (T& item : items) body(item);
  }

 private:
  std::string_view rest_;
};

// The fields in their order, for a Writer or a Reader.
template <class File, class Stamp>
void put_stamp(File& file, Stamp& stamp) {
  file.number(stamp.modified_ns);
  file.number(stamp.inode);
}

template <class File, class T>
void put_terms(File& file, T& terms) {
  file.text(terms.challenge);
  file.number(terms.challenge_version);
  file.text(terms.challenge_sha256);
  file.text(terms.arch);
  file.text(terms.device_kind);
  file.number(terms.method);
}

template <class File, class S>
void put_shape(File& file, S& shape) {
  file.text(shape.name);
  for (auto* value : {&shape.baseline_ns, &shape.submission_ns, &shape.speedup, &shape.interval.low,
                      &shape.interval.high}) {
    file.number(*value);
  }
  file.number(shape.below_floor);
  file.list(shape.rounds, [&](auto& value) { file.number(value); });
}

template <class File, class E>
void put_evaluation(File& file, E& evaluation) {
  file.number(evaluation.number);
  put_stamp(file, evaluation.stamp);
  file.number(evaluation.terms);
  for (auto* text : {&evaluation.id, &evaluation.started, &evaluation.node}) file.text(*text);
  auto verdict = static_cast<std::uint8_t>(evaluation.verdict);
  file.number(verdict);
  if constexpr (!std::is_const_v<E>) evaluation.verdict = static_cast<Verdict>(verdict);
  file.number(evaluation.ranked);
  for (auto* value : {&evaluation.speedup, &evaluation.interval.low, &evaluation.interval.high}) {
    file.number(*value);
  }
  file.list(evaluation.shapes, [&](auto& shape) { put_shape(file, shape); });
}

template <class File, class S>
void put_submission(File& file, S& submission) {
  file.number(submission.number);
  put_stamp(file, submission.stamp);
  put_stamp(file, submission.folder);
  for (auto* text : {&submission.run, &submission.received, &submission.notes.label,
                     &submission.notes.license}) {
    file.text(*text);
  }
  file.number(submission.kept);
  file.list(submission.evaluations, [&](auto& one) { put_evaluation(file, one); });
}

// What one thread finds of a range of submissions.
class Part {
 public:
  Part(const ResultsDirectory& results, int folder, std::vector<ScoredSubmission>& known)
      : results_(results), folder_(folder), known_(known) {}

  void read(const int* from, const int* to) {
    for (; from != to; ++from) {
      try {
        submission(*from);
      } catch (const std::exception& error) {
        told.emplace_back(error.what());
        changed = true;
      }
    }
  }

  std::vector<ScoredSubmission> submissions;
  std::vector<Terms> terms;  // at kLocal and on
  std::vector<std::string> told;
  bool changed = false;

 private:
  void submission(int number) {
    const std::string name = std::to_string(number);
    const auto stamp = stamp_at(folder_, (name + "/submission.json").c_str());
    const auto same = std::lower_bound(
        known_.begin(), known_.end(), number,
        [](const ScoredSubmission& one, int wanted) { return one.number < wanted; });
    const bool is_known = same != known_.end() && same->number == number;
    ScoredSubmission found;
    if (is_known) found = std::move(*same);
    if (!is_known || !stamp || found.stamp != *stamp) {
      changed = true;
      found.number = number;
      const StoredSubmission stored = results_.submission(number);
      found.stamp = stamp.value_or(FileStamp{});
      found.run = stored.identity.run;
      found.received = stored.identity.received;
      found.notes = read_submission_notes(stored.folder / "files");
      found.kept = stored.identity.keep;
    }
    evaluations(found, name + "/evaluations");
    submissions.push_back(std::move(found));
  }

  void evaluations(ScoredSubmission& submission, const std::string& name) {
    const auto stamp = stamp_at(folder_, name.c_str()).value_or(FileStamp{});
    auto known = std::exchange(submission.evaluations, {});
    std::vector<int> numbers;
    if (stamp != FileStamp{} && stamp == submission.folder) {
      for (const ScoredEvaluation& one : known) numbers.push_back(one.number);
    } else {
      numbers = numbered(results_.path() / "submissions" / name);
      changed = changed || submission.folder != stamp;
      submission.folder = stamp;
      // Another folder may come in the same tick of the file system's clock.
      if (stamp.modified_ns > (std::time(nullptr) - kSettled) * 1'000'000'000) {
        submission.folder = {};
      }
    }
    for (const int number : numbers) {
      const std::string file = cat(name, "/", number, "/result.json");
      const auto of_file = stamp_at(folder_, file.c_str()).value_or(FileStamp{});
      const auto same = std::find_if(known.begin(), known.end(), [&](const auto& one) {
        return one.number == number && one.stamp == of_file;
      });
      if (same != known.end()) {
        submission.evaluations.push_back(std::move(*same));
        continue;
      }
      changed = true;
      try {
        submission.evaluations.push_back(
            evaluation(results_.path() / "submissions" / file, number, of_file));
        if (!submission.kept) submission.evaluations.back().ranked = false;
      } catch (const Error& error) {
        told.emplace_back(error.what());
        submission.folder = {};  // said each time, until it is mended
      }
    }
    changed = changed || known.size() != submission.evaluations.size();
  }

  ScoredEvaluation evaluation(const fs::path& path, int number, const FileStamp& stamp) {
    Evaluation facts = result_from_json(read_file(path), path);
    Score scored = score(facts);
    ScoredEvaluation found;
    found.number = number;
    found.stamp = stamp;
    found.terms = intern({facts.challenge, facts.challenge_version, facts.challenge_sha256,
                          facts.arch, device_kind(facts.arch, facts.device), facts.method});
    found.id = std::move(facts.id);
    found.started = std::move(facts.started);
    found.node = std::move(facts.node);
    found.verdict = facts.verdict;
    found.ranked = scored.ranked;
    if (!scored.ranked) return found;
    found.speedup = scored.speedup;
    found.interval = scored.interval;
    found.shapes = std::move(scored.shapes);
    return found;
  }

  std::uint32_t intern(Terms wanted) {
    const auto [at, is_new] = numbers_.try_emplace(wanted, terms.size());
    if (is_new) terms.push_back(std::move(wanted));
    return kLocal + static_cast<std::uint32_t>(at->second);
  }

  static constexpr std::int64_t kSettled = 3;  // seconds
  const ResultsDirectory& results_;
  const int folder_;
  std::vector<ScoredSubmission>& known_;
  std::map<Terms, std::size_t> numbers_;
};

}  // namespace

ScoreIndex::ScoreIndex(const ResultsDirectory& results, const ResultsDirectory::Report& report,
                       Begin begin)
    : results_(results.path()) {
  if (begin == Begin::from_file) from_file_ = load();
  refresh(report);
}

ScoreIndex::FromFile ScoreIndex::load() {
  if (!fs::exists(index_file(results_))) return FromFile::absent;
  try {
    const std::string bytes = read_file(index_file(results_), kMostIndexBytes);
    if (!bytes.starts_with(kMagic)) return FromFile::outdated;
    Reader file(std::string_view(bytes).substr(kMagic.size()));
    int rule = 0;
    std::uint64_t hash = 0;
    file.number(rule);
    file.number(hash);
    const auto body = std::string_view(bytes).substr(kMagic.size() + sizeof rule + sizeof hash);
    if (hash != XXH3_64bits(body.data(), body.size())) return FromFile::damaged;
    if (rule != kScoreRule) return FromFile::outdated;
    file.list(terms_, [&](Terms& terms) { put_terms(file, terms); });
    file.list(submissions_, [&](ScoredSubmission& one) { put_submission(file, one); });
  } catch (const Error&) {  // it is made anew
    submissions_.clear();
    terms_.clear();
    return FromFile::damaged;
  }
  changed_ = false;
  return FromFile::used;
}

bool ScoreIndex::agrees_with(const ScoreIndex& other) const {
  const auto same_interval = [](const Interval& a, const Interval& b) {
    return a.low == b.low && a.high == b.high;
  };
  const auto same_shape = [&](const ShapeScore& a, const ShapeScore& b) {
    return std::tie(a.name, a.baseline_ns, a.submission_ns, a.speedup, a.below_floor, a.rounds) ==
               std::tie(b.name, b.baseline_ns, b.submission_ns, b.speedup, b.below_floor,
                        b.rounds) &&
           same_interval(a.interval, b.interval);
  };
  const auto same_evaluation = [&](const ScoredEvaluation& a, const ScoredEvaluation& b) {
    return std::tie(a.number, a.stamp, a.id, a.started, a.node, a.verdict, a.ranked, a.speedup) ==
               std::tie(b.number, b.stamp, b.id, b.started, b.node, b.verdict, b.ranked,
                        b.speedup) &&
           terms(a) == other.terms(b) && same_interval(a.interval, b.interval) &&
           std::equal(a.shapes.begin(), a.shapes.end(), b.shapes.begin(), b.shapes.end(),
                      same_shape);
  };
  return std::equal(
      submissions_.begin(), submissions_.end(), other.submissions_.begin(),
      other.submissions_.end(), [&](const ScoredSubmission& a, const ScoredSubmission& b) {
        return std::tie(a.number, a.stamp, a.run, a.received, a.notes) ==
                   std::tie(b.number, b.stamp, b.run, b.received, b.notes) &&
               std::equal(a.evaluations.begin(), a.evaluations.end(), b.evaluations.begin(),
                          b.evaluations.end(), same_evaluation);
      });
}

void ScoreIndex::save() const {
  if (!changed_) return;
  Writer body;
  body.list(terms_, [&](const Terms& terms) { put_terms(body, terms); });
  body.list(submissions_, [&](const ScoredSubmission& one) { put_submission(body, one); });
  Writer head;
  head.number(kScoreRule);
  head.number(static_cast<std::uint64_t>(XXH3_64bits(body.bytes().data(), body.bytes().size())));
  try {
    write_file_atomically(index_file(results_), cat(kMagic, head.bytes(), body.bytes()));
  } catch (const Error&) {  // as the header says
  }
}

void ScoreIndex::refresh(const ResultsDirectory::Report& report) {
  std::vector<ScoredSubmission> known = std::move(submissions_);
  submissions_.clear();
  const fs::path path = results_ / "submissions";
  const std::vector<int> numbers = numbered(path);
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) throw_errno(path.string());
  const ResultsDirectory results(results_);
  const std::size_t threads = std::clamp<std::size_t>(
      std::min<std::size_t>(std::thread::hardware_concurrency(), numbers.size() / 64), 1, 16);
  std::vector<Part> parts(threads, Part(results, folder.get(), known));
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < threads; ++i) {
      const int* first = numbers.data();
      running.emplace_back([&, i, first] {
        parts[i].read(first + numbers.size() * i / threads,
                      first + numbers.size() * (i + 1) / threads);
      });
    }
  }
  std::map<Terms, std::uint32_t> all;
  for (const Terms& terms : terms_) all.try_emplace(terms, static_cast<std::uint32_t>(all.size()));
  submissions_.reserve(numbers.size());
  for (Part& part : parts) {
    for (const std::string& line : part.told) report(line);
    changed_ = changed_ || part.changed;
    for (ScoredSubmission& submission : part.submissions) {
      for (ScoredEvaluation& evaluation : submission.evaluations) {
        if (evaluation.terms < kLocal) continue;
        const Terms& terms = part.terms[evaluation.terms - kLocal];
        const auto [at, is_new] = all.try_emplace(terms, static_cast<std::uint32_t>(terms_.size()));
        if (is_new) terms_.push_back(terms);
        evaluation.terms = at->second;
      }
      submissions_.push_back(std::move(submission));
    }
  }
  changed_ = changed_ || submissions_.size() != known.size();
}

const ScoredSubmission* ScoreIndex::find(int number) const {
  const auto at =
      std::lower_bound(submissions_.begin(), submissions_.end(), number,
                       [](const ScoredSubmission& one, int wanted) { return one.number < wanted; });
  return at != submissions_.end() && at->number == number ? &*at : nullptr;
}

Score ScoreIndex::score_of(const ScoredEvaluation& evaluation) const {
  Score score;
  score.ranked = evaluation.ranked;
  if (!evaluation.ranked) score.why_not = cat("the verdict is ", name(evaluation.verdict));
  score.speedup = evaluation.speedup;
  score.interval = evaluation.interval;
  score.shapes = evaluation.shapes;
  return score;
}

}  // namespace kjudge
