// The files of a result: the model, its weights and a summary, in the job's output directory.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/model.h"
#include "agent/worker/messages.h"
#include "base/time.h"

namespace tactus::worker {

// What the summary says.
struct ResultFacts {
  std::string job_id;
  std::uint32_t workers = 0;
  FinishedMessage finished;
  EvaluatedMessage evaluated;  // samples = 0: there is no validation part
};

// Writes model.pt (TorchScript), model.safetensors and summary.json, each beside and then renamed.
// Returns their names. Errors: the file system's, with the path.
absl::StatusOr<std::vector<std::string>> WriteResult(const model::Model& model,
                                                     const ResultFacts& facts,
                                                     const std::string& directory);

// Copies of the parameters while a job trains, snapshots/SECONDS.safetensors in its output
// directory. One thread.
class Snapshots {
 public:
  static constexpr std::size_t kSnapshotsMax = 1000;

  // every: of training time, > 0; nothing: none are made.
  Snapshots(std::optional<Duration> every, std::string directory)
      : every_(every), directory_(std::move(directory)) {}

  // Writes one if it is due after so much training. Who calls holds parameters that are equal on
  // all members. Errors: the file system's; no further ones are made then.
  absl::Status Take(const model::Model& model, Duration trained);

  // Of those written, in the output directory.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::optional<Duration> every_;
  const std::string directory_;
  Duration due_{};  // the first at once, of the parameters as they were at the start
  std::vector<std::string> names_;
};

}  // namespace tactus::worker
