#include "client/verbs/submission.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "runtime/job_files.h"
#include "runtime/status.h"

namespace tactus::client {
namespace {

// Of a file of data that is brought along; larger ones are for the nodes to have.
constexpr std::uintmax_t kDataBytesMax = 64u << 20;

// Whether the file is one that is here and is to be at the coordinator.
bool IsToUpload(const runtime::NamedFile& named) {
  std::error_code failure;
  const bool here = !named.file.starts_with(runtime::kUploaded) &&
                    named.file.find('/') != std::string::npos &&
                    std::filesystem::is_regular_file(named.file, failure);
  if (!here || !named.field.starts_with("data.")) return here;
  const std::uintmax_t bytes = std::filesystem::file_size(named.file, failure);
  return !failure && bytes <= kDataBytesMax;
}

}  // namespace

bool HasFilesToUpload(const v1::JobSpec& spec) {
  return std::ranges::any_of(runtime::FilesOf(spec), IsToUpload);
}

absl::Status Uploads::Upload(v1::JobSpec* spec) {
  for (const auto& [field, file] : runtime::FilesOf(*spec)) {
    if (!IsToUpload({.field = field, .file = file})) continue;
    std::string& uploaded = uploaded_[file];
    if (uploaded.empty()) {
      if (!std::ifstream(file).is_open()) {
        return absl::InvalidArgumentError(field + ": " + Printable(file) + " cannot be read: " +
                                          std::generic_category().message(errno));
      }
      const absl::StatusOr<v1::Blob> blob = client_.UploadFile(file);
      if (!blob.ok()) return blob.status();
      uploaded = std::string(runtime::kUploaded) + blob->sha256();
      screen_.Say(Printable(file) + " is at the coordinator as " + uploaded);
    }
    runtime::SetFile(*spec, field, uploaded);
  }
  return absl::OkStatus();
}

absl::Status Validate(api::Client& client, v1::CreateJobRequest request) {
  request.set_validate_only(true);
  return client.CreateJob(request).status();
}

ExitCode ReportRefusal(const absl::Status& status, const std::string& job_file,
                       const Screen& screen) {
  const bool of_fields = !runtime::FieldViolations(status).empty();
  return ReportError(status, screen, of_fields ? job_file : "");
}

void SayWhatIsNotHere(const v1::JobSpec& spec, const Screen& screen) {
  for (const auto& [field, file] : runtime::FilesOf(spec)) {
    std::error_code ignored;
    const bool pattern = file.find_first_of("*?[") != std::string::npos;
    const bool looked_at = !pattern && !file.empty() && !file.starts_with(runtime::kUploaded);
    if (!looked_at || std::filesystem::exists(file, ignored)) continue;
    screen.Say(field + ": " + Printable(file) +
               " is not on this machine; every node that trains the job needs it");
  }
}

}  // namespace tactus::client
