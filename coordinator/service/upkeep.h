// What the coordinator does now and then so that its folder does not grow for ever.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/service/blob_store.h"
#include "coordinator/store/store.h"
#include "runtime/control_thread.h"

namespace tactus::service {

// Prunes the store every ten minutes, in pieces with pauses between them, so that a write waits for
// one piece at most; and sweeps away blobs that no job names every hour. Both begin a while after
// the start, when the agents are back. All methods from main's thread.
class Upkeep {
 public:
  // Other than the defaults in tests.
  struct Intervals {
    Duration first = std::chrono::minutes(1);
    Duration prune = std::chrono::minutes(10);
    Duration pause = std::chrono::milliseconds(100);
    Duration sweep = std::chrono::hours(1);
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
    store::Retention retention{};
    Intervals intervals{};
  };

  explicit Upkeep(Surroundings surroundings) : around_(std::move(surroundings)) {}

  void Start();
  void Stop();

 private:
  void Prune();
  void OnPruned(const absl::StatusOr<bool>& more, const std::vector<std::string>& gone);
  void Sweep();

  const Surroundings around_;
  std::optional<runtime::Timer> prune_, sweep_;  // control thread
};

}  // namespace tactus::service
