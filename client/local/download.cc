#include "client/local/download.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "client/render/exit_code.h"
#include "client/render/progress_view.h"
#include "client/text/text.h"
#include "coordinator/access/provenance.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;

// The server names the files; none may land outside of the folder.
bool StaysBelow(const fs::path& path) {
  if (path.empty() || path.is_absolute()) return false;
  for (const fs::path& part : path) {
    if (part == ".." || part.empty()) return false;
  }
  return true;
}

// The result's, and the snapshots that are no part of it.
std::vector<v1::Artifact> FilesOf(const v1::Job& job) {
  std::vector<v1::Artifact> files(job.result().artifacts().begin(), job.result().artifacts().end());
  std::set<std::string> paths;
  for (const v1::Artifact& file : files) paths.insert(file.path());
  std::ranges::copy_if(job.snapshots(), std::back_inserter(files),
                       [&](const auto& snapshot) { return !paths.contains(snapshot.path()); });
  return files;
}

absl::Status MakeParents(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (!error) return absl::OkStatus();
  return OfLocalFile(
      runtime::FileError(error.value(), path.parent_path().string(), "cannot be made"));
}

absl::Status DownloadInto(const std::string& part, api::Client& client,
                          const v1::DownloadArtifactRequest& request, const api::Content& content) {
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  if (!out) return OfLocalFile(runtime::FileError(errno, part, "cannot be written"));
  const auto written = [&]() -> absl::Status {
    if (out) return absl::OkStatus();
    return OfLocalFile(
        absl::ResourceExhaustedError(part + ": cannot be written; is the disk full?"));
  };
  const auto write = [&](std::string_view data) {
    out.write(data.data(), static_cast<std::streamsize>(data.size()));
    return written();
  };
  if (const absl::Status status = client.DownloadArtifact(request, content, write); !status.ok()) {
    return status;
  }
  out.close();
  return written();
}

// Nothing is left of a part.
absl::Status DownloadOne(api::Client& client, const v1::DownloadArtifactRequest& request,
                         const api::Content& content, const std::string& path) {
  const std::string part = path + ".part";
  absl::Status status = DownloadInto(part, client, request, content);
  std::error_code error;
  if (status.ok()) {
    fs::rename(part, path, error);
    if (error) status = OfLocalFile(runtime::FileError(error.value(), path, "cannot be made"));
  }
  if (!status.ok()) fs::remove(part, error);
  return status;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DownloadResult(api::Client& client, const v1::Job& job,
                                                        const std::string& folder) {
  const std::vector<v1::Artifact> files = FilesOf(job);
  if (files.empty()) {
    return absl::FailedPreconditionError("job " + ShortName(job.name()) +
                                         " has neither a result nor snapshots: it is " +
                                         StateName(job.state()));
  }
  std::vector<std::string> paths;
  for (const v1::Artifact& artifact : files) {
    if (!StaysBelow(artifact.path())) {
      return absl::DataLossError("'" + Printable(artifact.path()) +
                                 "' is not a path within a result");
    }
    const std::string path = (fs::path(folder) / artifact.path()).string();
    if (const absl::Status made = MakeParents(path); !made.ok()) return made;
    v1::DownloadArtifactRequest request;
    request.set_name(job.name());
    request.set_path(artifact.path());
    const api::Content content = {.size_bytes = artifact.size_bytes(), .sha256 = artifact.sha256()};
    const absl::Status status = DownloadOne(client, request, content, path);
    if (!status.ok()) return status;
    paths.push_back(path);
  }
  return paths;
}

absl::StatusOr<std::vector<std::string>> DownloadProvenance(api::Client& client,
                                                            const std::string& job,
                                                            const std::string& folder) {
  std::vector<std::string> paths;
  v1::DownloadArtifactRequest request;
  request.set_name(job);
  for (const char* const name : {access::kProvenanceFile, access::kPlansFile}) {
    request.set_path(name);
    const std::string path = (fs::path(folder) / name).string();
    // Of what is made while it is asked for, neither size nor hash is known beforehand.
    const absl::Status status = DownloadOne(client, request, {.known = false}, path);
    if (absl::IsNotFound(status)) return std::vector<std::string>{};
    if (!status.ok()) return status;
    paths.push_back(path);
  }
  return paths;
}

}  // namespace tactus::client
