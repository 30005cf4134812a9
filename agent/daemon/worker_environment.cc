#include "agent/daemon/worker_environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"

namespace tactus::agent {
namespace {

constexpr std::array<std::string_view, 3> kSecrets = {"TOKEN", "SECRET", "PASSWORD"};

bool IsSecret(const std::string& name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  return std::ranges::any_of(kSecrets,
                             [&](std::string_view word) { return upper.find(word) != upper.npos; });
}

void SetTorchrun(const WorkerPlace& place, std::map<std::string, std::string>& variables) {
  variables["LOCAL_RANK"] = std::to_string(place.local_rank);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(place.local_world_size);
  variables["ROLE_NAME"] = "default";
  variables["TORCHELASTIC_RUN_ID"] = place.job_id;
  variables["TORCHELASTIC_RESTART_COUNT"] = "0";
  variables["TORCHELASTIC_MAX_RESTARTS"] = "0";
}

}  // namespace

std::vector<std::string> WorkerEnvironment(const std::vector<std::string>& inherited,
                                           const WorkerPlace& place) {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : inherited) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = variable.substr(0, equals);
    if (!IsSecret(name)) variables[name] = variable.substr(equals + 1);
  }
  constexpr const char* kOfTorchrun[] = {"RANK",       "WORLD_SIZE",       "LOCAL_RANK",
                                         "GROUP_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                                         "MASTER_PORT"};
  if (place.program) {
    for (const char* name : kOfTorchrun) variables.erase(name);
    variables["PYTHONUNBUFFERED"] = "1";  // a log says what there is to say when it is said
  } else {
    SetTorchrun(place, variables);
  }
  variables["TACTUS_JOB_NAME"] = place.job_id;
  variables["TACTUS_CONTROL_SOCKET"] = place.control_socket;
  if (place.threads > 0) {
    variables["OMP_NUM_THREADS"] = std::to_string(place.threads);
    variables["OPENBLAS_NUM_THREADS"] = std::to_string(place.threads);
  }
  if (!place.gpu_uuid.empty()) variables["CUDA_VISIBLE_DEVICES"] = place.gpu_uuid;
  // By its whole name: to NCCL one without the sign is any that begins so.
  if (!place.network_interface.empty())
    variables.try_emplace("NCCL_SOCKET_IFNAME", "=" + place.network_interface);
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace tactus::agent
