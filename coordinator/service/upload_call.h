// An UploadArtifact call.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/file_calls.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::service {

// Receives one file of a job's result or its checkpoint, keeps it durably and tells the core; the
// answer comes when the core's record of it is durable, too. The call owns itself.
grpc::ServerReadReactor<agent::v1::UploadArtifactRequest>* StartUpload(
    const FileSurroundings& surroundings, grpc::CallbackServerContext* context);

}  // namespace tactus::service
