// The coordinator's files by their content, for tests of the agent.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tactus/v1/artifacts.grpc.pb.h"

namespace tactus::agent {

// Hands out blobs as the test says. From any thread.
class FakeArtifacts final : public tactus::v1::Artifacts::Service {
 public:
  // A blob that is there; returns its hash.
  std::string Add(const std::string& content);
  // A blob whose content is not what its hash says.
  void AddWrong(const std::string& sha256, const std::string& content);
  // What has come of a blob that is not complete.
  void SetReceived(const std::string& sha256, std::uint64_t bytes);
  // The next downloads end as UNAVAILABLE after so many bytes each.
  void BreakNext(const std::vector<std::size_t>& bytes);
  // Downloads wait until Open or their end.
  void Shut();
  void Open();

  // Waits until so many downloads have begun; the offset that each asked for.
  std::vector<std::uint64_t> AwaitDownloads(std::size_t count);

  grpc::Status GetBlob(grpc::ServerContext* context, const tactus::v1::GetBlobRequest* request,
                       tactus::v1::Blob* response) override;
  grpc::Status DownloadBlob(grpc::ServerContext* context,
                            const tactus::v1::DownloadBlobRequest* request,
                            grpc::ServerWriter<tactus::v1::BlobChunk>* writer) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> blobs_;
  std::map<std::string, std::uint64_t> received_;
  std::vector<std::size_t> breaks_;
  bool shut_ = false;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace tactus::agent
