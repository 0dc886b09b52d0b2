// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "json_fields.h"
#include "process_identity.h"
#include "replay/evaluation.h"
#include "store/results.h"
#include "store/running.h"

namespace kjudge {

// lease.json: who judges a submission.
struct Lease {
  int attempt = 0;
  ProcessIdentity holder;
  int seconds = 0;     // without a sign of life until another may take over
  std::string taken;   // UTC, RFC 3339
  int evaluation = 0;  // that it stored; 0: none, or not yet
};
JsonFormat lease_json_format();
// Fault::malformed, Fault::host.
Lease read_lease(const std::filesystem::path& claim);

// One judge's right to give a submission its next evaluation, and the evaluation being written.
//   submissions/42/claims/3/lease.json   of the third attempt; its time of modification, which the
//                                        holder renews, and `seconds` make the deadline
//   submissions/42/claims/3/running.json how far it is, while it is (store/running.h)
//   submissions/42/claims/3/work/        there as long as the claim is open
// An attempt's number is used once. Attempt 4 can be opened only when work/ of attempt 3 is gone,
// and work/ goes by one rename: to evaluations/N by its holder, or to dropped/ by whoever finds
// that the holder ended or is late. So of a holder that was only stopped and the judge that took
// over, one at most stores a verdict, on any file system whose renames are atomic. Times are the
// file system's, so clocks of several machines need not agree.
class Claim {
 public:
  // nullopt when another has it. A caller looks again whether the submission waits: the judge
  // before may just have stored its verdict. Where the lease of an open claim cannot be read, its
  // fault, until it is older than any lease lasts.
  static std::optional<Claim> take(const StoredSubmission& submission, std::chrono::seconds lease);
  // Gives it up, unless committed.
  ~Claim();
  Claim(Claim&&) noexcept;
  Claim& operator=(Claim&&) = delete;

  int attempt() const { return attempt_; }
  // Where the evaluation's files are put: bundle.kjb and kernels.sha256; of a copied one
  // secret.json too.
  std::filesystem::path folder() const;
  // Says how far the evaluation is. Fault::host when that cannot be written.
  void tell(const RunningEvaluation& running) const { write_running(path_, running); }
  // False once another judge took over.
  bool held() const;
  // Stores `evaluation` with the files in folder(): its number, which the submission's
  // `evaluations` then ends with. nullopt, with nothing stored, when another judge took over.
  std::optional<int> commit(StoredSubmission& submission, const Evaluation& evaluation,
                            const std::optional<ReplaySecret>& secret = {});

 private:
  class Renewal;
  void note_stored(int evaluation) const;
  Claim(std::filesystem::path path, int attempt, std::chrono::seconds lease);
  std::filesystem::path path_;
  int attempt_ = 0;
  std::unique_ptr<Renewal> renewal_;
};

// The open claim of a submission; nullopt when nobody has it.
std::optional<int> open_claim(const std::filesystem::path& submission);

}  // namespace kjudge
