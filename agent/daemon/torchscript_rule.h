// Which TorchScript files an agent takes: they are programs.

#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::agent {

struct TorchscriptRule {
  bool any = true;
  std::set<std::string> hashes{};  // SHA-256 of those that are taken, where not any is
};

// Of "any", "none" or "hashes:FILE", a file with a SHA-256 at the beginning of each line, as
// sha256sum writes it; empty lines and those that begin with # say nothing. Errors:
// InvalidArgument, another word, or a line without a hash, by its number; as the file system has
// them.
absl::StatusOr<TorchscriptRule> ParseTorchscriptRule(const std::string& text);

// Whether the job's model and loss, as they were submitted, may come here. A path of this node has
// no hash that would still hold when the worker reads it. Error: PermissionDenied, the field and
// why.
absl::Status CheckTorchscript(const tactus::v1::JobSpec& spec, const TorchscriptRule& rule);

}  // namespace tactus::agent
