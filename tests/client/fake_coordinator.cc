#include "tests/client/fake_coordinator.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace tactus::client {

FakeCoordinator::FakeCoordinator() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(static_cast<v1::Jobs::Service*>(this));
  builder.RegisterService(static_cast<v1::Nodes::Service*>(this));
  builder.RegisterService(static_cast<v1::Admin::Service*>(this));
  server_ = builder.BuildAndStart();
}

FakeCoordinator::~FakeCoordinator() { Shutdown(); }

void FakeCoordinator::Shutdown() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeCoordinator::Note(const char* method, const google::protobuf::Message& request) {
  asked.push_back(method + (" " + request.ShortDebugString()));
  if (when_asked) when_asked();
}

grpc::Status FakeCoordinator::CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                                        v1::Job* response) {
  Note("CreateJob", *request);
  return create_job(*request, response);
}

grpc::Status FakeCoordinator::GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                                     v1::Job* response) {
  Note("GetJob", *request);
  *response = job;
  return get_job ? get_job() : grpc::Status::OK;
}

grpc::Status FakeCoordinator::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                                        v1::Job* response) {
  Note("CancelJob", *request);
  *response = job;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                                       v1::ListJobsResponse* response) {
  Note("ListJobs", *request);
  if (const grpc::Status status = list_jobs ? list_jobs() : grpc::Status::OK; !status.ok()) {
    return status;
  }
  if (request->filter() == "state=QUEUED") {
    for (const v1::Job& one : queue) *response->add_jobs() = one;
    return grpc::Status::OK;
  }
  if (request->filter().starts_with("labels.sweep=")) {
    for (const v1::Job& one : sweep) *response->add_jobs() = one;
    return grpc::Status::OK;
  }
  const int begin = request->page_token().empty() ? 0 : std::stoi(request->page_token());
  const int end = std::min(jobs, begin + std::min(request->page_size(), 7));
  for (int i = begin; i < end; ++i) response->add_jobs()->set_name("job-" + std::to_string(i));
  if (end < jobs) response->set_next_page_token(std::to_string(end));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListRounds(grpc::ServerContext*, const v1::ListRoundsRequest* request,
                                         v1::ListRoundsResponse* response) {
  Note("ListRounds", *request);
  *response = rounds;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListValidations(grpc::ServerContext*,
                                              const v1::ListValidationsRequest* request,
                                              v1::ListValidationsResponse* response) {
  Note("ListValidations", *request);
  *response = validations;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListDecisions(grpc::ServerContext*,
                                            const v1::ListDecisionsRequest* request,
                                            v1::ListDecisionsResponse* response) {
  Note("ListDecisions", *request);
  const int begin = request->page_token().empty() ? 0 : std::stoi(request->page_token());
  const int end = std::min(decisions.decisions_size(), begin + std::min(request->page_size(), 2));
  for (int i = begin; i < end; ++i) *response->add_decisions() = decisions.decisions(i);
  if (end < decisions.decisions_size()) response->set_next_page_token(std::to_string(end));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::WatchJob(grpc::ServerContext* context,
                                       const v1::WatchJobRequest* request,
                                       grpc::ServerWriter<v1::JobEvent>* writer) {
  const int number = watches_opened++;
  watch_tokens.push_back(request->resume_token());
  const auto index = static_cast<std::size_t>(number);
  if (index < watches.size()) {
    for (const v1::JobEvent& event : watches[index]) writer->Write(event);
  }
  if (watch_end) return watch_end(number);
  while (!context->IsCancelled()) std::this_thread::yield();
  watch_cancelled = true;
  return grpc::Status::CANCELLED;
}

grpc::Status FakeCoordinator::DownloadArtifact(grpc::ServerContext*,
                                               const v1::DownloadArtifactRequest* request,
                                               grpc::ServerWriter<v1::ArtifactChunk>* writer) {
  Note("DownloadArtifact", *request);
  for (const std::string& data : chunks) {
    v1::ArtifactChunk chunk;
    chunk.set_data(data);
    writer->Write(chunk);
  }
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::UpdateJob(grpc::ServerContext*, const v1::UpdateJobRequest* request,
                                        v1::Job* response) {
  Note("UpdateJob", *request);
  *response = job;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::RevertDecision(grpc::ServerContext*,
                                             const v1::RevertDecisionRequest* request,
                                             v1::RevertDecisionResponse* response) {
  Note("RevertDecision", *request);
  *response->mutable_job() = job;
  if (!decisions.decisions().empty()) *response->mutable_decision() = decisions.decisions(0);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetDeviceValues(grpc::ServerContext*,
                                              const v1::GetDeviceValuesRequest* request,
                                              v1::DeviceValues* response) {
  Note("GetDeviceValues", *request);
  *response = device_values;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::PauseJob(grpc::ServerContext*, const v1::PauseJobRequest* request,
                                       v1::Job* response) {
  Note("PauseJob", *request);
  *response = job;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ResumeJob(grpc::ServerContext*, const v1::ResumeJobRequest* request,
                                        v1::Job* response) {
  Note("ResumeJob", *request);
  *response = job;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::DeleteJob(grpc::ServerContext*, const v1::DeleteJobRequest* request,
                                        google::protobuf::Empty*) {
  Note("DeleteJob", *request);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListNodes(grpc::ServerContext*, const v1::ListNodesRequest* request,
                                        v1::ListNodesResponse* response) {
  Note("ListNodes", *request);
  *response->add_nodes() = node;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::GetNode(grpc::ServerContext*, const v1::GetNodeRequest* request,
                                      v1::Node* response) {
  Note("GetNode", *request);
  *response = node;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::CordonNode(grpc::ServerContext*, const v1::CordonNodeRequest* request,
                                         v1::Node* response) {
  Note("CordonNode", *request);
  *response = node;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::DrainNode(grpc::ServerContext*, const v1::DrainNodeRequest* request,
                                        v1::Node* response) {
  Note("DrainNode", *request);
  *response = node;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ProbeLink(grpc::ServerContext*, const v1::ProbeLinkRequest* request,
                                        v1::ProbeLinkResponse* response) {
  Note("ProbeLink", *request);
  response->set_error("nodes/n1: nobody listens");
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::UncordonNode(grpc::ServerContext*,
                                           const v1::UncordonNodeRequest* request,
                                           v1::Node* response) {
  Note("UncordonNode", *request);
  *response = node;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::DeleteNode(grpc::ServerContext*, const v1::DeleteNodeRequest* request,
                                         google::protobuf::Empty*) {
  Note("DeleteNode", *request);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::CheckIntegrity(grpc::ServerContext*,
                                             const v1::CheckIntegrityRequest* request,
                                             v1::CheckIntegrityResponse*) {
  Note("CheckIntegrity", *request);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::SetLogLevel(grpc::ServerContext*,
                                          const v1::SetLogLevelRequest* request,
                                          v1::SetLogLevelResponse*) {
  Note("SetLogLevel", *request);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::StreamLogs(grpc::ServerContext*, const v1::StreamLogsRequest* request,
                                         grpc::ServerWriter<v1::LogEntry>*) {
  Note("StreamLogs", *request);
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::Backup(grpc::ServerContext*, const v1::BackupRequest* request,
                                     grpc::ServerWriter<v1::BackupChunk>* writer) {
  Note("Backup", *request);
  v1::BackupChunk chunk;
  chunk.set_data("a copy");
  writer->Write(chunk);
  return grpc::Status::OK;
}

}  // namespace tactus::client
