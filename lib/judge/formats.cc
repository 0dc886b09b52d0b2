// SPDX-License-Identifier: Apache-2.0
#include "judge/formats.h"

#include "challenge/challenge_format.h"
#include "challenge/package.h"
#include "judge/bundle_json.h"
#include "judge/capture_outcome_json.h"
#include "judge/capture_protocol.h"
#include "judge/doctor_json.h"
#include "judge/export.h"
#include "judge/judged_json.h"
#include "judge/measured_device.h"
#include "judge/play_off.h"
#include "judge/profile.h"
#include "judge/rank_json.h"
#include "judge/records_json.h"
#include "judge/rejudged_json.h"
#include "score/result_json.h"
#include "score/scores_json.h"
#include "store/check_json.h"
#include "store/claim.h"
#include "store/identity.h"
#include "store/judgements.h"
#include "store/metric_counts.h"
#include "store/pruning.h"
#include "store/rejudgement.h"
#include "store/results.h"
#include "store/running.h"
#include "store/tokens_json.h"

namespace kjudge {

std::vector<JsonFormat> json_formats() {
  std::vector<JsonFormat> formats = {json_format(challenge_table()),
                                     json_format(package_table()),
                                     result_json_format(),
                                     json_format(submission_table()),
                                     lease_json_format(),
                                     json_format(running_table()),
                                     json_format(pruned_table()),
                                     json_format(bar_table()),
                                     json_format(invalidation_table()),
                                     json_format(play_off_table()),
                                     json_format(rejudgement_table()),
                                     rejudgement_end_json_format(),
                                     json_format(export_table()),
                                     secret_json_format(),
                                     token_json_format(),
                                     run_json_format(),
                                     metric_counts_json_format(),
                                     store_json_format(),
                                     capture_status_json_format(),
                                     profile_json_format(),
                                     json_format(judged_table()),
                                     json_format(measured_device_table()),
                                     standings_json_format(),
                                     history_json_format(),
                                     scores_json_format(),
                                     capture_outcome_json_format(),
                                     doctor_json_format(),
                                     check_json_format(),
                                     json_format(bundle_json_table()),
                                     json_format(packed_table()),
                                     json_format(exported_table()),
                                     json_format(played_off_table())};
  for (const auto& more :
       {records_json_formats(), rejudged_json_formats(), tokens_json_formats()}) {
    formats.insert(formats.end(), more.begin(), more.end());
  }
  return formats;
}

}  // namespace kjudge
