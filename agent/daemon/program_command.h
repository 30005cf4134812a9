// How a program of a user's is run.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::agent {

struct ProgramCommand {
  std::vector<std::string> arguments;  // the first is the path of what is run
  std::string directory;               // in which it runs
};

// Puts the program's files, whose paths are of this node, into a folder of `job_folder`, once for
// all workers of the job. The first word becomes what a shell would find that is in the program's
// folder and has this environment ("NAME=value"). Errors, at their fields: NotFound, the folder, a
// file or the program is not on this node; InvalidArgument, there are no words, or a name leads out
// of the folder; and the file system's.
absl::StatusOr<ProgramCommand> PrepareProgram(const tactus::v1::Program& program,
                                              const std::string& job_folder,
                                              const std::vector<std::string>& environment);

}  // namespace tactus::agent
