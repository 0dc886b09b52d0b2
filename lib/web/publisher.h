// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "judge/backlog.h"
#include "judge/intake.h"
#include "web/site.h"

namespace kjudge {

// The pages of what a judge has in hand, while it judges. That a page cannot be written is told,
// once until one can be again, and no reason not to judge: nothing here throws but Interrupted.
//
// Of a submission that waits or runs there is .kjudge-running/42 beside the pages, until its page
// is that of its result: what a judge left there that was killed, the next one puts right. Several
// may publish into the same folder.
class Publisher {
 public:
  // Writes all pages where write_site() never did, unless there are more than `most` evaluations,
  // whose pages would keep the judge from judging.
  Publisher(const ResultsDirectory& results, std::filesystem::path output,
            std::vector<Challenge> challenges, ReportLine report, std::size_t most = 2000);
  // What was begun and not judged waits again.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // All that waits for this judge, whose turn is first first. Of a long queue only the beginning
  // gets pages.
  void waiting(const std::vector<Waiting>& waiting);
  void running(const StoredSubmission& submission, const RunningEvaluation& running);
  // All pages that say something of it; where write_site() never wrote the others, only its own.
  void judged(int submission);

 private:
  template <class Body>
  void attempt(const Body& body);
  ResultsDirectory::Report left_out() const;
  SiteReader& reader();
  void put_running(const StoredSubmission& submission, const RunningEvaluation& running);
  void put_judged(int submission);
  void put_right(const std::set<int>& waiting);

  const ResultsDirectory& results_;
  const std::filesystem::path output_, marks_;
  const std::vector<Challenge> challenges_;
  const ReportLine report_;
  const std::size_t most_;
  std::optional<SiteReader> reader_;  // from when it is needed
  bool told_ = false;
  std::map<int, int> places_;  // as their pages have them
  std::optional<StoredSubmission> judging_;
  bool looked_ = false;
};

}  // namespace kjudge
