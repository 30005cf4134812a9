#include "tests/client/fake_coordinator.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace tactus::client {

FakeCoordinator::FakeCoordinator() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeCoordinator::~FakeCoordinator() { Shutdown(); }

void FakeCoordinator::Shutdown() { server_->Shutdown(std::chrono::system_clock::now()); }

grpc::Status FakeCoordinator::CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                                        v1::Job* response) {
  return create_job(*request, response);
}

grpc::Status FakeCoordinator::GetJob(grpc::ServerContext*, const v1::GetJobRequest*,
                                     v1::Job* response) {
  *response = job;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest*,
                                        v1::Job* response) {
  *response = job;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* request,
                                       v1::ListJobsResponse* response) {
  if (request->filter() == "state=QUEUED") {
    for (const v1::Job& one : queue) *response->add_jobs() = one;
    return grpc::Status::OK;
  }
  const int begin = request->page_token().empty() ? 0 : std::stoi(request->page_token());
  const int end = std::min(jobs, begin + std::min(request->page_size(), 7));
  for (int i = begin; i < end; ++i) response->add_jobs()->set_name("job-" + std::to_string(i));
  if (end < jobs) response->set_next_page_token(std::to_string(end));
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListRounds(grpc::ServerContext*, const v1::ListRoundsRequest*,
                                         v1::ListRoundsResponse* response) {
  *response = rounds;
  return grpc::Status::OK;
}

grpc::Status FakeCoordinator::ListDecisions(grpc::ServerContext*,
                                            const v1::ListDecisionsRequest* request,
                                            v1::ListDecisionsResponse* response) {
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
                                               const v1::DownloadArtifactRequest*,
                                               grpc::ServerWriter<v1::ArtifactChunk>* writer) {
  for (const std::string& data : chunks) {
    v1::ArtifactChunk chunk;
    chunk.set_data(data);
    writer->Write(chunk);
  }
  return grpc::Status::OK;
}

}  // namespace tactus::client
