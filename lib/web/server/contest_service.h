// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/file_stamp.h"
#include "store/identity.h"
#include "store/metric_counts.h"
#include "web/server/contest_watch.h"
#include "web/server/http.h"
#include "web/server/rate_limit.h"
#include "web/server/upload.h"

namespace kjudge {

struct ContestServiceOptions {
  std::vector<Challenge> challenges;  // that may be handed in for; one of a name
  std::filesystem::path packages;     // NAME-VERSION.tar.zst to download; empty: none
  std::string url;                    // of the site, for links, without '/' at its end
  double uploads_per_minute = 30;     // of each token, ...
  double upload_burst = 20;           // ... and so many at once after a rest
  double requests_per_s = 20, request_burst = 100;
  std::filesystem::path metric_counts;  // where it is counted which are looked at; empty: nowhere
};

// Answers what openapi.json describes, and shows the pages. Writes only what add() of a results
// directory writes, and what it counts.
class ContestService : public HttpService {
 public:
  ContestService(ResultsDirectory& results, ContestServiceOptions options,
                 ResultsDirectory::Report report);

  Begun begin(HttpRequest& request) override;
  std::uint64_t limit_bytes() const override { return limit_bytes_; }

 private:
  class Upload;
  class Sights;
  struct Package {
    FileStamp stamp;
    std::uint64_t bytes = 0;
    std::string sha256;
  };

  Begun begin_upload(HttpRequest& request);
  Begun begin_sights(const HttpRequest& request);
  HttpAnswer get(HttpRequest& request);
  HttpAnswer get_submission(HttpRequest& request, const std::string& number);
  HttpAnswer get_challenges(const HttpRequest& request);
  HttpAnswer get_leaderboard(const HttpRequest& request, const std::string& challenge);
  HttpAnswer get_package(const HttpRequest& request, const std::string& name);
  HttpAnswer get_page(const HttpRequest& request, const std::string& address);
  // Its name, which the request has from then on.
  std::string authenticate(HttpRequest& request);
  std::string owner_of(std::string_view token);
  const Challenge* find_challenge(const std::string& name) const;
  std::string challenge_names() const;
  std::optional<std::string> page_of_new(const std::string& address) const;
  Json submission_json(const StoredSubmission& submission) const;
  std::optional<Package> find_package(const std::string& name);

  ResultsDirectory& results_;
  const ContestServiceOptions options_;
  const ResultsDirectory::Report report_;
  std::uint64_t submission_limit_ = 0, limit_bytes_ = 0;
  TokenOwners owners_;
  RateLimit uploads_, requests_, sights_;
  std::optional<MetricCounts> metric_counts_;
  ContestWatch contest_;
  std::mutex packages_mutex_;
  std::map<std::string, Package> packages_;
};

}  // namespace kjudge
