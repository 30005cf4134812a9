// The coordinator's memory across restarts: jobs, their rounds and their decisions, in one SQLite
// file.

#pragma once

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

  // Newest first; `page_token` empty or from a former page. Errors: InvalidArgument, not one of our
  // tokens.
  virtual absl::StatusOr<Page<job::JobRecord>> ListJobs(int page_size,
                                                        const std::string& page_token) = 0;

  // Jobs that are not over, by id.
  virtual absl::StatusOr<std::vector<job::JobRecord>> UnfinishedJobs() = 0;

  // Oldest first.
  virtual absl::StatusOr<Page<job::RoundRecord>> ListRounds(JobId job, int page_size,
                                                            const std::string& page_token) = 0;

  // By plan version, then by axis.
  virtual absl::StatusOr<Page<job::DecisionRecord>> ListDecisions(
      JobId job, int page_size, const std::string& page_token) = 0;

  // Highest job id ever used; 0 before the first.
  virtual absl::StatusOr<std::uint64_t> LastJobId() = 0;
};

}  // namespace tactus::store
