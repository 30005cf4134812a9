#include "coordinator/service/artifacts_service.h"

#include <algorithm>
#include <memory>
#include <string>

namespace tactus::service {
namespace {

class UploadBlobCall final : public ReceivingCall<v1::UploadBlobRequest> {
 public:
  UploadBlobCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context,
                 v1::Blob* response)
      : ReceivingCall(surroundings, context,
                      {.transfer = Transfer::kClientUpload, .method = "Artifacts/UploadBlob"}),
        response_(response) {}

 private:
  void Opened(const v1::UploadBlobRequest& first) override {
    if (first.sha256().empty()) {
      return End(runtime::InvalidFields({{.field = "sha256", .description = "is missing"}}));
    }
    visit().About("sha256:" + first.sha256());
    size_bytes_ = first.size_bytes();
    const absl::Status room = MakeRoom(first);
    if (!room.ok()) return End(room);
    Accept({.sha256 = first.sha256(), .size_bytes = first.size_bytes(), .offset = first.offset()});
    around_.accounts.Settle(first.sha256());
  }

  // What is there already takes none.
  absl::Status MakeRoom(const v1::UploadBlobRequest& first) {
    if (size_bytes_ > runtime::kBlobBytesMax) return absl::OkStatus();  // refused as that
    const absl::StatusOr<BlobStore::State> there = around_.blobs.Find(first.sha256());
    if (!there.ok()) return there.status();
    if (there->complete) return absl::OkStatus();
    const std::uint64_t left =
        size_bytes_ - std::min<std::uint64_t>(size_bytes_, there->received_bytes);
    const absl::Status status = around_.floor.Admit("upload", left);
    if (!status.ok()) return status;
    return around_.accounts.Charge(visit().bounded_name(), first.sha256(), size_bytes_);
  }

  // Others may write meanwhile.
  absl::Status MayGoOn() const override { return around_.floor.Admit("upload", 0); }

  void Kept(const std::string& sha256) override {
    response_->set_sha256(sha256);
    response_->set_received_bytes(size_bytes_);
    response_->set_complete(true);
    End(absl::OkStatus());
  }

  v1::Blob* const response_;  // lives until OnDone
  std::uint64_t size_bytes_ = 0;
};

class DownloadBlobCall final : public SendingCall<v1::BlobChunk> {
 public:
  DownloadBlobCall(const FileSurroundings& surroundings, grpc::CallbackServerContext* context)
      : SendingCall(surroundings, context, "Artifacts/DownloadBlob") {}

  void Start(const v1::DownloadBlobRequest& request) {
    Hold();
    if (!visit().admitted().ok()) return End(visit().admitted());
    const std::string& sha256 = request.sha256();
    visit().About("sha256:" + sha256);
    const std::string node = access::NodeOf(visit().who());
    if (node.empty()) return Open(sha256, request.offset());
    const auto self = std::static_pointer_cast<DownloadBlobCall>(shared_from_this());
    around_.core.FindNodesBlob(
        node, sha256,
        [self, sha256, offset = request.offset()](const absl::StatusOr<bool>& of_its_jobs) {
          absl::Status status = of_its_jobs.status();
          if (status.ok()) {
            status = self->visit().Allow(
                access::ReadingBlob{.sha256 = sha256, .of_its_jobs = *of_its_jobs});
          }
          status.ok() ? self->Open(sha256, offset) : self->End(status);
        });
  }

 private:
  void Open(const std::string& sha256, std::uint64_t offset) {
    const auto self = std::static_pointer_cast<DownloadBlobCall>(shared_from_this());
    around_.files.Post(
        [self, sha256, offset] { self->Send(self->around_.blobs.Read(sha256, offset)); });
  }
};

}  // namespace

grpc::ServerUnaryReactor* ArtifactsService::GetBlob(grpc::CallbackServerContext* context,
                                                    const v1::GetBlobRequest* request,
                                                    v1::Blob* response) {
  const UnaryCall call(context, around_.door, "Artifacts/GetBlob");
  if (!call.Admit()) return call.reactor();
  around_.files.Post([call, request, response, &blobs = around_.blobs] {
    const absl::StatusOr<BlobStore::State> state = blobs.Find(request->sha256());
    if (state.ok()) {
      response->set_sha256(request->sha256());
      response->set_received_bytes(state->received_bytes);
      response->set_complete(state->complete);
    }
    call.Finish(state.status());
  });
  return call.reactor();
}

grpc::ServerReadReactor<v1::UploadBlobRequest>* ArtifactsService::UploadBlob(
    grpc::CallbackServerContext* context, v1::Blob* response) {
  const auto call = MakeFileCall<UploadBlobCall>(around_, context, response);
  call->Begin();
  return call.get();
}

grpc::ServerWriteReactor<v1::BlobChunk>* ArtifactsService::DownloadBlob(
    grpc::CallbackServerContext* context, const v1::DownloadBlobRequest* request) {
  const auto call = MakeFileCall<DownloadBlobCall>(around_, context);
  call->Start(*request);
  return call.get();
}

}  // namespace tactus::service
