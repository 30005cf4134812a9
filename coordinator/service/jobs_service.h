// tactus.v1.Jobs: translates, posts to the core's shell, answers. Holds no state.

#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "coordinator/service/file_calls.h"
#include "metrics/coordinator_metrics.h"
#include "runtime/control_thread.h"
#include "tactus/v1/jobs.grpc.pb.h"

namespace tactus::service {

class JobsService final : public v1::Jobs::CallbackService {
 public:
  // All of it outlives the service.
  explicit JobsService(const FileSurroundings& surroundings) : around_(surroundings) {}

  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const v1::CreateJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* UpdateJob(grpc::CallbackServerContext* context,
                                      const v1::UpdateJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* PauseJob(grpc::CallbackServerContext* context,
                                     const v1::PauseJobRequest* request,
                                     v1::Job* response) override;
  grpc::ServerUnaryReactor* ResumeJob(grpc::CallbackServerContext* context,
                                      const v1::ResumeJobRequest* request,
                                      v1::Job* response) override;
  grpc::ServerUnaryReactor* DeleteJob(grpc::CallbackServerContext* context,
                                      const v1::DeleteJobRequest* request,
                                      google::protobuf::Empty* response) override;
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
  grpc::ServerWriteReactor<v1::LogEntry>* StreamLogs(grpc::CallbackServerContext* context,
                                                     const v1::StreamLogsRequest* request) override;
  grpc::ServerWriteReactor<v1::ArtifactChunk>* DownloadArtifact(
      grpc::CallbackServerContext* context, const v1::DownloadArtifactRequest* request) override;

 private:
  const FileSurroundings around_;
};

}  // namespace tactus::service
