#include "agent/daemon/result_uploads.h"

#include <algorithm>
#include <utility>

#include "protocol/worker_messages.h"
#include "runtime/logging.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;

ResultUploads::ResultUploads(std::string jobs, ArtifactUploader& uploader, JobFolders& folders,
                             Handlers handlers)
    : jobs_(std::move(jobs)),
      uploader_(uploader),
      folders_(folders),
      handlers_(std::move(handlers)),
      inherited_(KeptLastWords(jobs_)) {}

std::vector<LastWords> ResultUploads::TakeInherited(const std::string& server) {
  std::vector<LastWords> ours;
  for (LastWords& words : std::exchange(inherited_, {})) {
    if (words.server != server) {
      Logger("agent")->warn("result of another coordinator's job waits for it worker={} job={}",
                            words.worker.value, words.job);
      inherited_.push_back(std::move(words));
      continue;
    }
    Logger("agent")->info("result of a former agent's worker goes on worker={} job={} files={}",
                          words.worker.value, words.job, words.finished().files_size());
    endings_[words.worker].job = words.job;
    ours.push_back(std::move(words));
  }
  return ours;
}

void ResultUploads::Keep(const LastWords& words) {
  const absl::Status status = KeepLastWords(jobs_, words);
  if (!status.ok()) {
    Logger("agent")->warn("last words not kept worker={} job={} reason={}", words.worker.value,
                          words.job, Quoted(std::string(status.message())));
  }
  endings_[words.worker].job = words.job;
}

void ResultUploads::Upload(const LastWords& words) {
  Ending& ending = endings_.at(words.worker);
  std::vector<std::string> paths(words.finished().files().begin(), words.finished().files().end());
  // First those that may be with the coordinator already: with the last that it lacks the job is
  // over, and what is sent after that is refused.
  std::stable_partition(paths.begin(), paths.end(), [](const auto& path) {
    return path.starts_with(protocol::kSnapshotFolder);
  });
  for (const std::string& path : paths) {
    const absl::Status status = CheckArtifactPath(path);
    folders_.BeginSend(words.job);
    if (status.ok()) {
      ++ending.files;
      Begin(words, path);
    } else {
      folders_.EndSend(words.job, false);
      handlers_.lost(words.worker, std::string(status.message()));
    }
  }
}

void ResultUploads::Begin(const LastWords& words, const std::string& path) {
  uploader_.Upload({.job_id = words.job,
                    .worker = words.worker,
                    .folder = ResultFolder(jobs_, words.job),
                    .path = path},
                   [this, worker = words.worker, path](const absl::StatusOr<UploadedFile>& file) {
                     Ending& ending = endings_.at(worker);
                     --ending.files;
                     folders_.EndSend(ending.job, file.ok());
                     if (!file.ok()) {
                       handlers_.lost(worker, "file '" + path + "' was not taken: " +
                                                  std::string(file.status().message()));
                     }
                     handlers_.ended();
                   });
}

void ResultUploads::Forget() {
  std::erase_if(endings_, [this](const auto& entry) {
    const auto& [worker, ending] = entry;
    if (ending.files > 0) return false;
    RemoveLastWords(jobs_, ending.job, worker);
    return true;
  });
}

}  // namespace tactus::agent
