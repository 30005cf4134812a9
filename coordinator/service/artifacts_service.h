// tactus.v1.Artifacts: files by their content. Holds no state.

#pragma once

#include <grpcpp/grpcpp.h>

#include "coordinator/service/file_calls.h"
#include "tactus/v1/artifacts.grpc.pb.h"

namespace tactus::service {

class ArtifactsService final : public v1::Artifacts::CallbackService {
 public:
  // All of it outlives the service.
  explicit ArtifactsService(const FileSurroundings& surroundings) : around_(surroundings) {}

  grpc::ServerUnaryReactor* GetBlob(grpc::CallbackServerContext* context,
                                    const v1::GetBlobRequest* request, v1::Blob* response) override;
  grpc::ServerReadReactor<v1::UploadBlobRequest>* UploadBlob(grpc::CallbackServerContext* context,
                                                             v1::Blob* response) override;
  grpc::ServerWriteReactor<v1::BlobChunk>* DownloadBlob(
      grpc::CallbackServerContext* context, const v1::DownloadBlobRequest* request) override;

 private:
  const FileSurroundings around_;
};

}  // namespace tactus::service
