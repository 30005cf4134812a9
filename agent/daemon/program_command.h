// How a program of a user's is run.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/box/worker_user.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::agent {

struct ProgramCommand {
  std::vector<std::string> arguments;  // the first is the path of what is run
  std::string directory;               // in which it runs
  bool own_directory = false;          // which is a folder of the job's
};

// Where a program's files come from and go to.
struct ProgramPlace {
  std::string job_folder{};                   // the agent's own, into which no worker writes
  std::string blobs{};                        // the folder of files that were uploaded; empty: none
  std::vector<std::string> private_places{};  // of which nothing is copied
  std::optional<box::WorkerUser> user{};      // who is to read them; nothing: the agent's user
};

// Puts the program's files into a folder of the job's, once for all of its workers. Files that were
// uploaded lie in `blobs`; others are paths of this node that whoever submitted the job chose: they
// are opened once, copied from there, and refused where they are private, or where the agent has
// other rights than its workers. The first word becomes what a shell would find that is in the
// program's folder and has this environment ("NAME=value"). Errors, at their fields: NotFound, the
// folder, a file or the program is not on this node; InvalidArgument, there are no words, or a name
// leads out of the folder; PermissionDenied, a file is not to be copied; and the file system's.
absl::StatusOr<ProgramCommand> PrepareProgram(const tactus::v1::Program& program,
                                              const ProgramPlace& place,
                                              const std::vector<std::string>& environment);

}  // namespace tactus::agent
