#include "coordinator/store/retention.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace tactus::store {
namespace {

constexpr std::int64_t kPieceRows = 4000;  // some 10 ms

constexpr const char* kForgottenJob = "SELECT job FROM forgotten ORDER BY job LIMIT 1";
constexpr const char* kDeleteRounds =
    "DELETE FROM rounds WHERE job = ?1 AND round IN ("
    "  SELECT round FROM rounds WHERE job = ?1 LIMIT ?2)";
constexpr const char* kDeleteValidations =
    "DELETE FROM validations WHERE job = ?1 AND rounds IN ("
    "  SELECT rounds FROM validations WHERE job = ?1 LIMIT ?2)";
constexpr const char* kDeleteDecisions =
    "DELETE FROM decisions WHERE job = ?1 AND (plan_version, axis) IN ("
    "  SELECT plan_version, axis FROM decisions WHERE job = ?1 LIMIT ?2)";
constexpr const char* kOldestOver =
    "SELECT id, name, coalesce(request_id, '') FROM jobs WHERE is_final = 1 AND end_time < ?1 "
    "ORDER "
    "BY end_time, id LIMIT 1";
constexpr const char* kUnthinned =
    "SELECT id FROM jobs WHERE is_final = 1 AND rounds_limit > ?1 AND end_time < ?2 LIMIT 1";
constexpr const char* kNextUnfinished =
    "SELECT id FROM jobs WHERE is_final = 0 AND id > ?1 ORDER BY id LIMIT 1";

constexpr const char* kNamesKept = "SELECT count(*) FROM names";
constexpr const char* kBeginAbove =
    "UPDATE meta SET value = max(value, (SELECT max(number) FROM names)) WHERE key = 'names_from'";

std::int64_t Clamped(std::uint64_t value, std::int64_t least) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 2);
  return std::max(least, static_cast<std::int64_t>(std::min(value, kMost)));
}

}  // namespace

absl::Status KeepName(Statements& statements, std::int64_t job) {
  return statements.Run(
      "INSERT INTO names (stem, number) SELECT stem, number FROM numbered WHERE id = ?1"
      "  ON CONFLICT (stem) DO UPDATE SET number = max(names.number, excluded.number)",
      job);
}

absl::StatusOr<bool> HistoryPruner::Piece(const Retention& retention, job::WallTime now,
                                          std::vector<GoneJob>& gone) {
  budget_ = kPieceRows;
  more_ = false;
  std::vector<GoneJob> jobs;
  absl::Status status = statements_.Transact([&] { return Stages(retention, now, jobs); });
  if (!status.ok()) return status;
  gone.insert(gone.end(), jobs.begin(), jobs.end());
  if (more_) return true;
  return statements_.database().ReturnSpace();
}

absl::Status HistoryPruner::Stages(const Retention& retention, job::WallTime now,
                                   std::vector<GoneJob>& gone) {
  absl::Status status = SweepForgotten();
  for (bool found = true; status.ok() && found && budget_ > 0;) {
    status = ForgetOldest(now - retention.age.count(), gone, found);
    if (status.ok() && found) status = SweepForgotten();
  }
  if (status.ok()) status = ThinFinished(retention, now);
  if (status.ok()) status = ThinUnfinished(retention);
  if (status.ok()) status = ForgetAboveSize(retention.bytes, now, gone);
  if (status.ok()) status = BoundNames();
  if (budget_ <= 0) more_ = true;
  return status;
}

absl::Status HistoryPruner::Delete(std::int64_t job) {
  budget_ = kPieceRows;
  return statements_.Transact([&] {
    const absl::Status status = Forget(job);
    return status.ok() ? SweepForgotten() : status;
  });
}

absl::Status HistoryPruner::Forget(std::int64_t job) {
  absl::Status status = KeepName(statements_, job);
  if (status.ok()) status = statements_.Run("DELETE FROM jobs WHERE id = ?1", job);
  if (!status.ok()) return status;
  if (statements_.database().changes() == 0) {
    return absl::NotFoundError("job " + std::to_string(job) + ": no such job");
  }
  budget_ -= 4;
  status =
      statements_.Run("INSERT INTO forgotten (job) VALUES (?1) ON CONFLICT (job) DO NOTHING", job);
  if (status.ok()) status = statements_.Run("DELETE FROM memories WHERE job = ?1", job);
  if (!status.ok()) return status;
  // An id is never given again, whatever was deleted.
  return statements_.Run("UPDATE meta SET value = max(value, ?1) WHERE key = 'last_job_id'", job);
}

