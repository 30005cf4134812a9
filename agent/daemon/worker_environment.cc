#include "agent/daemon/worker_environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"

namespace tactus::agent {
namespace {

constexpr std::array<std::string_view, 7> kSecrets = {
    "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "CREDENTIAL", "_KEY", "APIKEY"};

// Names, and with a * beginnings of names.
// clang-format off: by subject, not a name a line
constexpr std::string_view kInherited[] = {"PATH",
                                           "HOME",
                                           "USER",
                                           "LOGNAME",
                                           "SHELL",
                                           "LANG",
                                           "LANGUAGE",
                                           "LC_*",
                                           "TZ",
                                           "TERM",
                                           "HOSTNAME",
                                           "TMPDIR",
                                           "NO_COLOR",
                                           "LD_LIBRARY_PATH",
                                           "LD_PRELOAD",
                                           "LD_BIND_NOW",
                                           "PYTHON*",
                                           "VIRTUAL_ENV",
                                           "CONDA_*",
                                           "TACTUS_*",
                                           "CUDA_*",
                                           "NVIDIA_*",
                                           "NVTE_*",
                                           "CUDNN_*",
                                           "CUBLAS*",
                                           "NCCL_*",
                                           "TORCH*",
                                           "PYTORCH_*",
                                           "TRITON_*",
                                           "GLOO_SOCKET_IFNAME",
                                           "UCX_*",
                                           "FI_*",
                                           "OMP_*",
                                           "GOMP_*",
                                           "KMP_*",
                                           "MKL_*",
                                           "OPENBLAS_*",
                                           "BLIS_*",
                                           "NUMEXPR_*",
                                           "VECLIB_*",
                                           "RAYON_*",
                                           "TOKENIZERS_PARALLELISM",
                                           "MALLOC_*",
                                           "GLIBC_TUNABLES",
                                           "ASAN_OPTIONS",
                                           "LSAN_OPTIONS",
                                           "TSAN_OPTIONS",
                                           "UBSAN_OPTIONS",
                                           "SSL_CERT_FILE",
                                           "SSL_CERT_DIR",
                                           "XDG_CACHE_HOME",
                                           "XDG_DATA_HOME",
                                           "MPLCONFIGDIR",
                                           "HF_HOME",
                                           "HF_HUB_CACHE",
                                           "HF_DATASETS_CACHE",
                                           "HF_HUB_OFFLINE",
                                           "TRANSFORMERS_*"};
// clang-format on

bool IsSecret(const std::string& name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  return std::ranges::any_of(kSecrets,
                             [&](std::string_view word) { return upper.find(word) != upper.npos; });
}

bool Matches(const std::string& name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

bool Passes(const std::string& name, const std::vector<std::string>& more) {
  const auto matches = [&](std::string_view pattern) { return Matches(name, pattern); };
  if (std::ranges::any_of(more, matches)) return true;
  return !IsSecret(name) && std::ranges::any_of(kInherited, matches);
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
                                           const std::vector<std::string>& more,
                                           const WorkerPlace& place) {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : inherited) {
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = variable.substr(0, equals);
    if (Passes(name, more)) variables[name] = variable.substr(equals + 1);
  }
  constexpr const char* kOfTorchrun[] = {"RANK",       "WORLD_SIZE",       "LOCAL_RANK",
                                         "GROUP_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                                         "MASTER_PORT"};
  if (place.program) {
    for (const char* name : kOfTorchrun) variables.erase(name);
    if (!place.device.empty()) variables["TACTUS_DEVICE"] = place.device;
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
  if (!place.blas_kernels.empty()) variables.try_emplace("OPENBLAS_CORETYPE", place.blas_kernels);
  if (!place.scratch.empty()) {
    variables["TMPDIR"] = place.scratch;
    // Of what is compiled for a device, as the places of their own in a home cannot be written to.
    variables.try_emplace("TRITON_CACHE_DIR", place.scratch + "/triton");
    variables.try_emplace("CUDA_CACHE_PATH", place.scratch + "/cuda");
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
