#include "agent/daemon/checkpoint_uploads.h"

#include <utility>

#include "agent/box/beneath.h"
#include "runtime/logging.h"

namespace tactus::agent {

void CheckpointUploads::Add(WorkerId worker, const std::string& job, const std::string& folder,
                            tactus::v1::Checkpointed message) {
  Checkpoint checkpoint{.job = job, .folder = folder, .message = std::move(message)};
  const auto entry = under_way_.find(worker);
  if (entry == under_way_.end()) return Begin(worker, checkpoint);
  std::optional<Checkpoint>& next = entry->second.next;
  if (next) Remove(*next);
  next = std::move(checkpoint);
}

void CheckpointUploads::GiveUp(WorkerId worker) {
  const auto entry = under_way_.find(worker);
  if (entry == under_way_.end()) return;
  if (const auto next = std::exchange(entry->second.next, std::nullopt)) Remove(*next);
  const std::string file = entry->second.file;  // the entry may go meanwhile
  uploader_.GiveUp(worker, file);
}

void CheckpointUploads::Begin(WorkerId worker, const Checkpoint& checkpoint) {
  under_way_[worker] = {.file = checkpoint.message.file()};
  uploader_.Upload({.job_id = checkpoint.job,
                    .worker = worker,
                    .folder = checkpoint.folder,
                    .path = checkpoint.message.file()},
                   [this, worker, checkpoint](const absl::StatusOr<UploadedFile>& file) {
                     OnDone(worker, checkpoint, file);
                   });
}

void CheckpointUploads::OnDone(WorkerId worker, Checkpoint checkpoint,
                               const absl::StatusOr<UploadedFile>& file) {
  Remove(checkpoint);
  if (file.ok()) {
    checkpoint.message.set_sha256(file->sha256);
    checkpoint.message.set_size_bytes(file->size_bytes);
    ended_(worker, std::move(checkpoint.message));
  } else if (absl::IsCancelled(file.status())) {
    ended_(worker, std::nullopt);
  } else {
    // The former one stands, and the next one comes.
    runtime::Logger("agent")->warn("checkpoint not taken worker={} job={} reason={}", worker.value,
                                   checkpoint.job,
                                   runtime::Quoted(std::string(file.status().message())));
    ended_(worker, std::nullopt);
  }
  std::optional<Checkpoint> next = std::move(under_way_.at(worker).next);
  if (next) return Begin(worker, *next);
  under_way_.erase(worker);
}

void CheckpointUploads::Remove(const Checkpoint& checkpoint) {
  // The worker's folder: it may have put a link there since. It is swept in any case.
  box::RemoveBeneath(checkpoint.folder, checkpoint.message.file());
}

}  // namespace tactus::agent
