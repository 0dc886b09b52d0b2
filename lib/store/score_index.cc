// SPDX-License-Identifier: Apache-2.0
#include "store/score_index.h"

// The file: kMagic, the rule of scoring, the hash of all that follows; then the last numbers, the
// terms and the submissions, each list after its length, numbers as this machine has them. A
// machine with other numbers finds another hash.

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
#include "store/claim.h"
#include "store/judgements.h"
#include "store/kernels_hash.h"
#include "store/numbered_folders.h"
#include "store/rejudgement.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "kjudge-scores/6\n";
constexpr std::size_t kMostIndexBytes = std::size_t{1} << 31;
constexpr std::size_t kBodyAt = kMagic.size() + sizeof(int) + sizeof(std::uint64_t);
using TermsPointer = std::shared_ptr<const Terms>;

fs::path index_file(const fs::path& results) { return results / "scores.index"; }

class Writer {
 public:
  Writer(const std::vector<TermsPointer>& terms, std::size_t usual_bytes) {
    for (const TermsPointer& one : terms) numbers_.emplace(one.get(), numbers_.size());
    bytes_.reserve(usual_bytes);
    bytes_ += kMagic;
    number(kScoreRule);
    number(std::uint64_t{0});  // the hash
  }
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
  void terms(const TermsPointer& terms) {
    number(static_cast<std::uint32_t>(numbers_.at(terms.get())));
  }
  const std::string& finish() {
    const std::uint64_t hash = XXH3_64bits(bytes_.data() + kBodyAt, bytes_.size() - kBodyAt);
    std::memcpy(bytes_.data() + kBodyAt - sizeof hash, &hash, sizeof hash);
    return bytes_;
  }

 private:
  std::map<const Terms*, std::size_t> numbers_;
  std::string bytes_;
};

class Reader {
 public:
  Reader(std::string_view bytes, const std::vector<TermsPointer>& terms)
      : rest_(bytes), terms_(terms) {}
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
  void terms(TermsPointer& terms) {
    std::uint32_t at = 0;
    number(at);
    if (at >= terms_.size()) throw Error(Fault::malformed, "scores.index: names no terms");
    terms = terms_[at];
  }

 private:
  std::string_view rest_;
  const std::vector<TermsPointer>& terms_;
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
  file.terms(evaluation.terms);
  for (auto* text : {&evaluation.id, &evaluation.started, &evaluation.node, &evaluation.message,
                     &evaluation.kernels, &evaluation.why_not, &evaluation.variant.challenge,
                     &evaluation.variant.dtype, &evaluation.variant.shape}) {
    file.text(*text);
  }
  auto verdict = static_cast<std::uint8_t>(evaluation.verdict);
  file.number(verdict);
  if constexpr (!std::is_const_v<E>) evaluation.verdict = static_cast<Verdict>(verdict);
  file.number(evaluation.ranked);
  file.number(evaluation.counts);
  file.number(evaluation.timed);
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
  put_stamp(file, submission.claims);
  file.number(submission.may_be_judged);
  file.number(submission.last_evaluation);
  auto& identity = submission.identity;
  for (auto* text : {&identity.id, &identity.challenge, &identity.run, &identity.name,
                     &identity.sha256, &identity.received, &identity.owner, &identity.contact,
                     &identity.variant.challenge, &identity.variant.dtype, &identity.variant.gpu,
                     &identity.variant.shape, &submission.notes.label, &submission.notes.license}) {
    file.text(*text);
  }
  file.number(identity.keep);
  file.number(identity.publish);
  file.list(submission.unreadable, [&](auto& number) { file.number(number); });
  file.list(submission.evaluations, [&](auto& one) { put_evaluation(file, one); });
}

// What is known of a submission of which all is to be read.
ScoredSubmission last_of(const ScoredSubmission& submission) {
  ScoredSubmission last;
  last.last_evaluation = submission.last_evaluation;
  return last;
}

// What one thread does with a range of submissions.
class Part {
 public:
  Part(const ResultsDirectory& results, int folder, const std::vector<TermsPointer>& known_terms)
      : results_(results), folder_(folder) {
    for (const TermsPointer& one : known_terms) interned_.emplace(*one, one);
  }

  // `submission` is what was known of it, or nothing; what cannot be read is left with number 0.
  void read(int number, ScoredSubmission& submission) {
    try {
      read_submission(number, submission);
    } catch (const Error& error) {
      leave_out(submission, error);
    } catch (const std::exception& error) {
      leave_out(submission, Error(Fault::host, cat("submission ", number, ": ", error.what())));
    }
  }

  std::vector<TermsPointer> terms;  // that were not known before
  std::vector<Error> told;
  bool changed = false;  // scores.index would
  bool news = false;     // somebody would see it

