// tactus.v1.Admin, for callers on this machine alone.

#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>

#include "coordinator/service/blob_store.h"
#include "coordinator/store/store.h"
#include "runtime/control_thread.h"
#include "runtime/metrics.h"
#include "tactus/v1/admin.grpc.pb.h"

namespace tactus::service {

class AdminService final : public v1::Admin::CallbackService {
 public:
  // All outlive the service.
  struct Surroundings {
    runtime::ControlThread& storage;
    runtime::ControlThread& files;
    store::Store& store;
    BlobStore& blobs;
    runtime::CoordinatorMetrics& metrics;
    const std::string& state_folder;
  };
  // True while a backup is under way; the service and the call share it.
  using Busy = std::shared_ptr<std::atomic<bool>>;

  explicit AdminService(const Surroundings& surroundings) : around_(surroundings) {}

  // One at a time: a second one is told to try again. While it copies the database nothing is
  // written to it.
  grpc::ServerWriteReactor<v1::BackupChunk>* Backup(grpc::CallbackServerContext* context,
                                                    const v1::BackupRequest* request) override;
  // While it looks through the database nothing is written to it.
  grpc::ServerUnaryReactor* CheckIntegrity(grpc::CallbackServerContext* context,
                                           const v1::CheckIntegrityRequest* request,
                                           v1::CheckIntegrityResponse* response) override;

 private:
  const Surroundings around_;
  const Busy backing_up_ = std::make_shared<std::atomic<bool>>(false);
};

// True for a caller on this machine, by its name as gRPC has it: "ipv4:127.0.0.1:5000",
// "ipv6:%5B::1%5D:5000", "unix:...".
bool IsLocal(const std::string& peer);

}  // namespace tactus::service
