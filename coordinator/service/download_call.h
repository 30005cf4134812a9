// A DownloadArtifact call.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "coordinator/service/core_runner.h"
#include "runtime/control_thread.h"
#include "runtime/metrics.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// What calls that move files need; all outlive the calls.
struct FileSurroundings {
  CoreRunner& core;
  runtime::ControlThread& files;  // where files are read and written
  runtime::CoordinatorMetrics& metrics;
  const std::string& state_folder;
};

// Streams one file of a job's result to the caller. The call owns itself.
grpc::ServerWriteReactor<v1::ArtifactChunk>* StartDownload(
    const FileSurroundings& surroundings, const v1::DownloadArtifactRequest& request);

}  // namespace tactus::service