 private:
  void leave_out(ScoredSubmission& submission, const Error& error) {
    submission = {};
    told.push_back(error);
    changed = true;
  }

  void read_submission(int number, ScoredSubmission& submission) {
    const std::string name = std::to_string(number);
    const auto stamp = stamp_at(folder_, (name + "/submission.json").c_str());
    if (submission.number == 0 || !stamp || submission.stamp != *stamp) {
      changed = news = true;
      submission = last_of(submission);
      const StoredSubmission stored = results_.submission(number);
      submission.number = number;
      submission.stamp = stamp.value_or(FileStamp{});
      submission.identity = stored.identity;
      if (stored.identity.keep) submission.notes = read_submission_notes(stored.folder / "files");
    }
    claims(submission, name + "/claims");
    evaluations(submission, name + "/evaluations");
  }

  void claims(ScoredSubmission& submission, const std::string& name) {
    const auto stamp = stamp_at(folder_, name.c_str()).value_or(FileStamp{});
    if (stamp == submission.claims && !submission.may_be_judged) return;
    const bool may_be =
        !is_settled(stamp) ||
        open_claim(results_.path() / "submissions" / std::to_string(submission.number)).has_value();
    if (stamp == submission.claims && may_be == submission.may_be_judged) return;
    changed = news = true;
    submission.claims = stamp;
    submission.may_be_judged = may_be;
  }

  void evaluations(ScoredSubmission& submission, const std::string& name) {
    const auto stamp = stamp_at(folder_, name.c_str()).value_or(FileStamp{});
    const bool same_folder = stamp != FileStamp{} && stamp == submission.folder;
    // Mostly, and then nothing is moved: there are a hundred thousand.
    if (same_folder && are_as_read(submission.evaluations, name)) return;
    auto known = std::exchange(submission.evaluations, {});
    const auto unreadable = std::exchange(submission.unreadable, {});
    std::vector<int> numbers;
    if (same_folder) {
      for (const ScoredEvaluation& one : known) numbers.push_back(one.number);
    } else {
      numbers = numbered(results_.path() / "submissions" / name);
      changed = changed || submission.folder != stamp;
      submission.folder = is_settled(stamp) ? stamp : FileStamp{};
      if (!numbers.empty()) {
        submission.last_evaluation = std::max(submission.last_evaluation, numbers.back());
      }
    }
    submission.evaluations.reserve(numbers.size());
    for (const int number : numbers) {
      const FileStamp of_file = stamp_of_result(name, number);
      const auto same = std::find_if(known.begin(), known.end(), [&](const auto& one) {
        return one.number == number && one.stamp == of_file;
      });
      if (same != known.end()) {
        submission.evaluations.push_back(std::move(*same));
        continue;
      }
      try {
        submission.evaluations.push_back(evaluation(submission, number, of_file));
        changed = news = true;
      } catch (const Error& error) {
        told.push_back(error);
        submission.unreadable.push_back(number);
        submission.folder = {};  // said each time, until it is mended
      }
    }
    if (known.size() != submission.evaluations.size() || unreadable != submission.unreadable) {
      changed = news = true;
    }
  }

  bool are_as_read(const std::vector<ScoredEvaluation>& evaluations,
                   const std::string& folder) const {
    return std::all_of(evaluations.begin(), evaluations.end(), [&](const ScoredEvaluation& one) {
      return one.stamp == stamp_of_result(folder, one.number);
    });
  }

  FileStamp stamp_of_result(const std::string& folder, int number) const {
    return stamp_at(folder_, cat(folder, "/", number, "/result.json").c_str())
        .value_or(FileStamp{});
  }

  ScoredEvaluation evaluation(const ScoredSubmission& submission, int number,
                              const FileStamp& stamp) {
    const fs::path folder = results_.path() / "submissions" / std::to_string(submission.number) /
                            "evaluations" / std::to_string(number);
    const fs::path path = folder / "result.json";
    Evaluation facts = result_from_json(read_file(path), path);
    Score scored = score(facts);
    ScoredEvaluation found;
    found.number = number;
    found.stamp = stamp;
    found.terms = intern(terms_of(facts));
    found.id = std::move(facts.id);
    found.started = std::move(facts.started);
    found.node = std::move(facts.node);
    found.verdict = facts.verdict;
    if (facts.verdict == Verdict::judge_error) found.message = std::move(facts.message);
    found.kernels = kernels_in(folder);
    set_unverified(submission.identity, scored);
    found.timed = !scored.shapes.empty();
    found.variant = std::move(facts.variant);
    found.ranked = scored.ranked;
    found.counts = scored.counts;
    found.why_not = std::move(scored.why_not);
    if (!scored.counts) return found;
    found.speedup = scored.speedup;
    found.interval = scored.interval;
    found.shapes = std::move(scored.shapes);
    return found;
  }

