#include "agent/daemon/worker_references.h"

#include "protocol/worker_messages.h"
#include "runtime/job_files.h"

namespace tactus::agent {

std::vector<BlobReference> BlobReferences(const tactus::v1::Start& start) {
  std::vector<BlobReference> references;
  const auto add = [&](const std::string& file, const std::string& field) {
    if (!file.starts_with(runtime::kUploaded)) return;
    references.push_back({.field = field, .sha256 = file.substr(runtime::kUploaded.size())});
  };
  add(start.checkpoint(), protocol::kCheckpointField);
  for (const auto& [field, file] : runtime::FilesOf(start.spec())) add(file, field);
  return references;
}

void SetPath(tactus::v1::Start& start, const BlobReference& reference, const std::string& path) {
  if (reference.field == protocol::kCheckpointField) return start.set_checkpoint(path);
  runtime::SetFile(*start.mutable_spec(), reference.field, path);
}

}  // namespace tactus::agent
