// `tactus run`: a cluster on this machine for one job, from nothing to nothing.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/local/surroundings.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"
#include "client/yaml/job_file.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::client {

struct RunCommand {
  std::string job_file{};              // empty: there is none, as `program` says enough
  std::vector<std::string> program{};  // that trains, with its arguments; empty: the file says what
  std::vector<Override> overrides{};
  std::uint32_t workers = 0;     // 0: not given
  std::vector<double> speeds{};  // empty: not given
  std::string output_folder{};   // empty: in the run's own folder
  bool overwrite = false;        // the result of a former run there gives way to this one's
  std::string tape{};            // file for the coordinator's tape; empty: none
  bool keep = false;
  bool json = false;
};

// How many workers a run starts: --workers, else one a speed, else workers.max of the job file,
// else 2 or workers.min if that is more. Sets workers.min and max of `spec` to it where they are
// not set. Errors: InvalidArgument, flags and file contradict each other, or the file asks for
// other devices.
absl::StatusOr<std::uint32_t> FitWorkers(const RunCommand& command, v1::JobSpec* spec);

// Blocks until the job is over and nothing of it runs any more.
ExitCode Run(const RunCommand& command, const Surroundings& surroundings, const Screen& screen);

}  // namespace tactus::client
