// A CheckIntegrity call.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/admin_service.h"
#include "coordinator/service/calls.h"
#include "tactus/v1/admin.pb.h"

namespace tactus::service {

// Looks through a copy of the database, and for the blobs that jobs name; answers `call` with what
// was found. Lives until then.
void StartIntegrityCheck(const AdminService::Surroundings& surroundings,
                         grpc::CallbackServerContext* context, const UnaryCall& call,
                         v1::CheckIntegrityResponse* response);

}  // namespace tactus::service
