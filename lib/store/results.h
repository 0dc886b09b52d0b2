// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "error.h"
#include "json_fields.h"
#include "replay/evaluation.h"

namespace kjudge {

// A results directory: plain files, the source of truth; kjudge-store(5) describes it.
//   store.json                       version of the layout
//   submissions/42/submission.json   identity
//   submissions/42/files/            what was handed in
//   submissions/42/claims/1/         who judges it, or did: store/claim.h
//   submissions/42/evaluations/1/    result.json, log.txt, secret.json; where there is a recording
//                                    bundle.kjb and kernels.sha256
//   runs/, tokens/                   store/identity.h
//   blobs/sha256/                    store/blobs.h
// Each numbered folder appears whole and for good (store/numbered_folders.h), so kill -9 at any
// point loses nothing that was there, and any number of processes and machines may read and write.

// In place of a challenge's name: whatever challenge a judge has.
inline constexpr const char* kAllChallenges = "all";

struct SubmissionIdentity {
  int number = 0;
  std::string id;         // UUID
  std::string challenge;  // its name, or kAllChallenges; empty: of version 1 of the layout, which
                          // held only one
  std::string run;
  std::string name;      // of the file or folder handed in
  std::string sha256;    // of its files, see store/submission_files.h
  std::string received;  // UTC, RFC 3339
  std::string owner;     // whose token handed it in; empty: the organizer
  std::string contact;   // how to reach the author; may be empty
  // false: its files go once it is judged, no log of it is stored, and it is not ranked.
  bool keep = true;
  bool publish = true;  // false: nobody is shown its code, whatever the challenge says
  // The part of the challenge that is asked for, and on which GPU; none: all of it, on any.
  VariantRequest variant = {};
  bool operator==(const SubmissionIdentity&) const = default;
};

struct StoredSubmission {
  SubmissionIdentity identity;
  std::filesystem::path folder;
  std::vector<int> evaluations;  // ascending
};

// What the hidden inputs and the order of an evaluation follow from, and with them the same
// evaluation can be made again. It lies beside the result, for the organizer's eyes, and is written
// after the submission's code has ended.
struct ReplaySecret {
  std::string evaluation;  // UUID
  std::string secret;      // 64 hexadecimal digits
  std::uint64_t order_seed = 0;
};
ReplaySecret draw_replay_secret();
// Into an evaluation's folder, where only the organizer may read it.
void write_replay_secret(const std::filesystem::path& evaluation, const ReplaySecret& secret);
// That of an evaluation's folder. Fault::usage where there is none: it was judged by a kjudge that
// kept none. Fault::malformed with file and field.
ReplaySecret read_replay_secret(const std::filesystem::path& evaluation);

class ResultsDirectory {
 public:
  // Called with each file that is left out because it cannot be read, and why.
  using Report = std::function<void(const Error&)>;

  // For reading. Fault::usage when there is no such directory.
  explicit ResultsDirectory(const std::filesystem::path& path);
  // For writing: made if need be.
  static ResultsDirectory make(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // Ascending by number.
  std::vector<StoredSubmission> submissions(const Report& report) const;
  // Fault::usage when there is no submission `number`.
  StoredSubmission submission(int number) const;

  // Puts `from` (see copy_submission, with its faults; names that could not be read back are the
  // submission's fault too) under the next number, durably. The same id or, without one, the same
  // run with the same bytes, wishes and variant is there once: then its number is returned and
  // nothing is written. `present` is what was there a while ago, ascending by number; what has a
  // lower number than its last and is not in it is not looked at. The run is the owner's from then
  // on. Fault::usage when it is another's, or the id was used for something else.
  struct HandIn {
    std::filesystem::path from;
    std::string run, challenge;
    std::uint64_t limit_bytes = 0;
    std::string id;  // UUID; empty: a new one
    std::string owner, contact;
    bool keep = true, publish = true;
    VariantRequest variant;  // as SubmissionIdentity has it
    // No number up to this one is given: a submission had it, which may be lost.
    int after = 0;
    // The id of a submission that is known to be there, so that it is not read; nullopt: not known.
    std::function<std::optional<std::string>(int number)> id_of;
  };
  int add(const HandIn& hand_in, const std::vector<SubmissionIdentity>& present);

 private:
  ResultsDirectory() = default;
  std::filesystem::path path_;
};

// Fault::malformed where its files are not what was handed in, by the hash in submission.json.
void require_files(const StoredSubmission& submission);

// The evaluation as it is stored. A log quotes the code, in tracebacks and warnings: of what is not
// to be kept there is none, and the messages say what failed.
Evaluation without_code(Evaluation evaluation, const SubmissionIdentity& submission);
// Of a submission that asked for it (SubmissionIdentity::keep): removes what was handed in and
// recorded, and leaves the verdict. Again does nothing more.
void remove_files(const ResultsDirectory& results, const StoredSubmission& submission);
// Whether its files are to go, and are still there: it has a verdict.
bool has_files_to_remove(const StoredSubmission& submission);

// What Nsight Compute counted, beside an evaluation's result: profile.json and profile-*.json, in
// the order of their names. They may come later. Fault::host where the folder cannot be read.
std::vector<std::filesystem::path> profile_files(const std::filesystem::path& evaluation);

// submission.json.
const FieldTable<SubmissionIdentity>& submission_table();

// secret.json.
JsonFormat secret_json_format();
// store.json, the version of the layout.
JsonFormat store_json_format();

// Newest evaluation of a submission; nullopt when it has none. Faults as result_from_json.
std::optional<Evaluation> latest_evaluation(const StoredSubmission& submission);

std::string utc_now();  // RFC 3339, seconds
// The same, once that second is over: what begins after this has a later time.
std::string utc_now_and_over();

}  // namespace kjudge
