// A StreamLogs call.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/file_calls.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Streams what the workers of a job wrote until all is sent or, with `follow`, until the job is
// over. The call owns itself.
grpc::ServerWriteReactor<v1::LogEntry>* StartLogs(const FileSurroundings& surroundings,
                                                  grpc::CallbackServerContext* context,
                                                  const v1::StreamLogsRequest& request);

}  // namespace tactus::service
