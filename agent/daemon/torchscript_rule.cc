#include "agent/daemon/torchscript_rule.h"

#include <cerrno>
#include <fstream>
#include <string_view>

#include "runtime/job_files.h"
#include "runtime/process.h"
#include "runtime/sha256.h"

namespace tactus::agent {
namespace {

constexpr std::string_view kOfFile = "hashes:";
constexpr std::size_t kHashBytes = 64;

absl::Status CheckFile(const std::string& field, const std::string& file,
                       const TorchscriptRule& rule) {
  if (file.empty()) return absl::OkStatus();
  if (rule.hashes.empty()) {
    return absl::PermissionDeniedError(field + ": this node takes no TorchScript");
  }
  if (!file.starts_with(runtime::kUploaded)) {
    return absl::PermissionDeniedError(field + ": '" + file +
                                       "': this node takes TorchScript that was uploaded alone, "
                                       "by its hash");
  }
  const std::string hash = file.substr(runtime::kUploaded.size());
  if (rule.hashes.contains(hash)) return absl::OkStatus();
  return absl::PermissionDeniedError(field + ": SHA-256 " + hash +
                                     " is not among those that this node takes");
}

}  // namespace

absl::StatusOr<TorchscriptRule> ParseTorchscriptRule(const std::string& text) {
  if (text == "any") return TorchscriptRule{};
  if (text == "none") return TorchscriptRule{.any = false};
  if (!text.starts_with(kOfFile)) {
    return absl::InvalidArgumentError("torchscript: '" + text +
                                      "'; allowed are any, none and hashes:FILE");
  }
  const std::string path = text.substr(kOfFile.size());
  std::ifstream in(path);
  if (!in) return runtime::FileError(errno, "torchscript: " + path, "cannot be read");
  TorchscriptRule rule{.any = false};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.starts_with('#')) continue;
    const std::string hash = line.substr(0, kHashBytes);
    const bool ends =
        line.size() == kHashBytes || line.find_first_of(" \t\r", kHashBytes) == kHashBytes;
    if (!runtime::IsSha256(hash) || !ends) {
      return absl::InvalidArgumentError("torchscript: " + path + ": line " +
                                        std::to_string(number) +
                                        ": allowed are 64 hexadecimal digits in lower case, and "
                                        "behind a space whatever");
    }
    rule.hashes.insert(hash);
  }
  return rule;
}

absl::Status CheckTorchscript(const tactus::v1::JobSpec& spec, const TorchscriptRule& rule) {
  if (rule.any) return absl::OkStatus();
  if (absl::Status s = CheckFile("model.torchscript", spec.model().torchscript(), rule); !s.ok()) {
    return s;
  }
  if (!runtime::IsFile(spec.model().loss())) return absl::OkStatus();
  return CheckFile("model.loss", spec.model().loss(), rule);
}

}  // namespace tactus::agent
