// The coordinator's memory across restarts: jobs, their rounds and their decisions, in one SQLite
// file.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/job/records.h"
#include "coordinator/store/job_numbers.h"
#include "protocol/allegiance.h"

namespace tactus::store {

// Which jobs, and in which order; proto/tactus/v1/jobs.proto says what the texts mean.
struct JobQuery {
  int page_size = 50;  // >= 1
  std::string page_token{};
  std::string filter{};
  std::string order_by{};
};

// What is kept of jobs that are over, and of rounds.
struct Retention {
  // Whoever waits for a job's end can still read how it ended, however full the database is.
  static constexpr Duration kLeastAge = std::chrono::minutes(10);

  Duration age = std::chrono::hours(24 * 90);  // of a job that is over; older ones go
  // Of the database; above it the oldest go that ended kLeastAge ago or longer.
  std::uint64_t bytes = std::uint64_t{8} << 30;
  Duration full_rounds = std::chrono::hours(24);  // after a job's end; then rounds_max are kept
  std::uint64_t rounds_max = 2000;                // evenly spread over the job
  std::uint64_t running_rounds_max = 1'000'000;   // of a job that is not over, the newest whole
};

// A job that retention removed.
struct GoneJob {
  JobId id{};
  std::string name{};
  std::string request_id{};  // empty: none
};

// A job whose record could not be read. What is there of it is kept, out of everybody's way: it is
// in no listing, its name is free, and blobs that it names stay.
struct SetAsideJob {
  JobId id{};
  std::string name{};
  std::string reason{};
};

// What a stretch of jobs names.
struct NamedBlobs {
  std::vector<std::string> sha256{};  // each once
  std::optional<JobId> last{};        // job of the stretch; unset: there are no more
};

// A copy of the database that is being made. Used and destroyed where its store is, and before it.
class StoreCopy {
 public:
  virtual ~StoreCopy() = default;  // a copy that is not whole is removed

  // Copies a bounded piece (some 5 ms). True: the copy is whole and lies at its path; it is not
  // synced. What is written to the store between two pieces is in the copy as well.
  // Errors: as Store::BeginCopy; no more pieces then.
  virtual absl::StatusOr<bool> Step() = 0;
};

// A page of a listing; `next` is empty on the last page.
template <typename T>
struct Page {
  std::vector<T> items;
  std::string next;
};

// Blocking; one thread at a time (the coordinator's storage thread). Whatever reads jobs sets those
// aside whose records cannot be read, and goes on without them; see TakeSetAside.
class Store {
 public:
  // Opens or creates the database file `path` (":memory:" for tests) in WAL mode and brings an
  // older schema up to date.
  //
  // Errors: PermissionDenied or NotFound, the folder is not there or not writable; DataLoss, not a
  // database or damaged; FailedPrecondition, a schema newer than this program; Unavailable, locked
  // by another process.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path);

  virtual ~Store() = default;

  // Durable when it returns ok.
  // Errors: ResourceExhausted, the disk is full; AlreadyExists, a name or request id is taken by
  // another job.
  virtual absl::Status Write(const job::WriteBatch& batch) = 0;

  // Errors: NotFound; DataLoss, it was there and has just been set aside.
  virtual absl::StatusOr<job::JobRecord> FindJob(const std::string& name) = 0;
  virtual absl::StatusOr<job::JobRecord> FindJobByRequest(const std::string& request_id) = 0;

  // Errors: InvalidArgument, "page_token: ...", "filter: ..." or "order_by: ...": what was found
  // and what is allowed; also a token of another database or of another filter or order.
  virtual absl::StatusOr<Page<job::JobRecord>> ListJobs(const JobQuery& query) = 0;

  // Jobs that are not over, by id.
  virtual absl::StatusOr<std::vector<job::JobRecord>> UnfinishedJobs() = 0;

  // What their planners had learned, by job; of some jobs nothing is kept.
  virtual absl::StatusOr<std::vector<job::MemoryRecord>> Memories() = 0;

  // What jobs found for the next of their kinds, by key.
  virtual absl::StatusOr<std::vector<job::PriorRecord>> Priors() = 0;

