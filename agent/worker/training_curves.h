// What of a job's training TensorBoard shows, written by the worker of rank 0.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/worker/event_file.h"
#include "base/time.h"
#include "policies/gradient_noise.h"
#include "policies/plan.h"
#include "protocol/result_names.h"
#include "protocol/worker_messages.h"

namespace tactus::worker {

// One event file of a job, in protocol::kCurvesFolder of the output directory. One thread.
//
//   train/loss, train/learning_rate, train/gain, train/gradient_norm, train/epoch
//   adapt/global_batch, adapt/period, adapt/batch/RANK, adapt/noise_scale, adapt/orthogonality
//   time/compute_seconds, time/blocked_seconds (of rank 0), time/round_seconds
//   validation/loss, validation/accuracy
//   plan, job                                                      as text
//
// Steps are rounds. Bounded: at most one set of values in kEvery of training, and one for each new
// plan. The noise scale is estimated here, from the rounds' lanes, as the coordinator does it.
class TrainingCurves {
 public:
  static constexpr Duration kEvery = Seconds(0.5);
  static constexpr std::uint32_t kRanksMax = 64;  // that have a curve of their own

  // job_text: the job as text, for people.
  // Errors: the file system's; training goes on without.
  static absl::StatusOr<TrainingCurves> Open(const std::string& output_directory,
                                             const std::string& job_text, double wall_seconds);

  // A round's report, the plan that is in force after it, and how long the job has trained.
  // Errors: the file system's; what comes later is not written.
  absl::Status Add(const policies::Report& report, const policies::Plan& plan, Duration trained,
                   double wall_seconds);

  // A validation; its step is the rounds that were applied before it. Errors: likewise.
  absl::Status AddValidation(const protocol::ValidatedMessage& message, double wall_seconds);

  // Of the file, in the output directory.
  std::string name() const { return std::string(protocol::kCurvesFolder) + "/" + file_.name(); }

 private:
  explicit TrainingCurves(EventFile file) : file_(std::move(file)) {}

  EventFile file_;
  policies::RoundNoise noise_;
  std::optional<Duration> written_;  // when the last set of values was due
  std::uint64_t plan_version_ = 0;
};

}  // namespace tactus::worker
