#include "client/verbs/job_models.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "client/text/text.h"
#include "client/yaml/job_file.h"

namespace tactus::client {
namespace {

absl::Status Upload(api::Client& client, const Screen& screen, std::string* path) {
  std::error_code ignored;
  const bool here = !path->starts_with(kBlobPrefix) && path->find('/') != std::string::npos &&
                    std::filesystem::is_regular_file(*path, ignored);
  if (!here) return absl::OkStatus();
  const absl::StatusOr<v1::Blob> blob = client.UploadFile(*path);
  if (!blob.ok()) return blob.status();
  screen.Say(Printable(*path) + " is at the coordinator as " + kBlobPrefix + blob->sha256());
  *path = kBlobPrefix + blob->sha256();
  return absl::OkStatus();
}

}  // namespace

absl::Status UploadModels(api::Client& client, const Screen& screen, v1::JobSpec* spec) {
  if (!spec->has_model()) return absl::OkStatus();
  v1::Model* model = spec->mutable_model();
  if (model->has_torchscript()) {
    const absl::Status status = Upload(client, screen, model->mutable_torchscript());
    if (!status.ok()) return status;
  }
  return model->loss().empty() ? absl::OkStatus() : Upload(client, screen, model->mutable_loss());
}

}  // namespace tactus::client