  // Oldest first, from `first_round` on.
  virtual absl::StatusOr<Page<job::RoundRecord>> ListRounds(JobId job, int page_size,
                                                            const std::string& page_token,
                                                            std::uint64_t first_round = 0) = 0;

  // By plan version, then by axis.
  virtual absl::StatusOr<Page<job::DecisionRecord>> ListDecisions(
      JobId job, int page_size, const std::string& page_token) = 0;

  // Errors: NotFound.
  virtual absl::StatusOr<job::DecisionRecord> FindDecision(JobId job,
                                                           const policies::DecisionKey& key) = 0;

  // The last `count` (> 0) of them, in the same order.
  virtual absl::StatusOr<std::vector<job::DecisionRecord>> NewestDecisions(JobId job,
                                                                           int count) = 0;

  // At most `points_max` (>= 2) rounds, evenly spread from the first that is not before
  // `first_round` to the last, oldest first.
  virtual absl::StatusOr<std::vector<job::RoundRecord>> SampleRounds(
      JobId job, int points_max, std::uint64_t first_round = 0) = 0;

  // All that are kept of the job, oldest first. At most kValidationsMax are: when there are more,
  // every second one goes, but for the newest.
  static constexpr std::int64_t kValidationsMax = 2000;
  virtual absl::StatusOr<std::vector<job::ValidationRecord>> ListValidations(JobId job) = 0;

  // Highest job id ever used; 0 before the first.
  virtual absl::StatusOr<std::uint64_t> LastJobId() = 0;

  // Of all jobs that there ever were.
  virtual absl::StatusOr<JobNumbers::Given> Numbers() = 0;

  // A coordinator begins: who it is, durable when it returns. The epoch is above that of every
  // earlier call, and above `at_least`.
  virtual absl::StatusOr<protocol::CoordinatorIdentity> BeginEpoch(std::uint64_t at_least) = 0;

  // What users said of nodes, by name. One of which that cannot be read is cordoned.
  virtual absl::StatusOr<std::vector<job::NodeRecord>> Nodes() = 0;

  // Forgets the job with its history. Errors: NotFound.
  virtual absl::Status DeleteJob(JobId job) = 0;

  // SHA-256 of what the records of the next `jobs_max` jobs behind `after`, by id, name:
  // checkpoint, artifacts, sha256:HASH in the spec. To be begun with job 0.
  virtual absl::StatusOr<NamedBlobs> BlobsInUse(JobId after, int jobs_max) = 0;

  // SHA-256 of the checkpoints that records written since the last call put others in the place of;
  // another job may still name them. Kept in memory alone, the newest kSupersededMax.
  static constexpr std::size_t kSupersededMax = 4096;
  virtual std::vector<std::string> TakeSuperseded() = 0;

  // The time of day that Prune was last told, as KeepRetentionTime was; before the first time, the
  // newest update of a job; 0: there is none. See RetentionClock.
  virtual absl::StatusOr<job::WallTime> RetentionTime() = 0;
  virtual absl::Status KeepRetentionTime(job::WallTime time) = 0;

  // False: another coordinator may lead by now, as this one has not heard from the database for as
  // long as its lease. What was written is as durable as ever; what is not written yet may fail.
  // Any thread.
  virtual bool Leads() const { return true; }

  // Those that were set aside since the last call.
  virtual std::vector<SetAsideJob> TakeSetAside() = 0;

  // Does a bounded piece (some 10 ms) of what retention asks for; `now` is the time of day. True:
  // there is more to do. Jobs that went are appended to `gone`.
  virtual absl::StatusOr<bool> Prune(const Retention& retention, job::WallTime now,
                                     std::vector<GoneJob>& gone) = 0;

  // Begins a copy of the database, whole and consistent, in a new file. One at a time.
  // Errors: AlreadyExists; NotFound or PermissionDenied, its folder; ResourceExhausted, the disk is
  // full.
  virtual absl::StatusOr<std::unique_ptr<StoreCopy>> BeginCopy(const std::string& path) = 0;

  // Looks through everything, which takes seconds for a gigabyte: SQLite's own check, and that
  // every record can be read. One line for each problem, and for each job that was set aside; none:
  // it is sound.
  virtual absl::StatusOr<std::vector<std::string>> CheckIntegrity() = 0;
};

}  // namespace tactus::store
