// What the coordinator does now and then so that its folder does not grow for ever.

#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/retention_clock.h"
#include "coordinator/store/store.h"
#include "runtime/control_thread.h"

namespace tactus::service {

// Prunes the store every ten minutes, in pieces with pauses between them, so that a write waits for
// one piece at most; sweeps away blobs that no job names every hour; and removes, every minute, the
// checkpoints that newer ones have taken the place of and no job names: a job that is suspended
// often would fill the disk within a day. All begin a while after the start, when the agents are
// back. How old something is, a RetentionClock says. All methods from main's thread.
class Upkeep {
 public:
  // Other than the defaults in tests.
  struct Intervals {
    Duration first = std::chrono::minutes(1);
    Duration prune = std::chrono::minutes(10);
    Duration pause = std::chrono::milliseconds(100);
    Duration sweep = std::chrono::hours(1);
    Duration release = std::chrono::minutes(1);
    // A superseded checkpoint stays for so long after it was used last: whoever asked for it may be
    // about to name it.
    Duration unused = std::chrono::minutes(1);
  };

  // All outlive this; the threads are stopped before it is destroyed.
  struct Surroundings {
    runtime::ControlThread& control;
    runtime::ControlThread& storage;
    runtime::ControlThread& files;
    store::Store& store;
    BlobStore& blobs;
    // Removes the files of a job that is no more; called on the files' thread.
    std::function<void(const std::string& job)> forget_files;
    // Forgets what is kept in memory of jobs that are no more; called on the control thread.
    std::function<void(const std::vector<store::GoneJob>& jobs)> forget_jobs;
    // Of jobs whose records turned out to be unreadable; called on the control thread.
    std::function<void(const std::vector<store::SetAsideJob>& jobs)> tell_set_aside;
    store::Retention retention{};
    Intervals intervals{};
  };

  explicit Upkeep(Surroundings surroundings) : around_(std::move(surroundings)) {}

  void Start();
  void Stop();

 private:
  absl::StatusOr<job::WallTime> RetentionNow();
  void Prune();
  void OnPruned(const absl::StatusOr<bool>& more, const std::vector<store::GoneJob>& gone);
  void Sweep();
  void FindUsed();
  void Release();
  void FindUnnamed();
  void RemoveUnnamed(job::WallTime since);

  const Surroundings around_;
  std::optional<runtime::Timer> prune_, sweep_, release_;  // control thread
  // Storage thread:
  std::set<std::string> superseded_;  // checkpoints that may be named by other jobs, or in use
  bool releasing_ = false;
  std::optional<RetentionClock> clock_;  // unset: not asked yet
  job::WallTime kept_time_ = 0;          // by the store, since the start
};

}  // namespace tactus::service
