#include "tests/client/api/fake_server.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "runtime/now.h"
#include "runtime/stream_header.h"

namespace tactus::api {
namespace {

using Ends = std::function<grpc::Status(std::size_t)>;

grpc::Status End(const Ends& ends, std::size_t i) { return ends ? ends(i) : grpc::Status::OK; }

void SayOpen(grpc::ServerContext* context, grpc::ServerWriter<v1::LogEntry>* writer) {
  context->AddInitialMetadata(runtime::kStreamHeader, runtime::kStreamOpen);
  writer->SendInitialMetadata();
}

}  // namespace

class FakeServer::Jobs : public v1::Jobs::Service {
 public:
  explicit Jobs(FakeServer& fake) : fake_(fake) {}

  grpc::Status CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                         v1::Job* response) override {
    fake_.created.push_back(*request);
    response->set_name("projects/default/jobs/demo-1");
    return End(fake_.create_job, fake_.created.size() - 1);
  }

  grpc::Status UpdateJob(grpc::ServerContext*, const v1::UpdateJobRequest* request,
                         v1::Job*) override {
    fake_.updated.push_back(*request);
    return End(fake_.update_job, fake_.updated.size() - 1);
  }

  grpc::Status DeleteJob(grpc::ServerContext*, const v1::DeleteJobRequest*,
                         google::protobuf::Empty*) override {
    return End(fake_.delete_job, fake_.deleted++);
  }

  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::JobEvent>* writer) override {
    const std::size_t i = fake_.watched.size();
    fake_.watched.push_back(*request);
    if (i < fake_.watches.size()) {
      for (const v1::JobEvent& event : fake_.watches[i]) writer->Write(event);
    }
    return End(fake_.watch_end, i);
  }

  grpc::Status StreamLogs(grpc::ServerContext* context, const v1::StreamLogsRequest* request,
                          grpc::ServerWriter<v1::LogEntry>* writer) override {
    const std::size_t i = fake_.logged.size();
    const Instant begin = runtime::Now();
    fake_.logged.push_back(*request);
    if (fake_.logs_say_open) SayOpen(context, writer);
    if (i < fake_.logs.size()) {
      for (const v1::LogEntry& entry : fake_.logs[i]) writer->Write(entry);
    }
    while (runtime::Now() - begin < fake_.logs_last) std::this_thread::yield();
    while (i < fake_.logs_stay_open && !context->IsCancelled()) std::this_thread::yield();
    return End(fake_.logs_end, i);
  }

  grpc::Status DownloadArtifact(grpc::ServerContext* context,
                                const v1::DownloadArtifactRequest* request,
                                grpc::ServerWriter<v1::ArtifactChunk>* writer) override {
    const std::size_t i = fake_.download_offsets.size();
    fake_.download_offsets.push_back(request->offset());
    std::string rest = fake_.content.substr(request->offset());
    if (i < fake_.download_bytes.size())
      rest.resize(std::min(rest.size(), fake_.download_bytes[i]));
    for (std::size_t at = 0; at < rest.size(); at += fake_.chunk_bytes) {
      v1::ArtifactChunk chunk;
      chunk.set_data(rest.substr(at, fake_.chunk_bytes));
      writer->Write(chunk);
    }
    while (i < fake_.downloads_stay_open && !context->IsCancelled()) std::this_thread::yield();
    return End(fake_.download_end, i);
  }

 private:
  FakeServer& fake_;
};

class FakeServer::Artifacts : public v1::Artifacts::Service {
 public:
  explicit Artifacts(FakeServer& fake) : fake_(fake) {}

  grpc::Status GetBlob(grpc::ServerContext*, const v1::GetBlobRequest* request,
                       v1::Blob* response) override {
    fake_.blob.set_sha256(request->sha256());
    *response = fake_.blob;
    return grpc::Status::OK;
  }

  grpc::Status UploadBlob(grpc::ServerContext*, grpc::ServerReader<v1::UploadBlobRequest>* reader,
                          v1::Blob* response) override {
    const std::size_t i = fake_.uploads++;
    v1::UploadBlobRequest request;
    std::uint64_t size = 0;
    std::size_t taken = 0;
    bool first = true;
    while (taken < fake_.upload_bytes_max && reader->Read(&request)) {
      if (first) {
        fake_.upload_offsets.push_back(request.offset());
        fake_.uploaded.resize(request.offset());
        size = request.size_bytes();
        first = false;
      }
      fake_.uploaded += request.data();
      taken += request.data().size();
    }
    fake_.blob.set_received_bytes(fake_.uploaded.size());
    fake_.blob.set_complete(fake_.uploaded.size() == size);
    *response = fake_.blob;
    return End(fake_.upload_end, i);
  }

  grpc::Status DownloadBlob(grpc::ServerContext*, const v1::DownloadBlobRequest* request,
                            grpc::ServerWriter<v1::BlobChunk>* writer) override {
    v1::BlobChunk chunk;
    chunk.set_data(fake_.content.substr(request->offset()));
    writer->Write(chunk);
    return grpc::Status::OK;
  }

 private:
  FakeServer& fake_;
};

class FakeServer::Admin : public v1::Admin::Service {
 public:
  explicit Admin(FakeServer& fake) : fake_(fake) {}

  grpc::Status Backup(grpc::ServerContext*, const v1::BackupRequest*,
                      grpc::ServerWriter<v1::BackupChunk>* writer) override {
    v1::BackupChunk chunk;
    for (const char c : fake_.content) {
      chunk.set_data(std::string(1, c));
      writer->Write(chunk);
    }
    return grpc::Status::OK;
  }

  grpc::Status CheckIntegrity(grpc::ServerContext*, const v1::CheckIntegrityRequest*,
                              v1::CheckIntegrityResponse* response) override {
    response->set_jobs(3);
    return grpc::Status::OK;
  }

 private:
  FakeServer& fake_;
};

FakeServer::FakeServer()
    : jobs_(std::make_unique<Jobs>(*this)),
      artifacts_(std::make_unique<Artifacts>(*this)),
      admin_(std::make_unique<Admin>(*this)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(jobs_.get());
  builder.RegisterService(artifacts_.get());
  builder.RegisterService(admin_.get());
  server_ = builder.BuildAndStart();
}

FakeServer::~FakeServer() { Shutdown(); }

void FakeServer::Shutdown() { server_->Shutdown(std::chrono::system_clock::now()); }

}  // namespace tactus::api
