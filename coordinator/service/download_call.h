// A DownloadArtifact call.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/file_calls.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Streams one file of a job's result, or its newest checkpoint, to the caller. The call owns
// itself.
grpc::ServerWriteReactor<v1::ArtifactChunk>* StartDownload(
    const FileSurroundings& surroundings, grpc::CallbackServerContext* context,
    const v1::DownloadArtifactRequest& request);

}  // namespace tactus::service
