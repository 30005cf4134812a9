// Brings the snapshots of jobs that train to the coordinator.

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "agent/daemon/artifact_upload.h"
#include "base/id.h"

namespace tactus::agent {

// All of them, of each worker one at a time in their order, and after whatever else there is to
// bring, of any job: a checkpoint or a result waits for none of them. They go on when their worker
// has ended. A file stays where it is: the result may name it, and is then found to be there. Used
// on the control thread alone.
class SnapshotUploads {
 public:
  // jobs: the folder of all jobs. ended: an upload is over, well or not. The uploader outlives
  // this, and calls nothing after its end.
  SnapshotUploads(std::string jobs, ArtifactUploader& uploader, std::function<void()> ended)
      : jobs_(std::move(jobs)), uploader_(uploader), ended_(std::move(ended)) {}

  // file: of the job's result folder. Where protocol::kSnapshotsMax of the worker wait it is left
  // on the node.
  void Add(WorkerId worker, const std::string& job, const std::string& file);

  // Those of the worker that are not there yet are not to be brought up by this.
  void GiveUp(WorkerId worker);

  // Whose files wait: their folders are needed.
  std::set<std::string> jobs() const;

 private:
  // The first is on its way.
  struct Waiting {
    std::string job{};
    std::deque<std::string> files{};
  };

  void Begin(WorkerId worker);
  void OnDone(WorkerId worker, const absl::Status& status);

  const std::string jobs_;
  ArtifactUploader& uploader_;
  const std::function<void()> ended_;
  std::map<WorkerId, Waiting> waiting_;
};

}  // namespace tactus::agent
