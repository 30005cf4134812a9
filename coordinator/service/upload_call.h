// An UploadArtifact call.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/download_call.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::service {

// Receives one file of a job's result, keeps it durably and tells the core. A file that does not
// arrive whole leaves nothing. The call owns itself.
grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* StartUpload(
    const FileSurroundings& surroundings);

}  // namespace tactus::service
