// A Backup call.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "coordinator/service/admin_service.h"
#include "tactus/v1/admin.pb.h"

namespace tactus::service {

// Streams a copy of the database to the caller; an error in `admitted` ends the call with it. The
// call owns itself.
grpc::ServerWriteReactor<v1::BackupChunk>* StartBackup(
    const AdminService::Surroundings& surroundings, grpc::CallbackServerContext* context,
    const absl::Status& admitted);

}  // namespace tactus::service
