#include "agent/daemon/snapshot_uploads.h"

#include "agent/daemon/job_folders.h"
#include "protocol/worker_messages.h"
#include "runtime/logging.h"
#include "runtime/status.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;

namespace {

// The coordinator wants no file of that worker's any more.
bool IsForAll(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || runtime::ReasonOf(status).reason == "JOB_NOT_FOUND";
}

}  // namespace

void SnapshotUploads::Add(WorkerId worker, const std::string& job, const std::string& file) {
  Waiting& waiting = waiting_[worker];
  if (waiting.files.size() > protocol::kSnapshotsMax) {
    Logger("agent")->warn("snapshot stays here worker={} job={} path={} reason={}", worker.value,
                          job, Quoted(file), Quoted("too many wait"));
    return;
  }
  waiting.job = job;
  waiting.files.push_back(file);
  if (waiting.files.size() == 1) Begin(worker);
}

void SnapshotUploads::GiveUp(WorkerId worker) {
  const auto found = waiting_.find(worker);
  if (found == waiting_.end()) return;
  found->second.files.resize(1);
  const std::string file = found->second.files.front();  // the entry may go meanwhile
  uploader_.GiveUp(worker, file);
}

std::set<std::string> SnapshotUploads::jobs() const {
  std::set<std::string> jobs;
  for (const auto& [worker, waiting] : waiting_) jobs.insert(waiting.job);
  return jobs;
}

void SnapshotUploads::Begin(WorkerId worker) {
  const Waiting& waiting = waiting_.at(worker);
  uploader_.Upload(
      {.job_id = waiting.job,
       .worker = worker,
       .folder = ResultFolder(jobs_, waiting.job),
       .path = waiting.files.front(),
       .gives_way = true},
      [this, worker](const absl::StatusOr<UploadedFile>& file) { OnDone(worker, file.status()); });
}

// The next one may be taken where this was not, unless that was said of all.
void SnapshotUploads::OnDone(WorkerId worker, const absl::Status& status) {
  Waiting& waiting = waiting_.at(worker);
  if (IsForAll(status)) {
    Logger("agent")->warn("snapshots stay here worker={} job={} files={} reason={}", worker.value,
                          waiting.job, waiting.files.size(), Quoted(std::string(status.message())));
    waiting.files.resize(1);
  } else if (!status.ok() && !absl::IsCancelled(status)) {
    Logger("agent")->warn("snapshot not taken worker={} job={} path={} reason={}", worker.value,
                          waiting.job, Quoted(waiting.files.front()),
                          Quoted(std::string(status.message())));
  }
  waiting.files.pop_front();
  if (waiting.files.empty()) {
    waiting_.erase(worker);
  } else {
    Begin(worker);
  }
  ended_();
}

}  // namespace tactus::agent
