// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "web/site.h"
#include "web/site_pages.h"

namespace kjudge {

// What a server says of a contest, as the results directory was a moment ago. Does not change.
struct ContestView {
  ContestView(Site&& read, const ResultsDirectory::Report& report);

  const SubmissionSummary* find(int number) const;  // null: it was not there then

  const Site site;
  const SitePages pages;
  std::map<int, int> positions;  // in the queue, from 1, of what waits and nobody judges
};

// Reads a results directory again and again in a thread of its own, and remembers which ids are
// there, so that a request that is repeated is known. Any thread may ask.
class ContestWatch {
 public:
  // Reads it the first time, and gives runs that have no owner to the organizer.
  ContestWatch(const ResultsDirectory& results, std::vector<Challenge> challenges,
               ResultsDirectory::Report report);
  ~ContestWatch();
  ContestWatch(const ContestWatch&) = delete;
  ContestWatch& operator=(const ContestWatch&) = delete;

  std::shared_ptr<const ContestView> view() const;
  // Something was added: look soon.
  void wake();

  std::optional<int> find_id(const std::string& id) const;
  std::optional<std::string> id_of(int number) const;
  void note(int number, const std::string& id);
  // Every submission up to this number is known; 0: none is.
  int known_up_to() const;

 private:
  void read();
  void run();

  const ResultsDirectory& results_;
  const ResultsDirectory::Report report_;
  SiteReader reader_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const ContestView> view_;
  std::map<std::string, int> numbers_;  // by id
  std::map<int, std::string> ids_;
  int known_up_to_ = 0;
  bool awake_ = false, ending_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace kjudge
