// What a worker said last, on the disk until all of it is with the coordinator.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/id.h"
#include "tactus/v1/worker.pb.h"

namespace tactus::agent {

// Of one worker that finished.
struct LastWords {
  std::string server{};  // the store of the coordinator that it worked for
  std::string job{};     // folder of jobs/
  WorkerId worker{};
  std::vector<tactus::v1::FromWorker> messages{};  // in order; the last is Finished

  const tactus::v1::Finished& finished() const { return messages.back().finished(); }
};

// Beside the folder with the files that it speaks of: `jobs`/JOB/last-words-WORKER, for an agent
// that is started when this one ended in between. The file is synced, its name is not: it outlives
// the process for certain, a power cut probably.
// Errors: as of runtime::WriteFileWhole.
absl::Status KeepLastWords(const std::string& jobs, const LastWords& words);

// All that can be read; what was read and is no such file is removed. Each that is not among them
// has a line.
std::vector<LastWords> KeptLastWords(const std::string& jobs);

void RemoveLastWords(const std::string& jobs, const std::string& job, WorkerId worker);

}  // namespace tactus::agent
