// Whole workers on threads, with a test playing agent and coordinator: real models, real
// connections, no processes.

#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/agent/worker/support/scratch_folder.h"

namespace tactus::torchscript {

using worker::MakeFolder;

// What came from one worker.
struct WorkerOutcome {
  std::vector<nlohmann::json> lines;  // every message, in order
  bool ok = false;                    // Worker::Run's verdict
  std::string error;

  // The content of the first line of this kind; null when there is none.
  nlohmann::json First(const std::string& kind) const;
  std::vector<nlohmann::json> All(const std::string& kind) const;
};

struct GroupSetting {
  nlohmann::json spec;                     // tactus.v1.JobSpec
  std::vector<std::uint32_t> batch_sizes;  // one a worker: so many workers
  std::string synchronization = "every_step";
  std::vector<double> speeds{};        // emulated; empty: none
  std::vector<std::string> devices{};  // by rank; empty: of the host
  std::string transport{};             // as the group is told; empty: it is not
  std::string output_directory{};      // of rank 0
  std::string checkpoint{};            // to go on from; empty: from the beginning
  std::uint64_t skip_samples = 0;      // after the checkpoint's
  double loss_seconds = 0;             // as the group is told
  // Sent to rank 0 when it has told of the round `stop_after`; null: nothing is.
  nlohmann::json stop{};
  std::uint64_t stop_after = 0;
  bool discarded_at_once = false;  // each is told to go while it loads
};

// Runs the group to its end.
std::vector<WorkerOutcome> RunGroup(const GroupSetting& setting);

// Writes `bytes` of repeatable text to folder/corpus.txt and returns its path.
std::string WriteCorpus(const std::string& folder, std::size_t bytes);

// A spec for a bytes-lm that trains in milliseconds.
nlohmann::json TinySpec(const std::string& corpus);

}  // namespace tactus::torchscript
