// The request that `tactus update` makes of its options.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/yaml/job_file.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

struct UpdateCommand {
  std::string name{};
  std::vector<Override> overrides{};  // paths with or without "spec."
  std::map<std::string, std::string> labels{};
  std::vector<std::string> labels_removed{};
  std::optional<std::int32_t> priority{};
  std::vector<std::string> freeze{};  // axes
  std::vector<std::string> unfreeze{};
  std::string etag{};  // empty: whatever the job's is
  bool dry_run = false;
};

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
