// SPDX-License-Identifier: Apache-2.0
#include "web/write_site.h"

#include <algorithm>
#include <map>
#include <set>

#include "error.h"
#include "file.h"
#include "web/assets.h"
#include "web/pages.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kList = ".kjudge-pages";
constexpr std::size_t kLargestPage = std::size_t{1} << 30;

// Of a line of the list, which is a file like others: only what this program would have written.
bool is_page_address(const std::string& address) {
  const bool plain = std::all_of(address.begin(), address.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("._~-/").find(static_cast<char>(c)) != std::string_view::npos;
  });
  const auto slash = address.find('/');
  return plain && slash != 0 && address.find('/', slash + 1) == address.npos &&
         address.find("..") == address.npos &&
         (address.ends_with(".html") || address.ends_with(".csv"));
}

class SiteWriter {
 public:
  explicit SiteWriter(const fs::path& output) : output_(output) { make_folder(output); }

  void put(const std::string& address, std::string_view bytes) {
    if (!addresses_.insert(address).second) return;
    const fs::path path = output_ / address;
    make_folder(path.parent_path());
    if (is_there(path, bytes)) return;
    write_file_atomically(path, bytes);
    ++written_;
  }

  WrittenSite finish() {
    WrittenSite counts{static_cast<int>(addresses_.size()), written_, 0};
    for (const std::string& old : listed()) {
      std::error_code error;
      if (is_page_address(old) && !addresses_.contains(old) && fs::remove(output_ / old, error))
        ++counts.removed;
    }
    std::string list;
    for (const std::string& address : addresses_) list += address + "\n";
    if (!is_there(output_ / kList, list)) write_file_atomically(output_ / kList, list);
    return counts;
  }

 private:
  static void make_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw Error(Fault::host, cat(folder.string(), ": ", error.message()));
  }

  static bool is_there(const fs::path& path, std::string_view bytes) {
    std::error_code error;
    return fs::file_size(path, error) == bytes.size() && !error &&
           read_file(path, kLargestPage) == bytes;
  }

  std::vector<std::string> listed() const {
    std::vector<std::string> addresses;
    if (!fs::exists(output_ / kList)) return addresses;
    const std::string text = read_file(output_ / kList, kLargestPage);
    for (std::string_view rest = text; !rest.empty();) {
      const auto end = std::min(rest.find('\n'), rest.size());
      addresses.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return addresses;
  }

  fs::path output_;
  std::set<std::string> addresses_;
  int written_ = 0;
};

struct Found {
  const SubmissionSummary* submission = nullptr;
  const EvaluationSummary* evaluation = nullptr;
};

// How the evaluations of a site belong together.
class Relations {
 public:
  Relations(const Site& site, const std::vector<Leaderboard>& boards) : boards_(boards) {
    for (const SubmissionSummary& submission : site.submissions) {
      for (const EvaluationSummary& evaluation : submission.evaluations) {
        const EvaluationKey key{submission.stored.identity.number, evaluation.number};
        all_[key] = {&submission, &evaluation};
        if (!evaluation.kernels.empty()) same_kernels_[evaluation.kernels].push_back(key);
      }
    }
    for (const Leaderboard& board : boards) {
      if (board.variant.dtype.empty()) board_of_[board.variant] = &board;
    }
  }

  const Found& find(const EvaluationKey& key) const { return all_.at(key); }

  EvaluationPage page(const Found& found, const Evaluation& evaluation, const Site& site) {
    const EvaluationKey key{found.submission->stored.identity.number, found.evaluation->number};
    EvaluationPage page{*found.submission, *found.evaluation, evaluation, {}, {}, {}, {}, nullptr};
    if (const auto same = same_kernels_.find(found.evaluation->kernels);
        same != same_kernels_.end()) {
      page.same_kernels = same->second;
      std::erase(page.same_kernels, key);
    }
    const Evaluation& facts = found.evaluation->facts;
    const Variant variant = variant_of(facts);
    const auto board = board_of_.find(variant);
    if (board != board_of_.end()) page.board = board->second->address;
    if (!found.evaluation->score.shapes.empty()) {
      // Ascending, so what is there now is the newest before this one.
      auto& before = last_of_[{found.submission->stored.identity.run, variant}];
      if (before.submission != 0) page.previous = before;
      before = key;
      if (board != board_of_.end() && !board->second->rows.empty()) {
        const EvaluationKey best = board->second->rows.front().key;
        if (best != key && page.previous != best) page.best = best;
      }
    }
    const auto& challenge = site.challenge;
    if (challenge && challenge->name == facts.challenge &&
        challenge->sha256 == facts.challenge_sha256)
      page.challenge = &*challenge;
    return page;
  }

