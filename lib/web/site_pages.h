// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "web/site.h"

namespace kjudge {

// The pages of a site by their addresses, each made when it is asked for: write_site() writes them,
// a server shows them. Any thread may ask.
class SitePages {
 public:
  // All of them. Refers to `site`, which must outlive it and stay as it is. What cannot be read is
  // left out, and reported.
  SitePages(const Site& site, ResultsDirectory::Report report);
  // Those that say something of this submission that is news when it was judged.
  SitePages(const Site& site, ResultsDirectory::Report report, int submission);

  const std::vector<Leaderboard>& boards() const { return boards_; }
  // Every address, none before what it links to.
  void each(const std::function<void(const std::string& address)>& take) const;
  bool has(const std::string& address) const { return sources_.contains(address); }
  // nullopt: there is no such page. Fault::malformed when an evaluation cannot be read any more.
  std::optional<std::string> render(const std::string& address) const;

 private:
  struct Found {
    const SubmissionSummary* submission = nullptr;
    const EvaluationSummary* evaluation = nullptr;
  };
  struct AssetSource {
    std::string_view text;
  };
  struct ProfileSource {
    EvaluationKey key;
    std::string shape;
    bool csv = false;
  };
  struct ComparisonSource {
    EvaluationKey left, right;
  };
  struct EvaluationSource {
    EvaluationKey key;
  };
  struct RunningSource {
    const SubmissionSummary* submission;
  };
  struct CodeSource {
    const SubmissionSummary* submission;
  };
  struct RunSource {
    std::string run;
  };
  struct BoardSource {
    const Leaderboard* board;
  };
  struct ChallengeSource {
    std::string name;
    int version;
  };
  struct FrontSource {};
  using Source =
      std::variant<AssetSource, ProfileSource, ComparisonSource, EvaluationSource, RunningSource,
                   CodeSource, RunSource, BoardSource, ChallengeSource, FrontSource>;

  void relate();
  void list();
  void list_about(int submission);
  void add_assets();
  void add_submission(const SubmissionSummary& submission);
  void add(std::string address, Source source);
  void add_evaluation(const EvaluationKey& key);
  std::optional<EvaluationKey> best_beside(const EvaluationKey& key) const;
  const Leaderboard* board_of(const EvaluationSummary& evaluation) const;

  std::string render(const AssetSource& source) const;
  std::string render(const ProfileSource& source) const;
  std::string render(const ComparisonSource& source) const;
  std::string render(const EvaluationSource& source) const;
  std::string render(const RunningSource& source) const;
  std::string render(const CodeSource& source) const;
  std::string render(const RunSource& source) const;
  std::string render(const BoardSource& source) const;
  std::string render(const ChallengeSource& source) const;
  std::string render(const FrontSource& source) const;

  const Site& site_;
  const ResultsDirectory::Report report_;
  const std::vector<Leaderboard> boards_;
  std::map<EvaluationKey, Found> all_;
  std::unordered_map<std::string_view, std::vector<EvaluationKey>> same_kernels_;
  std::map<Variant, const Leaderboard*> board_of_;
  std::map<EvaluationKey, EvaluationKey> previous_;  // of the same run and variant
  std::map<std::string, Source> sources_;
  std::vector<const std::string*> order_;
};

}  // namespace kjudge
