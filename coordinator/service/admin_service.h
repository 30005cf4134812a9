// tactus.v1.Admin, for callers on this machine alone.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "coordinator/files/blob_store.h"
#include "coordinator/files/store_copying.h"
#include "coordinator/shell/core_runner.h"
#include "coordinator/store/store.h"
#include "metrics/coordinator_metrics.h"
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
    metrics::CoordinatorMetrics& metrics;
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

// True for a caller on this machine, by its name as gRPC has it: "ipv4:127.0.0.1:5000",
// "ipv6:%5B::1%5D:5000", "unix:...".
bool IsLocal(const std::string& peer);

}  // namespace tactus::service