  // An older kjudge left only the recording; larger ones are not opened for this.
  static std::string kernels_in(const fs::path& folder) {
    constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
    const fs::path hash = folder / "kernels.sha256", bundle = folder / "bundle.kjb";
    std::error_code error;
    try {
      if (fs::exists(hash, error)) return read_file(hash, 65).substr(0, 64);
    } catch (const Error&) {
      return "";
    }
    const auto size = fs::file_size(bundle, error);
    if (error || size > kMostBytes) return "";
    try {
      return kernels_sha256(BundleReader(bundle).bundle());
    } catch (const Error&) {
      return "";  // what is damaged is for fsck to tell
    }
  }

  TermsPointer intern(Terms wanted) {
    const auto at = interned_.find(wanted);
    if (at != interned_.end()) return at->second;
    terms.push_back(std::make_shared<const Terms>(wanted));
    interned_.emplace(std::move(wanted), terms.back());
    return terms.back();
  }

  // Else another may come in the same tick of the file system's clock.
  static bool is_settled(const FileStamp& stamp) {
    constexpr std::int64_t kSeconds = 3;
    return stamp.modified_ns <= (std::time(nullptr) - kSeconds) * 1'000'000'000;
  }

  const ResultsDirectory& results_;
  const int folder_;
  std::map<Terms, TermsPointer> interned_;
};

// What is known of each of `numbers`, at its place; mostly only the last ones are new.
void place(std::vector<ScoredSubmission>& known, const std::vector<int>& numbers) {
  const auto is_at = [](const ScoredSubmission& one, int number) { return one.number == number; };
  if (known.size() <= numbers.size() &&
      std::equal(known.begin(), known.end(), numbers.begin(), is_at)) {
    if (known.capacity() < numbers.size()) known.reserve(numbers.size() + numbers.size() / 16);
    known.resize(numbers.size());
    return;
  }
  std::vector<ScoredSubmission> placed(numbers.size());
  auto from = known.begin();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    while (from != known.end() && from->number < numbers[i]) ++from;
    if (from != known.end() && from->number == numbers[i]) placed[i] = std::move(*from);
  }
  known = std::move(placed);
}

// 0: none, or it cannot be looked into, which fsck tells.
int last_in(const fs::path& folder) {
  try {
    const auto numbers = numbered(folder);
    return numbers.empty() ? 0 : numbers.back();
  } catch (const Error&) {
    return 0;
  }
}

// As version 1 of the layout had it, which held one challenge, named by its results only.
void name_challenges(std::vector<ScoredSubmission>& submissions) {
  std::string unnamed;
  for (const ScoredSubmission& one : submissions) {
    if (!one.identity.challenge.empty() || one.evaluations.empty()) continue;
    unnamed = one.evaluations.front().terms->challenge;
    break;
  }
  for (ScoredSubmission& one : submissions) {
    const std::string& named = one.identity.challenge;
    one.challenge = named.empty() ? unnamed : named;
  }
}

}  // namespace

ScoreIndex::ScoreIndex(const ResultsDirectory& results, ResultsDirectory::Report report,
                       Begin begin)
    : results_(results.path()), report_(std::move(report)) {
  for (const char* kind : {kBarRecord, kInvalidationRecord, kPlayOffRecord, kRejudgementRecord}) {
    last_records_[kind] = 0;
  }
  from_file_ = load();
  if (begin == Begin::from_nothing) {
    for (ScoredSubmission& one : submissions_) {
      const int number = one.number;
      one = last_of(one);
      one.number = number;  // by which it is found again
    }
    terms_.clear();
    changed_ = true;
  }
  refresh();
}

ScoreIndex::FromFile ScoreIndex::load() {
  if (std::error_code error; !fs::exists(index_file(results_), error)) return FromFile::absent;
  try {
    const std::string bytes = read_file(index_file(results_), kMostIndexBytes);
    if (!bytes.starts_with(kMagic)) return FromFile::outdated;
    Reader file(std::string_view(bytes).substr(kMagic.size()), terms_);
    int rule = 0;
    std::uint64_t hash = 0;
    file.number(rule);
    file.number(hash);
    const auto body = std::string_view(bytes).substr(kBodyAt);
    if (hash != XXH3_64bits(body.data(), body.size())) return FromFile::damaged;
    file.number(last_number_);
    for (auto& [kind, last] : last_records_) file.number(last);
    if (rule != kScoreRule) return FromFile::outdated;
    std::vector<Terms> terms;
    file.list(terms, [&](Terms& one) { put_terms(file, one); });
    for (Terms& one : terms) terms_.push_back(std::make_shared<const Terms>(std::move(one)));
    file.list(submissions_, [&](ScoredSubmission& one) {
      put_submission(file, one);
      one.identity.number = one.number;
    });
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
    const auto fields = [](const ScoredEvaluation& of) {
      return std::tie(of.number, of.stamp, *of.terms, of.id, of.started, of.node, of.verdict,
                      of.message, of.kernels, of.ranked, of.counts, of.why_not, of.timed,
                      of.speedup);
    };
    return fields(a) == fields(b) && a.variant == b.variant &&
           same_interval(a.interval, b.interval) &&
           std::equal(a.shapes.begin(), a.shapes.end(), b.shapes.begin(), b.shapes.end(),
                      same_shape);
  };
  return std::equal(
      submissions_.begin(), submissions_.end(), other.submissions_.begin(),
      other.submissions_.end(), [&](const ScoredSubmission& a, const ScoredSubmission& b) {
        return std::tie(a.number, a.stamp, a.identity, a.notes, a.unreadable) ==
                   std::tie(b.number, b.stamp, b.identity, b.notes, b.unreadable) &&
               std::equal(a.evaluations.begin(), a.evaluations.end(), b.evaluations.begin(),
                          b.evaluations.end(), same_evaluation);
      });
}

