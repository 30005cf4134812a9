#include "coordinator/files/upkeep.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "coordinator/files/blob_scan.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::service {
namespace {

// A crash forgets so much of the time that passed.
constexpr Duration kTimeKept = std::chrono::minutes(1);

void NotSwept(const absl::Status& status) {
  runtime::Logger("store")->warn("blobs not swept error={}", runtime::Quoted(status.ToString()));
}

}  // namespace

void Upkeep::Start() {
  around_.control.RunAndWait([this] {
    prune_.emplace(around_.control);
    sweep_.emplace(around_.control);
    release_.emplace(around_.control);
    prune_->After(around_.intervals.first, [this] { Prune(); });
    sweep_->After(around_.intervals.first, [this] { Sweep(); });
    release_->After(around_.intervals.first, [this] { Release(); });
  });
}

void Upkeep::Stop() {
  around_.control.RunAndWait([this] {
    prune_.reset();
    sweep_.reset();
    release_.reset();
  });
}

// Storage thread.
absl::StatusOr<job::WallTime> Upkeep::RetentionNow() {
  if (!clock_) {
    const absl::StatusOr<job::WallTime> kept = around_.store.RetentionTime();
    if (!kept.ok()) return kept;
    clock_.emplace(*kept, runtime::Now());
  }
  const job::WallTime now = clock_->Now(runtime::WallNow(), runtime::Now());
  if (std::abs(now - kept_time_) < kTimeKept.count()) return now;
  const absl::Status status = around_.store.KeepRetentionTime(now);
  if (!status.ok()) return status;
  kept_time_ = now;
  return now;
}

void Upkeep::Prune() {
  around_.storage.Post([this] {
    std::vector<store::GoneJob> gone;
    const absl::StatusOr<job::WallTime> now = RetentionNow();
    const absl::StatusOr<bool> more =
        now.ok() ? around_.store.Prune(around_.retention, *now, gone) : now.status();
    around_.control.Post(
        [this, more, gone = std::move(gone), set_aside = around_.store.TakeSetAside()] {
          around_.tell_set_aside(set_aside);
          OnPruned(more, gone);
        });
  });
}

void Upkeep::OnPruned(const absl::StatusOr<bool>& more, const std::vector<store::GoneJob>& gone) {
  if (!more.ok()) {
    runtime::Logger("store")->warn("history not pruned error={}",
                                   runtime::Quoted(more.status().ToString()));
  }
  for (const store::GoneJob& job : gone) {
    runtime::Logger("store")->info("job forgotten job={} reason=\"kept long enough\"", job.name);
    around_.files.Post([this, name = job.name] { around_.forget_files(name); });
  }
  if (!gone.empty()) around_.forget_jobs(gone);
  if (!prune_) return;
  prune_->After(more.ok() && *more ? around_.intervals.pause : around_.intervals.prune,
                [this] { Prune(); });
}

void Upkeep::Sweep() {
  if (!sweep_) return;
  sweep_->After(around_.intervals.sweep, [this] { Sweep(); });
  around_.files.Post([this] {
    around_.blobs.Refresh(
        [this](const absl::Status& status) { status.ok() ? FindUsed() : NotSwept(status); });
  });
}

// Any thread.
void Upkeep::FindUsed() {
  const auto used = std::make_shared<std::set<std::string>>();
  ScanBlobs({.storage = around_.storage,
             .store = around_.store,
             .names = [used](const auto& names) { used->insert(names.begin(), names.end()); },
             .done =
                 [this, used](const absl::Status& status) {
                   const absl::StatusOr<job::WallTime> now = RetentionNow();
                   if (!status.ok() || !now.ok())
                     return NotSwept(status.ok() ? now.status() : status);
                   // A job that was made while the names were gathered has just had its files
                   // looked for, which keeps them.
                   around_.files.Post([this, used, now = *now] {
                     const std::size_t removed = around_.blobs.Sweep(*used, now);
                     if (removed == 0) return;
                     runtime::Logger("files")->info("blobs removed count={}", removed);
                   });
                 }});
}

void Upkeep::Release() {
  if (!release_) return;
  release_->After(around_.intervals.release, [this] { Release(); });
  around_.storage.Post([this] {
    if (releasing_) return;
    for (std::string& sha256 : around_.store.TakeSuperseded()) {
      superseded_.insert(std::move(sha256));
    }
    if (!superseded_.empty()) FindUnnamed();
  });
}

// Storage thread. A job that begins to name one of them while the jobs are asked has its upload
// under way or just over, which the blobs know.
void Upkeep::FindUnnamed() {
  releasing_ = true;
  const job::WallTime since = runtime::WallNow() - around_.intervals.unused.count();
  ScanBlobs({.storage = around_.storage,
             .store = around_.store,
             .names =
                 [this](const auto& names) {
                   for (const std::string& sha256 : names) superseded_.erase(sha256);
                 },
             .done =
                 [this, since](const absl::Status& status) {
                   if (status.ok()) return RemoveUnnamed(since);
                   releasing_ = false;
                   NotSwept(status);
                 }});
}

// Storage thread.
void Upkeep::RemoveUnnamed(job::WallTime since) {
  around_.files.Post([this, since, unnamed = superseded_] {
    std::set<std::string> left = around_.blobs.Remove(unnamed, since);
    if (left.size() < unnamed.size()) {
      runtime::Logger("files")->debug("superseded checkpoints removed count={}",
                                      unnamed.size() - left.size());
    }
    around_.storage.Post([this, left = std::move(left)]() mutable {
      superseded_ = std::move(left);
      releasing_ = false;
    });
  });
}

}  // namespace tactus::service
