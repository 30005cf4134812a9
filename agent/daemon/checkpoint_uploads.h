// Brings the checkpoints of jobs that train to the coordinator.

#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/daemon/artifact_upload.h"
#include "base/id.h"
#include "tactus/v1/worker.pb.h"

namespace tactus::agent {

// Of each worker one at a time, and of those that wait the newest alone: a coordinator that is slow
// or away gets fewer, not a queue of them. A file is removed when it is there, when a newer one
// took its place and when it is not taken. Used on the control thread alone.
class CheckpointUploads {
 public:
  // An upload is over: the coordinator has the file, and the message says where; nothing: it was
  // not taken.
  using EndHandler =
      std::function<void(WorkerId worker, std::optional<tactus::v1::Checkpointed> message)>;

  // The uploader outlives this, and calls nothing after its end.
  CheckpointUploads(ArtifactUploader& uploader, EndHandler ended)
      : uploader_(uploader), ended_(std::move(ended)) {}

  // job, folder: of the worker, where message.file is.
  void Add(WorkerId worker, const std::string& job, const std::string& folder,
           tactus::v1::Checkpointed message);

  // The worker has ended with what takes the place of its checkpoints: none of them is to delay it.
  void GiveUp(WorkerId worker);

 private:
  struct Checkpoint {
    std::string job;
    std::string folder;
    tactus::v1::Checkpointed message;
  };

  // The file that is on its way, and the next.
  struct UnderWay {
    std::string file{};
    std::optional<Checkpoint> next{};
  };

  void Begin(WorkerId worker, const Checkpoint& checkpoint);
  void OnDone(WorkerId worker, Checkpoint checkpoint, const absl::StatusOr<UploadedFile>& file);
  static void Remove(const Checkpoint& checkpoint);

  ArtifactUploader& uploader_;
  const EndHandler ended_;
  std::map<WorkerId, UnderWay> under_way_;
};

}  // namespace tactus::agent
