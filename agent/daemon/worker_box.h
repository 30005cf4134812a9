// The box of an agent's workers: which folders of the node are whose.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/box/box.h"
#include "agent/daemon/program_command.h"
#include "tactus/v1/worker.pb.h"

namespace tactus::agent {

// A job's folders on this node, for one worker.
struct WorkerFolders {
  std::string result{};   // of all of the job's workers here
  std::string scratch{};  // of this one; goes with it
};

// Used on the control thread, but for Open.
class WorkerBox {
 public:
  struct Options {
    box::BoxOptions box{};
    std::string state_folder{};   // exists and is locked; without links
    std::string socket_folder{};  // of the workers' sockets
    std::string worker_binary{};
  };

  // Opens the folders on the way to what is the workers' to them, where they have a user of their
  // own. Errors: as of Box::Open; FailedPrecondition, the workers' user does not get to the state
  // folder or to the worker's program, or a data root has the former in it.
  static absl::StatusOr<std::unique_ptr<WorkerBox>> Open(Options options);

  // For the label of the node, protocol::kSandboxLabel.
  std::string label() const;
  // For the log: all that is lacking and why; empty: nothing.
  std::string Explain() const;

  const std::string& socket_folder() const { return options_.socket_folder; }
  std::optional<uid_t> user() const;

  // Refuses what the submitter named outside of the data roots, by the field. Before SetPath.
  // Errors: PermissionDenied, NotFound, ..., "field: reason".
  absl::Status CheckPaths(const tactus::v1::JobSpec& spec) const;

  // Makes the folders and gives them to the workers' user; only what this agent made is touched.
  // Errors: as runtime::FileError.
  absl::StatusOr<WorkerFolders> MakeFolders(const std::string& job,
                                            const std::string& worker) const;

  // `program`: where the job is one; else null. All that `start` names by a hash is here. Errors:
  // as of Box::Confine.
  absl::StatusOr<std::shared_ptr<const box::Held>> Confine(const tactus::v1::Start& start,
                                                           const WorkerFolders& folders,
                                                           const ProgramCommand* program,
                                                           bool gpu) const;

  // Of a process that jobs like this one are in and enter later: it writes to the folders of all
  // jobs of this node and reads all that was fetched for any, as who will come is not known. It
  // runs no code of users. Errors: as Confine.
  absl::StatusOr<std::shared_ptr<const box::Held>> ConfineArray(const tactus::v1::Start& start,
                                                                bool gpu) const;

  // What a job that enters such a process reads is its to read. Errors: as Confine.
  absl::Status Admit(const tactus::v1::Start& start) const;

  ProgramPlace PlaceOf(const std::string& job) const;

 private:
  WorkerBox(Options options, std::unique_ptr<box::Box> box)
      : options_(std::move(options)), box_(std::move(box)) {}

  // A file of the blob cache is read by who runs the workers, and by no others.
  absl::Status GiveBlob(const std::string& path) const;
  // Everything that `start` names, by the agent's blobs and by the submitter's paths.
  absl::Status TakeFiles(const tactus::v1::Start& start, box::WorkerNeeds& needs) const;
  absl::StatusOr<std::shared_ptr<const box::Held>> Hold(const box::WorkerNeeds& needs) const;

  const Options options_;
  const std::unique_ptr<box::Box> box_;
};

}  // namespace tactus::agent
