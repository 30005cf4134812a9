#include "client/local/support_bundle.h"

#include <sys/utsname.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "client/render/exit_code.h"
#include "client/render/tables.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

constexpr char kLeftOut[] = "(left out)";

// Of a file that every user may read; of long ones the begin.
std::string TextOf(const char* path) {
  constexpr std::size_t kBytesMax = 16384;
  std::ifstream in(path);
  std::string text(kBytesMax, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return "== " + std::string(path) + "\n" + text + (text.ends_with('\n') ? "" : "\n");
}

std::string MachineText() {
  utsname name{};
  std::string out;
  if (::uname(&name) == 0) {
    out += std::string(name.sysname) + " " + name.release + " " + name.version + " " +
           name.machine + "\n";
  }
  for (const char* path : {"/etc/os-release", "/proc/meminfo", "/proc/loadavg", "/proc/self/limits",
                           "/proc/self/cgroup", "/sys/kernel/security/lsm",
                           "/proc/driver/nvidia/version", "/sys/class/dmi/id/product_name"}) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) out += TextOf(path);
  }
  return out;
}

template <typename Answer>
std::string JsonOf(const absl::StatusOr<Answer>& answer) {
  return answer.ok() ? Render(*answer, OutputFormat::kJson) + "\n"
                     : answer.status().ToString() + "\n";
}

}  // namespace

v1::Job WithoutSecrets(v1::Job job) {
  for (int i = 1; i < job.spec().program().command_size(); ++i) {
    job.mutable_spec()->mutable_program()->set_command(i, kLeftOut);
  }
  for (auto& [key, value] : *job.mutable_labels()) value = kLeftOut;
  return job;
}

absl::StatusOr<std::vector<std::string>> WriteSupportBundle(const std::string& folder,
                                                            const BundleContent& content) {
  if (absl::Status made = OfLocalFile(runtime::MakeWritableFolder(folder)); !made.ok()) return made;
  std::error_code ignored;
  if (!std::filesystem::is_empty(folder, ignored)) {
    return absl::AlreadyExistsError("--bundle: " + folder +
                                    " has files; allowed is a folder that is new or empty");
  }
  absl::StatusOr<v1::ListJobsResponse> jobs = content.jobs;
  if (jobs.ok()) {
    for (v1::Job& job : *jobs->mutable_jobs()) job = WithoutSecrets(std::move(job));
  }
  std::vector<std::string> paths;
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"findings.txt", "tactus " + content.version + "\n" + content.findings},
           {"settings.txt", content.settings},
           {"machine.txt", MachineText()},
           {"nodes.json", JsonOf(content.nodes)},
           {"jobs.json", JsonOf(jobs)}}) {
    paths.push_back(folder + "/" + name);
    if (absl::Status written = OfLocalFile(runtime::WriteFileWhole(paths.back(), text));
        !written.ok()) {
      return written;
    }
  }
  return paths;
}

}  // namespace tactus::client
