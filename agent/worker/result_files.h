// The files of a result: the model, its weights and a summary, in the job's output directory.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/worker/messages.h"

namespace tactus::worker {

// What the summary says.
struct ResultFacts {
  std::string job_id;
  std::uint32_t workers = 0;
  FinishedMessage finished;
  EvaluatedMessage evaluated;  // samples = 0: there is no validation part
};

// As Trainee::WriteModel.
using WriteModel =
    std::function<absl::StatusOr<std::vector<std::string>>(const std::string& directory)>;

// Writes what the trainee gives and summary.json, each beside and then renamed. Returns their
// names. Errors: the file system's, with the path.
absl::StatusOr<std::vector<std::string>> WriteResult(const WriteModel& write,
                                                     const ResultFacts& facts,
                                                     const std::string& directory);

}  // namespace tactus::worker
