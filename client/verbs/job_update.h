// The request that `tactus update` makes of its options.

#pragma once

#include <string>
#include <vector>

#include "client/verbs/command_line.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// A request, or what is wrong with the options, a line each. Not empty: the request is not to be
// used.
struct JobUpdate {
  v1::UpdateJobRequest request{};
  std::vector<std::string> errors{};
};

// True when the request is made from what the job has: labels and frozen axes are changed one by
// one, the API takes all of them.
bool NeedsJob(const UpdateCommand& command);

// The mask has a path for each option, "spec." before those of --set; a path within another one is
// left out. `job` is the job as it is; only looked at, its etag too, where NeedsJob. Ranges are the
// server's to judge. Pure.
JobUpdate BuildUpdate(const UpdateCommand& command, const v1::Job& job);

}  // namespace tactus::client
