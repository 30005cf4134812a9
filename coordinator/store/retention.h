// Keeps the database within its retention, a bounded piece at a time.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/round_thinning.h"
#include "coordinator/store/statements.h"
#include "coordinator/store/store.h"

namespace tactus::store {

// Keeps the number of a job that goes, so that its name is not given again.
absl::Status KeepName(Statements& statements, std::int64_t job);

// One thread. The history of a job that goes is deleted after its row, in later pieces: until then
// the job's id is in the table `forgotten`, and nobody is shown what is left.
class HistoryPruner {
 public:
  explicit HistoryPruner(Statements& statements)
      : statements_(statements), finished_thinning_(statements) {}

  // Store::Prune.
  absl::StatusOr<bool> Piece(const Retention& retention, job::WallTime now,
                             std::vector<GoneJob>& gone);

  // Deletes a job and at least the beginning of its history. Errors: NotFound.
  absl::Status Delete(std::int64_t job);

 private:
  absl::Status Stages(const Retention& retention, job::WallTime now, std::vector<GoneJob>& gone);
  absl::Status Forget(std::int64_t job);
  absl::Status ForgetOldest(job::WallTime ended_before, std::vector<GoneJob>& gone, bool& found);
  absl::Status SweepForgotten();
  absl::Status ForgetAboveSize(std::uint64_t bytes, job::WallTime now, std::vector<GoneJob>& gone);
  absl::Status ThinFinished(const Retention& retention, job::WallTime now);
  absl::Status ThinUnfinished(const Retention& retention);
  absl::Status BoundNames();

  Statements& statements_;
  FinishedThinning finished_thinning_;
  std::int64_t budget_ = 0;       // rows that this piece may still touch
  std::int64_t unfinished_ = -1;  // unfinished jobs up to this id were looked at in this pass
  bool more_ = false;             // this piece left something to do
};

}  // namespace tactus::store