 private:
  const std::vector<Leaderboard>& boards_;
  std::map<EvaluationKey, Found> all_;
  std::map<std::string, std::vector<EvaluationKey>> same_kernels_;
  std::map<Variant, const Leaderboard*> board_of_;
  std::map<std::pair<std::string, Variant>, EvaluationKey> last_of_;
};

ComparedEvaluation compared(const Relations& relations, const EvaluationKey& key,
                            const ReportLine& report) {
  const Found& found = relations.find(key);
  std::vector<Profile> profiles;
  if (!found.evaluation->profiled.empty())
    profiles = read_profiles(found.submission->stored, key.evaluation, report);
  return {key, found.submission->stored.identity.run, *found.evaluation, std::move(profiles)};
}

void write_evaluation(SiteWriter& writer, Relations& relations, const Site& site,
                      const Found& found, const ReportLine& report) {
  const EvaluationKey key{found.submission->stored.identity.number, found.evaluation->number};
  const Evaluation evaluation = read_evaluation(found.submission->stored, key.evaluation);
  const EvaluationPage page = relations.page(found, evaluation, site);
  const std::string& run = found.submission->stored.identity.run;
  if (!found.evaluation->profiled.empty()) {
    for (const Profile& profile :
         read_profiles(found.submission->stored, key.evaluation, [](const std::string&) {})) {
      writer.put(profile_address(key.submission, key.evaluation, profile.shape, ".csv"),
                 profile_csv(profile));
      writer.put(profile_address(key.submission, key.evaluation, profile.shape),
                 profile_page(key, run, profile));
    }
  }
  for (const auto& other : {page.previous, page.best}) {
    if (!other) continue;
    writer.put(comparison_address(*other, key), comparison_page(compared(relations, *other, report),
                                                                compared(relations, key, report)));
  }
  writer.put(evaluation_address(key.submission, key.evaluation), evaluation_page(page));
}

// The files of a submission that may be shown. What is damaged is for fsck to tell.
void write_code(SiteWriter& writer, const SubmissionSummary& submission) {
  constexpr std::size_t kLargestFile = 1 << 20;
  const fs::path folder = submission.stored.folder / "files";
  std::vector<std::pair<std::string, std::string>> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (!at->is_regular_file() || at->is_symlink()) continue;
    const bool small = at->file_size() <= kLargestFile;
    files.emplace_back(at->path().lexically_relative(folder).string(),
                       small ? read_file(at->path()) : "(larger than a page)");
  }
  std::sort(files.begin(), files.end());
  writer.put(code_address(submission.stored.identity.number), code_page(submission, files));
}

std::string task_of(const Site& site, const ReportLine& report) {
  if (!site.challenge) return {};
  try {
    return read_file(site.challenge->folder / "TASK.md", 1 << 20);
  } catch (const Error& error) {
    report(error.what());
    return {};
  }
}

}  // namespace

WrittenSite write_site(const Site& site, const fs::path& output, const ReportLine& report) {
  SiteWriter writer(output);
  writer.put("kjudge.css", page_stylesheet());
  writer.put("kjudge.js", page_script());
  writer.put("kjudge.svg", page_icon());
  const std::vector<Leaderboard> boards = make_leaderboards(site);
  Relations relations(site, boards);
  std::set<std::string> runs;
  std::set<std::pair<std::string, int>> challenges;
  if (site.challenge) challenges.emplace(site.challenge->name, site.challenge->version);
  for (const SubmissionSummary& submission : site.submissions) {
    runs.insert(submission.stored.identity.run);
    for (const EvaluationSummary& evaluation : submission.evaluations) {
      challenges.emplace(evaluation.facts.challenge, evaluation.facts.challenge_version);
      try {
        write_evaluation(writer, relations, site, {&submission, &evaluation}, report);
      } catch (const Error& error) {
        if (error.fault() != Fault::malformed) throw;
        report(error.what());
      }
    }
    if (submission.running) {
      writer.put(evaluation_address(submission.stored.identity.number, submission.next_number()),
                 running_page(submission));
    }
  }
  for (const SubmissionSummary& submission : site.submissions) {
    if (submission.published) write_code(writer, submission);
  }
  for (const std::string& run : runs) writer.put(run_address(run), run_page(site, run));
  for (const Leaderboard& board : boards)
    writer.put(board.address, leaderboard_page(board, boards));
  const std::string task = task_of(site, report);
  for (const auto& [challenge, version] : challenges) {
    writer.put(challenge_address(challenge, version),
               challenge_page(site, boards, challenge, version, task));
  }
  writer.put("index.html", front_page(site, boards));
  return writer.finish();
}

}  // namespace kjudge
