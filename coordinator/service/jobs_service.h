// tactus.v1.Jobs: translates, posts to the core's shell, answers. Holds no state.

#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "coordinator/service/file_calls.h"

namespace tactus::service {

// All of it outlives the service.
std::unique_ptr<grpc::Service> MakeJobsService(const FileSurroundings& surroundings);

}  // namespace tactus::service
