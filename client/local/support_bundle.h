// `tactus doctor --bundle`: what somebody who helps from afar has to know, as texts that the user
// reads before they hand them on.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tactus/v1/jobs.pb.h"
#include "tactus/v1/nodes.pb.h"

namespace tactus::client {

struct BundleContent {
  std::string version{};   // of this program
  std::string findings{};  // as `tactus doctor` prints them
  std::string settings{};  // names of folders and addresses; never what is in the folders
  // What the coordinator said, or its error.
  absl::StatusOr<v1::ListNodesResponse> nodes = v1::ListNodesResponse();
  absl::StatusOr<v1::ListJobsResponse> jobs = v1::ListJobsResponse();
};

// A job without what may be secret: the words of its program behind the first one, since tokens are
// given so, and the values of its labels.
v1::Job WithoutSecrets(v1::Job job);

// Writes a file for each member of `content`, and one of this machine, into `folder`, which is made
// or empty. No file of a TLS folder and no variable of the environment is read for it. Returns the
// paths. Errors: AlreadyExists, `folder` has files; of the file system.
absl::StatusOr<std::vector<std::string>> WriteSupportBundle(const std::string& folder,
                                                            const BundleContent& content);

}  // namespace tactus::client