void ScoreIndex::save() {
  if (!changed_) return;
  constexpr std::size_t kUsualBytes = 700;  // of a submission
  Writer file(terms_, submissions_.size() * kUsualBytes);
  file.number(last_number_);
  for (const auto& [kind, last] : last_records_) file.number(last);
  file.list(terms_, [&](const TermsPointer& terms) { put_terms(file, *terms); });
  file.list(submissions_, [&](const ScoredSubmission& one) { put_submission(file, one); });
  try {
    write_file_atomically(index_file(results_), file.finish());
    changed_ = false;
  } catch (const Error&) {  // as the header says
  }
}

bool ScoreIndex::refresh() {
  const fs::path path = results_ / "submissions";
  const std::vector<int> numbers = numbered(path);
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) throw_errno(path.string());
  const ResultsDirectory results(results_);
  if (!numbers.empty()) last_number_ = std::max(last_number_, numbers.back());
  for (auto& [kind, last] : last_records_) {
    const int now = last_in(record_folder(results_, kind));
    if (now > last) changed_ = true;
    last = std::max(last, now);
  }
  const std::size_t before = submissions_.size();
  place(submissions_, numbers);
  const std::size_t threads = std::clamp<std::size_t>(
      std::min<std::size_t>(std::thread::hardware_concurrency(), numbers.size() / 64), 1, 16);
  const auto begin_of = [&](std::size_t part) { return numbers.size() * part / threads; };
  std::vector<Part> parts(threads, Part(results, folder.get(), terms_));
  {
    std::vector<std::jthread> running;
    for (std::size_t part = 0; part < threads; ++part) {
      running.emplace_back([&, part] {
        for (std::size_t i = begin_of(part); i < begin_of(part + 1); ++i) {
          parts[part].read(numbers[i], submissions_[i]);
        }
      });
    }
  }
  bool news = false;
  std::map<Terms, TermsPointer> added;
  for (std::size_t i = 0; i < threads; ++i) {
    const Part& part = parts[i];
    for (const Error& error : part.told) {
      if (told_.insert(described(error)).second) report_(error);
    }
    changed_ = changed_ || part.changed;
    news = news || part.news;
    std::map<const Terms*, TermsPointer> common;
    for (const TermsPointer& one : part.terms) {
      const auto [at, is_new] = added.try_emplace(*one, one);
      if (is_new) terms_.push_back(one);
      common.emplace(one.get(), at->second);
    }
    for (std::size_t at = begin_of(i); !common.empty() && at < begin_of(i + 1); ++at) {
      for (ScoredEvaluation& evaluation : submissions_[at].evaluations) {
        const auto one = common.find(evaluation.terms.get());
        if (one != common.end()) evaluation.terms = one->second;
      }
    }
  }
  std::erase_if(submissions_, [](const ScoredSubmission& one) { return one.number == 0; });
  if (submissions_.size() != before) changed_ = news = true;
  name_challenges(submissions_);
  return news;
}

void ScoreIndex::forget(int submission) {
  const auto at =
      std::lower_bound(submissions_.begin(), submissions_.end(), submission,
                       [](const ScoredSubmission& one, int wanted) { return one.number < wanted; });
  if (at != submissions_.end() && at->number == submission) at->folder = {};
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
  score.counts = evaluation.counts;
  score.why_not = evaluation.why_not;
  score.speedup = evaluation.speedup;
  score.interval = evaluation.interval;
  score.shapes = evaluation.shapes;
  return score;
}

void set_unverified(const SubmissionIdentity& submission, Score& score) {
  if (submission.keep || !score.counts) return;
  score.ranked = score.counts = false;
  score.why_not = "unverified: its files were not to be kept";
}

}  // namespace kjudge
