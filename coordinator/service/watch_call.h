// A WatchJob call.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/door.h"
#include "coordinator/shell/core_runner.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Streams the events of the request's job to the caller until the job is over or the caller
// leaves. The call owns itself; core and door outlive it.
grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(CoreRunner& core,
                                                   grpc::CallbackServerContext* context,
                                                   const Door& door,
                                                   const v1::WatchJobRequest& request);

}  // namespace tactus::service
