#include "coordinator/service/upkeep.h"

#include <spdlog/spdlog.h>

#include <set>
#include <utility>

#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::service {

void Upkeep::Start() {
  around_.control.RunAndWait([this] {
    prune_.emplace(around_.control);
    sweep_.emplace(around_.control);
    prune_->After(around_.intervals.first, [this] { Prune(); });
    sweep_->After(around_.intervals.first, [this] { Sweep(); });
  });
}

void Upkeep::Stop() {
  around_.control.RunAndWait([this] {
    prune_.reset();
    sweep_.reset();
  });
}

void Upkeep::Prune() {
  around_.storage.Post([this] {
    std::vector<std::string> gone;
    const absl::StatusOr<bool> more =
        around_.store.Prune(around_.retention, runtime::WallNow(), gone);
    around_.control.Post([this, more, gone = std::move(gone)] { OnPruned(more, gone); });
  });
}

void Upkeep::OnPruned(const absl::StatusOr<bool>& more, const std::vector<std::string>& gone) {
  if (!more.ok()) {
    runtime::Logger("store")->warn("history not pruned error={}",
                                   runtime::Quoted(more.status().ToString()));
  }
  for (const std::string& job : gone) {
    runtime::Logger("store")->info("job forgotten job={} reason=\"kept long enough\"", job);
    around_.files.Post([this, job] { around_.forget_files(job); });
  }
  if (!prune_) return;
  prune_->After(more.ok() && *more ? around_.intervals.pause : around_.intervals.prune,
                [this] { Prune(); });
}

void Upkeep::Sweep() {
  if (!sweep_) return;
  sweep_->After(around_.intervals.sweep, [this] { Sweep(); });
  around_.storage.Post([this] {
    const absl::StatusOr<std::vector<std::string>> used = around_.store.BlobsInUse();
    if (!used.ok()) {
      runtime::Logger("store")->warn("blobs not swept error={}",
                                     runtime::Quoted(used.status().ToString()));
      return;
    }
    around_.files.Post([this, used = std::set<std::string>(used->begin(), used->end())] {
      const std::size_t removed = around_.blobs.Sweep(used, runtime::WallNow());
      if (removed > 0) runtime::Logger("files")->info("blobs removed count={}", removed);
    });
  });
}

}  // namespace tactus::service
