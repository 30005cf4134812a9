// The files of a job, brought into a folder.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api/client.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// Writes every file of the result of `job`, and the snapshots that are no part of it, below
// `folder`, which is made; each appears under its name when it is whole. Returns the paths. `job`
// is GetJob's. Errors: FailedPrecondition, the job has neither; DataLoss, a file is not what was
// announced or its path leaves the folder; of the file system; of the calls.
absl::StatusOr<std::vector<std::string>> DownloadResult(api::Client& client, const v1::Job& job,
                                                        const std::string& folder);

// Writes the record of where the result comes from, and the plans that it speaks of, beside the
// files: see access::kProvenanceFile. Returns the paths; none where the coordinator is of before
// such records. Errors: likewise.
absl::StatusOr<std::vector<std::string>> DownloadProvenance(api::Client& client,
                                                            const std::string& job,
                                                            const std::string& folder);

}  // namespace tactus::client