absl::Status HistoryPruner::ForgetOldest(job::WallTime ended_before, std::vector<GoneJob>& gone,
                                         bool& found) {
  const absl::StatusOr<Statement*> query = statements_.Bind(kOldestOver, ended_before);
  if (!query.ok()) return query.status();
  const absl::StatusOr<bool> row = (*query)->Step();
  if (!row.ok()) return row.status();
  found = *row;
  if (!found) return absl::OkStatus();
  const std::int64_t job = (*query)->ColumnInt(0);
  gone.push_back({.id = JobId{static_cast<std::uint64_t>(job)},
                  .name = (*query)->ColumnBytes(1),
                  .request_id = (*query)->ColumnBytes(2)});
  (*query)->Reset();
  return Forget(job);
}

absl::Status HistoryPruner::SweepForgotten() {
  while (budget_ > 0) {
    const absl::StatusOr<std::int64_t> job = statements_.Number(kForgottenJob, -1);
    if (!job.ok() || *job < 0) return job.status();
    for (const char* sql : {kDeleteRounds, kDeleteValidations, kDeleteDecisions}) {
      const std::int64_t limit = budget_;
      const absl::Status status = statements_.Run(sql, *job, limit);
      if (!status.ok()) return status;
      budget_ -= statements_.database().changes();
      if (budget_ <= 0) return absl::OkStatus();
    }
    budget_ -= 2;
    absl::Status status = statements_.Run("DELETE FROM thinning WHERE job = ?1", *job);
    if (status.ok()) status = statements_.Run("DELETE FROM forgotten WHERE job = ?1", *job);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status HistoryPruner::ForgetAboveSize(std::uint64_t bytes, job::WallTime now,
                                            std::vector<GoneJob>& gone) {
  while (budget_ > 0) {
    const absl::StatusOr<std::optional<std::int64_t>> used = statements_.database().BytesUsed();
    if (!used.ok()) return used.status();
    if (!used->has_value() || **used <= Clamped(bytes, 0)) return absl::OkStatus();
    bool found = false;
    absl::Status status = ForgetOldest(now - Retention::kLeastAge.count(), gone, found);
    if (!status.ok() || !found) return status;
    status = SweepForgotten();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status HistoryPruner::BoundNames() {
  const absl::StatusOr<std::int64_t> kept = statements_.Number(kNamesKept, 0);
  if (!kept.ok()) return kept.status();
  if (*kept <= static_cast<std::int64_t>(JobNumbers::kNamesMax)) return absl::OkStatus();
  const absl::Status status = statements_.Run(kBeginAbove);
  return status.ok() ? statements_.Run("DELETE FROM names") : status;
}

absl::Status HistoryPruner::ThinFinished(const Retention& retention, job::WallTime now) {
  const std::int64_t rounds_max = Clamped(retention.rounds_max, 2);
  const std::int64_t ended_before = now - retention.full_rounds.count();
  while (budget_ > 0) {
    const absl::StatusOr<std::int64_t> job =
        statements_.Number(kUnthinned, -1, rounds_max, ended_before);
    if (!job.ok() || *job < 0) return job.status();
    bool done = false;
    absl::Status status = finished_thinning_.Thin(*job, rounds_max, budget_, done);
    if (!status.ok() || !done) return status;
    budget_ -= 1;
    status = statements_.Run("UPDATE jobs SET rounds_limit = ?2 WHERE id = ?1", *job, rounds_max);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status HistoryPruner::ThinUnfinished(const Retention& retention) {
  const std::int64_t rounds_max = Clamped(retention.running_rounds_max, 16);
  while (budget_ > 0) {
    const absl::StatusOr<std::int64_t> job = statements_.Number(kNextUnfinished, -1, unfinished_);
    if (!job.ok()) return job.status();
    unfinished_ = *job;  // -1: the pass is over, the next begins anew
    if (*job < 0) return absl::OkStatus();
    const absl::Status status = ThinRunning(statements_, *job, rounds_max, budget_);
    if (!status.ok()) return status;
    if (budget_ <= 0) --unfinished_;  // perhaps not done with this one
  }
  return absl::OkStatus();
}

}  // namespace tactus::store
