// The public API in this process, on a free port, answering what a test put into it.

#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tactus/v1/admin.grpc.pb.h"
#include "tactus/v1/jobs.grpc.pb.h"
#include "tactus/v1/nodes.grpc.pb.h"

namespace tactus::client {

// Set the members before the first call.
class FakeCoordinator : public v1::Jobs::Service,
                        public v1::Nodes::Service,
                        public v1::Admin::Service {
 public:
  FakeCoordinator();
  ~FakeCoordinator() override;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Calls in progress are cancelled; later ones find nobody.
  void Shutdown();

  std::vector<std::string> asked;    // "PauseJob name: ..." of each call but WatchJob, one by one
  std::function<void()> when_asked;  // null: nothing
  std::function<grpc::Status(const v1::CreateJobRequest&, v1::Job*)> create_job;
  v1::Job job;                              // what GetJob and the calls that change a job answer
  v1::Node node;                            // the same of nodes; ListNodes has this one
  v1::ListRoundsResponse rounds;            // what ListRounds answers
  v1::ListDecisionsResponse decisions;      // what ListDecisions has, in pages of 2
  v1::ListValidationsResponse validations;  // what ListValidations answers
  v1::DeviceValues device_values;
  int jobs = 0;                                    // how many ListJobs has, in pages of page_size
  std::function<grpc::Status()> list_jobs;         // what ListJobs says; null: OK
  std::function<grpc::Status()> get_job;           // likewise GetJob
  std::vector<v1::Job> queue;                      // what ListJobs has with the filter state=QUEUED
  std::vector<v1::Job> sweep;                      // likewise with the label of any sweep
  std::vector<std::vector<v1::JobEvent>> watches;  // the events of each stream that is opened
  // What stream number i ends with, from 0; null: it stays open until the client ends it.
  std::function<grpc::Status(int i)> watch_end;
  std::vector<std::string> watch_tokens;  // of the streams opened; read when they are over
  std::vector<std::string> chunks;        // what DownloadArtifact sends
  std::atomic<int> watches_opened{0};
  std::atomic<bool> watch_cancelled{false};

  grpc::Status CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                         v1::Job* response) override;
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::Job* response) override;
  grpc::Status RevertDecision(grpc::ServerContext*, const v1::RevertDecisionRequest* request,
                              v1::RevertDecisionResponse* response) override;
  grpc::Status GetDeviceValues(grpc::ServerContext*, const v1::GetDeviceValuesRequest* request,
                               v1::DeviceValues* response) override;
  grpc::Status UpdateJob(grpc::ServerContext*, const v1::UpdateJobRequest* request,
                         v1::Job* response) override;
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::Job* response) override;
  grpc::Status PauseJob(grpc::ServerContext*, const v1::PauseJobRequest* request,
                        v1::Job* response) override;
  grpc::Status ResumeJob(grpc::ServerContext*, const v1::ResumeJobRequest* request,
                         v1::Job* response) override;
  grpc::Status DeleteJob(grpc::ServerContext*, const v1::DeleteJobRequest* request,
                         google::protobuf::Empty* response) override;
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status ListRounds(grpc::ServerContext*, const v1::ListRoundsRequest* request,
                          v1::ListRoundsResponse* response) override;
  grpc::Status ListValidations(grpc::ServerContext*, const v1::ListValidationsRequest* request,
                               v1::ListValidationsResponse* response) override;
  grpc::Status ListDecisions(grpc::ServerContext*, const v1::ListDecisionsRequest* request,
                             v1::ListDecisionsResponse* response) override;
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest* request,
                         v1::ListNodesResponse* response) override;
  grpc::Status GetNode(grpc::ServerContext*, const v1::GetNodeRequest* request,
                       v1::Node* response) override;
  grpc::Status CordonNode(grpc::ServerContext*, const v1::CordonNodeRequest* request,
                          v1::Node* response) override;
  grpc::Status DrainNode(grpc::ServerContext*, const v1::DrainNodeRequest* request,
                         v1::Node* response) override;
  grpc::Status UncordonNode(grpc::ServerContext*, const v1::UncordonNodeRequest* request,
                            v1::Node* response) override;
  grpc::Status ProbeLink(grpc::ServerContext*, const v1::ProbeLinkRequest* request,
                         v1::ProbeLinkResponse* response) override;
  grpc::Status DeleteNode(grpc::ServerContext*, const v1::DeleteNodeRequest* request,
                          google::protobuf::Empty* response) override;
  grpc::Status CheckIntegrity(grpc::ServerContext*, const v1::CheckIntegrityRequest* request,
                              v1::CheckIntegrityResponse* response) override;
  grpc::Status SetLogLevel(grpc::ServerContext*, const v1::SetLogLevelRequest* request,
                           v1::SetLogLevelResponse* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override;
  grpc::Status StreamLogs(grpc::ServerContext* context, const v1::StreamLogsRequest* request,
                          grpc::ServerWriter<v1::LogEntry>* writer) override;
  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::ArtifactChunk>* writer) override;
  grpc::Status Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupChunk>* writer) override;

 private:
  void Note(const char* method, const google::protobuf::Message& request);

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tactus::client
