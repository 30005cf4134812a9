// A WatchJob call.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "coordinator/shell/core_runner.h"
#include "metrics/coordinator_metrics.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Streams the events of the request's job to the caller `peer` until the job is over or the caller
// leaves. The call owns itself; core and metrics outlive it.
grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(CoreRunner& core,
                                                   metrics::CoordinatorMetrics& metrics,
                                                   const std::string& peer,
                                                   const v1::WatchJobRequest& request);

}  // namespace tactus::service
