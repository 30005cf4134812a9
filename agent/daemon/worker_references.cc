#include "agent/daemon/worker_references.h"

#include "protocol/worker_messages.h"

namespace tactus::agent {
namespace {

constexpr char kPrefix[] = "sha256:";

}  // namespace

std::vector<BlobReference> BlobReferences(const tactus::v1::Start& start) {
  std::vector<BlobReference> references;
  const auto add = [&](const std::string& value, const char* field,
                       void (*set_path)(tactus::v1::Start&, const std::string&)) {
    if (!value.starts_with(kPrefix)) return;
    references.push_back(
        {.field = field, .sha256 = value.substr(sizeof(kPrefix) - 1), .set_path = set_path});
  };
  add(start.checkpoint(), protocol::kCheckpointField,
      [](tactus::v1::Start& to, const std::string& path) { to.set_checkpoint(path); });
  add(start.spec().model().torchscript(), "model.torchscript",
      [](tactus::v1::Start& to, const std::string& path) {
        to.mutable_spec()->mutable_model()->set_torchscript(path);
      });
  add(start.spec().model().loss(), "model.loss",
      [](tactus::v1::Start& to, const std::string& path) {
        to.mutable_spec()->mutable_model()->set_loss(path);
      });
  return references;
}

}  // namespace tactus::agent
