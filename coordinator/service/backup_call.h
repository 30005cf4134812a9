// A Backup call.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/admin_service.h"
#include "tactus/v1/admin.pb.h"

namespace tactus::service {

// Streams a copy of the database to the caller. The call owns itself.
grpc::ServerWriteReactor<v1::BackupChunk>* StartBackup(
    const AdminService::Surroundings& surroundings, grpc::CallbackServerContext* context);

}  // namespace tactus::service
