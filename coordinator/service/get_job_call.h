// A GetJob call, which may wait for a change of the job.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/door.h"
#include "coordinator/shell/core_runner.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Answers with the job: at once, or when it is not as the request's etag says any more, or a little
// before the call's deadline and after 30 s at most. The call owns itself; core and door outlive
// it.
grpc::ServerUnaryReactor* StartGetJob(grpc::CallbackServerContext* context, CoreRunner& core,
                                      const Door& door, const v1::GetJobRequest& request,
                                      v1::Job* response);

}  // namespace tactus::service
