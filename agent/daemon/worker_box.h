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
  // folder, or a data root has it in it.
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

  ProgramPlace PlaceOf(const std::string& job) const;

 private:
  WorkerBox(Options options, std::unique_ptr<box::Box> box)
      : options_(std::move(options)), box_(std::move(box)) {}

  // A file of the blob cache is read by who runs the workers, and by no others.
  absl::Status GiveBlob(const std::string& path) const;

  const Options options_;
  const std::unique_ptr<box::Box> box_;
};

}  // namespace tactus::agent
