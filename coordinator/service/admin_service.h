// tactus.v1.Admin, for callers on this machine alone.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "coordinator/files/blob_store.h"
#include "coordinator/files/store_copying.h"
#include "coordinator/service/door.h"
#include "coordinator/shell/core_runner.h"
#include "coordinator/store/store.h"
#include "runtime/control_thread.h"
#include "tactus/v1/admin.grpc.pb.h"

namespace tactus::service {

class AdminService final : public v1::Admin::CallbackService {
 public:
  // All outlive the service.
  struct Surroundings {
    CoreRunner& core;
    runtime::ControlThread& storage;
    runtime::ControlThread& files;
    runtime::ControlThread& inspection;  // where copies of the database are looked through
    store::Store& store;
    BlobStore& blobs;
    const Door& door;
    const std::string& state_folder;
    CopySlot copy_slot;  // shared with the scheduled backups
  };

  explicit AdminService(const Surroundings& surroundings) : around_(surroundings) {}

  // One copy at a time: whoever needs another is told to try again. The database goes on being
  // written meanwhile.
  grpc::ServerWriteReactor<v1::BackupChunk>* Backup(grpc::CallbackServerContext* context,
                                                    const v1::BackupRequest* request) override;
  grpc::ServerUnaryReactor* CheckIntegrity(grpc::CallbackServerContext* context,
                                           const v1::CheckIntegrityRequest* request,
                                           v1::CheckIntegrityResponse* response) override;
  grpc::ServerUnaryReactor* SetLogLevel(grpc::CallbackServerContext* context,
                                        const v1::SetLogLevelRequest* request,
                                        v1::SetLogLevelResponse* response) override;

  // What a call is refused with while there is a copy.
  static absl::Status UnderWay();

 private:
  const Surroundings around_;
};

}  // namespace tactus::service
