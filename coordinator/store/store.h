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

namespace tactus::store {

// What is written in one transaction: all of it or nothing.
struct WriteBatch {
  std::vector<job::JobRecord> jobs{};      // inserted, or replaced when the id is there
  std::vector<job::RoundRecord> rounds{};  // inserted; the same round again replaces
  // Inserted; the same axis of the same plan again replaces.
  std::vector<job::DecisionRecord> decisions{};
  std::vector<job::NodeRecord> nodes{};  // inserted or replaced; one that says nothing is removed
};

// Which jobs, and in which order; proto/tactus/v1/jobs.proto says what the texts mean.
struct JobQuery {
  int page_size = 50;  // >= 1
  std::string page_token{};
  std::string filter{};
  std::string order_by{};
};

// What is kept of jobs that are over, and of rounds.
struct Retention {
  Duration age = std::chrono::hours(24 * 90);     // of a job that is over; older ones go
  std::uint64_t bytes = std::uint64_t{8} << 30;   // of the database; above it the oldest go
  Duration full_rounds = std::chrono::hours(24);  // after a job's end; then rounds_max are kept
  std::uint64_t rounds_max = 2000;                // evenly spread over the job
  std::uint64_t running_rounds_max = 1'000'000;   // of a job that is not over, the newest whole
};

// A page of a listing; `next` is empty on the last page.
template <typename T>
struct Page {
  std::vector<T> items;
  std::string next;
};

// Blocking; one thread at a time (the coordinator's storage thread).
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
  virtual absl::Status Write(const WriteBatch& batch) = 0;

  // Errors: NotFound.
  virtual absl::StatusOr<job::JobRecord> FindJob(const std::string& name) = 0;
  virtual absl::StatusOr<job::JobRecord> FindJobByRequest(const std::string& request_id) = 0;

  // Errors: InvalidArgument, "page_token: ...", "filter: ..." or "order_by: ...": what was found
  // and what is allowed; also a token of another database or of another filter or order.
  virtual absl::StatusOr<Page<job::JobRecord>> ListJobs(const JobQuery& query) = 0;

  // Jobs that are not over, by id.
  virtual absl::StatusOr<std::vector<job::JobRecord>> UnfinishedJobs() = 0;

  // Oldest first.
  virtual absl::StatusOr<Page<job::RoundRecord>> ListRounds(JobId job, int page_size,
                                                            const std::string& page_token) = 0;

  // By plan version, then by axis.
  virtual absl::StatusOr<Page<job::DecisionRecord>> ListDecisions(
      JobId job, int page_size, const std::string& page_token) = 0;

  // At most `points_max` (>= 2) rounds, evenly spread from the first to the last, oldest first.
  virtual absl::StatusOr<std::vector<job::RoundRecord>> SampleRounds(JobId job, int points_max) = 0;

  // Highest job id ever used; 0 before the first.
  virtual absl::StatusOr<std::uint64_t> LastJobId() = 0;

  // What users said of nodes, by name.
  virtual absl::StatusOr<std::vector<job::NodeRecord>> Nodes() = 0;

  // Forgets the job with its history. Errors: NotFound.
  virtual absl::Status DeleteJob(JobId job) = 0;

  // SHA-256 of every blob that a job's record names: checkpoint, artifacts, sha256:HASH in its
  // spec.
  virtual absl::StatusOr<std::vector<std::string>> BlobsInUse() = 0;

  // Does a bounded piece (some 10 ms) of what retention asks for; `now` is the time of day. True:
  // there is more to do. Jobs that went are appended to `gone` (their names), for their files.
  virtual absl::StatusOr<bool> Prune(const Retention& retention, job::WallTime now,
                                     std::vector<std::string>& gone) = 0;

  // Writes a copy of the database, whole and consistent, to a new file. Errors: AlreadyExists.
  virtual absl::Status Backup(const std::string& path) = 0;

  // Looks through everything: SQLite's own check, and that every record can be read. One line for
  // each problem; none: it is sound.
  virtual absl::StatusOr<std::vector<std::string>> CheckIntegrity() = 0;
};

}  // namespace tactus::store
