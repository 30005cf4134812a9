// tactus.v1.Jobs: translates, posts to the core's shell, answers. Holds no state.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "coordinator/service/core_runner.h"
#include "runtime/control_thread.h"
#include "runtime/metrics.h"
#include "tactus/v1/jobs.grpc.pb.h"

namespace tactus::service {

class JobsService final : public v1::Jobs::CallbackService {
 public:
  // All outlive the service.
  struct Surroundings {
    CoreRunner& core;
    runtime::ControlThread& files;  // where files are read
    runtime::CoordinatorMetrics& metrics;
    const std::string& state_folder;
  };

  explicit JobsService(const Surroundings& surroundings) : around_(surroundings) {}

  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const v1::CreateJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* ListRounds(grpc::CallbackServerContext* context,
                                       const v1::ListRoundsRequest* request,
                                       v1::ListRoundsResponse* response) override;
  grpc::ServerUnaryReactor* ListDecisions(grpc::CallbackServerContext* context,
                                          const v1::ListDecisionsRequest* request,
                                          v1::ListDecisionsResponse* response) override;
  grpc::ServerWriteReactor<v1::JobEvent>* WatchJob(grpc::CallbackServerContext* context,
                                                   const v1::WatchJobRequest* request) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* DownloadArtifact(
      grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) override;

 private:
  const Surroundings around_;
};

}  // namespace tactus::service
