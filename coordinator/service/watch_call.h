// A WatchJob call.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/service/core_runner.h"
#include "runtime/metrics.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::service {

// Streams the events of the job `id` to the caller until the job is over or the caller leaves; an
// error in place of an id ends the call with it. The call owns itself; core and metrics outlive it.
grpc::ServerWriteReactor<v1::JobEvent>* StartWatch(CoreRunner& core,
                                                   runtime::CoordinatorMetrics& metrics,
                                                   const absl::StatusOr<std::string>& id);

}  // namespace tactus::service
