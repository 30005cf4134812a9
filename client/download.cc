#include "client/download.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "client/progress_view.h"
#include "client/text.h"
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

absl::Status MakeParents(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (!error) return absl::OkStatus();
  return runtime::FileError(error.value(), path.parent_path().string(), "cannot be made");
}

absl::Status DownloadOne(Connection& connection, const v1::DownloadArtifactRequest& request,
                         const v1::Artifact& artifact, const std::string& path) {
  const std::string part = path + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  if (!out) return runtime::FileError(errno, part, "cannot be written");
  std::uint64_t bytes = 0;
  const absl::Status status =
      connection.DownloadArtifact(request, artifact.size_bytes(), [&](const std::string& data) {
        bytes += data.size();
        return static_cast<bool>(out.write(data.data(), static_cast<std::streamsize>(data.size())));
      });
  out.close();
  if (!out) return absl::ResourceExhaustedError(part + ": cannot be written; is the disk full?");
  if (!status.ok()) return status;
  if (bytes != artifact.size_bytes()) {
    return absl::DataLossError(Printable(artifact.path()) + ": " + std::to_string(bytes) +
                               " bytes came, " + std::to_string(artifact.size_bytes()) +
                               " were announced");
  }
  std::error_code error;
  fs::rename(part, path, error);
  return error ? runtime::FileError(error.value(), path, "cannot be made") : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DownloadResult(Connection& connection, const v1::Job& job,
                                                        const std::string& folder) {
  if (!job.has_result() || job.result().artifacts().empty()) {
    return absl::FailedPreconditionError("job " + ShortName(job.name()) + " has no result: it is " +
                                         StateName(job.state()));
  }
  std::vector<std::string> paths;
  for (const v1::Artifact& artifact : job.result().artifacts()) {
    if (!StaysBelow(artifact.path())) {
      return absl::DataLossError("'" + Printable(artifact.path()) +
                                 "' is not a path within a result");
    }
    const std::string path = (fs::path(folder) / artifact.path()).string();
    if (const absl::Status made = MakeParents(path); !made.ok()) return made;
    v1::DownloadArtifactRequest request;
    request.set_name(job.name());
    request.set_path(artifact.path());
    const absl::Status status = DownloadOne(connection, request, artifact, path);
    if (!status.ok()) {
      std::error_code ignored;
      fs::remove(path + ".part", ignored);
      return status;
    }
    paths.push_back(path);
  }
  return paths;
}

}  // namespace tactus::client
