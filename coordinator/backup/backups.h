// Backups that are made by themselves.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/time.h"
#include "coordinator/backup/backup_folder.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/store_copying.h"
#include "coordinator/store/store.h"
#include "metrics/coordinator_metrics.h"
#include "runtime/control_thread.h"

namespace tactus::backup {

struct BackupOptions {
  static constexpr Duration kEveryMin = std::chrono::minutes(5);
  static constexpr std::size_t kKeepMax = 1000;

  Duration every = Duration::zero();  // zero: none are made; or kEveryMin and more
  std::string folder = {};            // outside the state folder; empty: none are made
  std::size_t keep = 7;               // 1 to kKeepMax: backups there are at most
  // No flags of their own; other than the defaults in tests.
  Duration first = std::chrono::seconds(10);  // the first one waits for so long at least
  Duration busy = std::chrono::seconds(10);   // one that finds no copy slot tries again after it

  // Errors: InvalidArgument, the first option that is wrong.
  absl::Status Validate(const std::string& state_folder) const;
};

// After a start: how long the first backup waits when the newest one was made at `newest` and the
// time of day is `now`. Between options.first and options.every, however the clock was set.
Duration WaitOfFirst(const BackupOptions& options, std::optional<job::WallTime> newest,
                     job::WallTime now);

// Makes a backup when the newest in the folder is `every` old, from `first` after the start on. One
// that takes longer than that has the next ones left out. One that fails is said in the log and
// counted, and the next one is made when it is due. The database is copied on the storage thread, a
// piece at a time; the rest happens on a thread of its own, so that a slow disk, or one that hangs,
// holds up nothing else. All methods from main's thread.
class Backups {
 public:
  // All outlive this; the threads are stopped before it is destroyed.
  struct Surroundings {
    runtime::ControlThread& storage;
    runtime::ControlThread& files;
    runtime::ControlThread& backups;  // nobody else's
    store::Store& store;
    service::BlobStore& blobs;
    metrics::CoordinatorMetrics& metrics;
    service::CopySlot copy_slot;
    std::string state_folder;
    BackupOptions options;
  };

  explicit Backups(Surroundings surroundings)
      : around_(std::move(surroundings)), folder_(around_.options.folder, around_.options.keep) {}

  void Start();
  // Gives up one that is under way.
  void Stop();

 private:
  std::string CopyPath() const;
  void Begin();
  void CopyDatabase();
  absl::StatusOr<BackupFolder::Report> Write();
  void OnCopied(const absl::Status& copied);
  void GiveBackCopy();
  void Say(const absl::StatusOr<BackupFolder::Report>& report);
  void ShowNewest();
  void WaitForNext();

  const Surroundings around_;
  const BackupFolder folder_;
  std::atomic<bool> stopping_ = false;  // asked by the storage thread, too
  // Backups' thread:
  std::optional<runtime::Timer> timer_;  // unset: not started, or stopped
  Instant began_{};                      // the last one
  bool has_copy_ = false;                // the slot is ours
};

}  // namespace tactus::backup
