#include "coordinator/files/job_folder.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <system_error>

#include "runtime/logging.h"

namespace tactus::service {

std::string JobFolder(const std::string& state_folder, const std::string& job_id) {
  return state_folder + "/jobs/" + job_id;
}

void RemoveFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (!error) return;
  runtime::Logger("files")->warn("folder cannot be removed folder={} error={}",
                                 runtime::Quoted(folder), runtime::Quoted(error.message()));
}

}  // namespace tactus::service
