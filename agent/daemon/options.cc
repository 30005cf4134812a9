#include "agent/daemon/options.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>

#include "agent/daemon/host_facts.h"
#include "cuda/device.h"
#include "protocol/leaving.h"
#include "protocol/node_labels.h"
#include "runtime/host_port.h"
#include "runtime/options.h"

namespace tactus::agent {
namespace {

constexpr double kCpuHeadroom = 1.15;
constexpr double kSpeedMax = 1000;
constexpr double kSpeedMin = 0.001;
constexpr double kCpuFactorMax = 1000;
constexpr std::size_t kNodeBytesMax = 63;
constexpr std::size_t kDevicesMax = 1024;
constexpr std::string_view kGpu = "cuda:";
constexpr std::string_view kAllGpus = "gpus";
constexpr std::size_t kLabelsMax = 64;
constexpr std::size_t kTaintsMax = 16;
constexpr std::size_t kLabelBytesMax = 63;

absl::Status CheckAddress(const std::string& address) {
  if (runtime::AreHostPorts(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "coordinator: '" + address +
      "'; allowed is host:port with a port from 1 to 65535, or several with commas between them");
}

bool IsNodeCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

absl::Status CheckNode(const std::string& node) {
  if (!node.empty() && node.size() <= kNodeBytesMax && std::ranges::all_of(node, IsNodeCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("node: '" + node + "'; allowed are 1 to 63 of [a-z0-9-.]");
}

// The certificate says which node this is; a name that was given has to be that.
absl::Status CheckCertificate(const AgentFlags& flags, AgentOptions& options) {
  if (flags.tls_dir.empty()) return absl::OkStatus();
  const absl::StatusOr<identity::Certificate> own = identity::CheckTlsFolder(flags.tls_dir);
  if (!own.ok()) return own.status();
  if (own->holder.kind != identity::Kind::kNode ||
      (!flags.node.empty() && flags.node != own->holder.name)) {
    return absl::InvalidArgumentError(
        "tls-dir: " + flags.tls_dir + "/cert.pem: is that of " + ShortNameOf(own->holder) +
        "; allowed is one of " +
        (flags.node.empty() ? std::string("a node") : "node/" + flags.node));
  }
  options.node = own->holder.name;
  return absl::OkStatus();
}

absl::Status WrongDevice(const std::string& name, const std::string& reason) {
  return absl::InvalidArgumentError("devices: '" + name + "': " + reason);
}

std::string WhyNoGpus(const Host& host) {
  return host.no_gpus_reason.empty() ? "this host has no GPU" : host.no_gpus_reason;
}

// The agent looks at a GPU through NVML alone: CUDA would take some hundred MiB of each for good.
absl::StatusOr<DeviceOptions> CheckGpu(const std::string& name, const Host& host) {
  const std::string_view digits = std::string_view(name).substr(kGpu.size());
  unsigned index = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  // The whole name is compared: cuda:01 would be a second device on one GPU.
  if (parsed.ec != std::errc() || std::string(kGpu) + std::to_string(index) != name) {
    return WrongDevice(name, "allowed is cuda:N, with the number of a GPU");
  }
  if (host.gpus.empty()) return WrongDevice(name, WhyNoGpus(host));
  if (index >= host.gpus.size()) {
    const std::size_t last = host.gpus.size() - 1;
    return WrongDevice(name, last == 0 ? "this host has GPU 0 alone"
                                       : "this host has GPUs 0 to " + std::to_string(last));
  }
  const cuda::GpuIdentity& gpu = host.gpus[index];
  return DeviceOptions{.name = name,
                       .cuda = true,
                       .gpu = index,
                       .model = gpu.model,
                       .uuid = gpu.uuid,
                       .memory_bytes = gpu.memory_bytes,
                       .fault = gpu.uuid.empty() ? "its UUID cannot be read" : "",
                       .cpus = CpusNear(host.sysfs, gpu.pci_bus_id)};
}

absl::StatusOr<DeviceOptions> CheckDevice(const std::string& name, const Host& host) {
  if (name.starts_with(kGpu)) return CheckGpu(name, host);
  const cuda::OpenedDevice opened = cuda::OpenDevice(name);
  if (opened.device == nullptr) return WrongDevice(name, opened.reason);
  return DeviceOptions{
      .name = name, .model = host.processor_model, .memory_bytes = host.memory_bytes};
}

absl::StatusOr<std::vector<std::string>> DeviceNames(const AgentFlags& flags, const Host& host) {
  std::vector<std::string> names;
  for (const std::string& name : flags.devices) {
    if (name != kAllGpus) {
      names.push_back(name);
      continue;
    }
    if (host.gpus.empty()) return WrongDevice(name, WhyNoGpus(host));
    for (std::size_t gpu = 0; gpu < host.gpus.size(); ++gpu) {
      names.push_back(std::string(kGpu) + std::to_string(gpu));
    }
  }
  if (names.empty()) names.emplace_back("cpu:0");
  return names;
}

absl::StatusOr<std::vector<DeviceOptions>> CheckDevices(const AgentFlags& flags, const Host& host) {
  const absl::StatusOr<std::vector<std::string>> given = DeviceNames(flags, host);
  if (!given.ok()) return given.status();
  const std::vector<std::string>& names = *given;
  if (names.size() > kDevicesMax) {
    return absl::InvalidArgumentError("devices: " + std::to_string(names.size()) +
                                      " given; at most 1024 are allowed");
  }
  std::set<std::string> seen;
  std::vector<DeviceOptions> devices;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError("devices: '" + name + "' is given twice");
    }
    absl::StatusOr<DeviceOptions> device = CheckDevice(name, host);
    if (!device.ok()) return device.status();
    devices.push_back(*std::move(device));
  }
  return devices;
}

absl::Status SetSpeeds(const std::vector<double>& speeds, std::vector<DeviceOptions>& devices) {
  if (speeds.empty()) return absl::OkStatus();
  if (speeds.size() != devices.size()) {
    return absl::InvalidArgumentError("emulated-speeds: " + std::to_string(speeds.size()) +
                                      " given for " + std::to_string(devices.size()) +
                                      " devices; one each is needed");
  }
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    if (!(speeds[i] >= kSpeedMin && speeds[i] <= kSpeedMax)) {
      return absl::InvalidArgumentError("emulated-speeds: " + std::to_string(speeds[i]) +
                                        "; allowed is 0.001 to 1000");
    }
    devices[i].emulated_speed = speeds[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<double> CpuFactor(const AgentFlags& flags, const Host& host) {
  if (flags.emulated_cpu_factor == 0) {
    const double sum =
        std::accumulate(flags.emulated_speeds.begin(), flags.emulated_speeds.end(), 0.0);
    return kCpuHeadroom * std::max(1.0, sum / static_cast<double>(host.cores));
  }
  if (flags.emulated_cpu_factor >= 1 && flags.emulated_cpu_factor <= kCpuFactorMax) {
    return flags.emulated_cpu_factor;
  }
  return absl::InvalidArgumentError(
      "emulated-cpu-factor: " + std::to_string(flags.emulated_cpu_factor) +
      "; allowed is 1 to 1000");
}

unsigned ThreadsPerCpuDevice(const std::vector<DeviceOptions>& devices, unsigned cores) {
  const auto cpu_devices = std::ranges::count(devices, false, &DeviceOptions::cuda);
  return std::max(1u, cores / std::max(1u, static_cast<unsigned>(cpu_devices)));
}

// True for printable text of at most kLabelBytesMax bytes.
bool IsLabelText(std::string_view text) {
  return text.size() <= kLabelBytesMax && std::ranges::all_of(text, [](char c) {
           return static_cast<unsigned char>(c) >= ' ' && c != 127;
         });
}

absl::StatusOr<std::map<std::string, std::string>> CheckLabels(
    const std::vector<std::string>& given) {
  std::map<std::string, std::string> labels;
  if (given.size() > kLabelsMax) {
    return absl::InvalidArgumentError("label: " + std::to_string(given.size()) +
                                      " given; at most 64 are allowed");
  }
  for (const std::string& label : given) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0 || !IsLabelText(label.substr(0, equals)) ||
        !IsLabelText(label.substr(equals + 1))) {
      return absl::InvalidArgumentError("label: '" + label +
                                        "'; allowed is key=value, a key of 1 to 63 bytes and a "
                                        "value of at most 63, without control characters");
    }
    if (!labels.emplace(label.substr(0, equals), label.substr(equals + 1)).second) {
      return absl::InvalidArgumentError("label: '" + label.substr(0, equals) + "' is given twice");
    }
  }
  return labels;
}

absl::Status CheckTaints(const std::vector<std::string>& taints) {
  if (taints.size() > kTaintsMax) {
    return absl::InvalidArgumentError("taint: " + std::to_string(taints.size()) +
                                      " given; at most 16 are allowed");
  }
  for (const std::string& taint : taints) {
    const std::size_t equals = std::min(taint.find('='), taint.size());
    const std::size_t value = std::min(equals + 1, taint.size());
    if (equals == 0 || !IsLabelText(taint.substr(0, equals)) || !IsLabelText(taint.substr(value))) {
      return absl::InvalidArgumentError("taint: '" + taint +
                                        "'; allowed is key or key=value, a key of 1 to 63 bytes "
                                        "and a value of at most 63, without control characters");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Duration> DrainDeadline(const std::string& text) {
  const absl::StatusOr<Duration> deadline = runtime::ParseDuration(text);
  if (!deadline.ok()) {
    return absl::InvalidArgumentError("drain-deadline: " +
                                      std::string(deadline.status().message()));
  }
  if (*deadline <= protocol::kLeaveMost) return deadline;
  return absl::InvalidArgumentError("drain-deadline: " + text + "; allowed is 0 to " +
                                    runtime::FormatDuration(protocol::kLeaveMost));
}

absl::Status CheckFiles(const AgentFlags& flags) {
  if (flags.address.empty()) return absl::InvalidArgumentError("address: must not be empty");
  if (flags.state_folder.empty()) return absl::InvalidArgumentError("state-dir: must not be empty");
  if (::access(flags.worker_binary.c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError("worker-binary: '" + flags.worker_binary +
                                      "': not a program that can be run");
  }
  return absl::OkStatus();
}

}  // namespace

bool NamesGpus(const AgentFlags& flags) {
  return std::ranges::any_of(flags.devices, [](const std::string& name) {
    return name == kAllGpus || name.starts_with(kGpu);
  });
}

absl::StatusOr<AgentOptions> Resolve(const AgentFlags& flags, const Host& host) {
  AgentOptions options;
  options.coordinator = flags.coordinator;
  options.node = flags.node.empty() ? host.name : flags.node;
  options.address = flags.address;
  options.state_folder = flags.state_folder;
  options.worker_binary = flags.worker_binary;
  options.allow_programs = flags.allow_programs;
  options.security = {.tls_dir = flags.tls_dir, .insecure = flags.insecure};
  absl::Status status = CheckAddress(options.coordinator);
  if (status.ok()) {
    status = identity::CheckExposure("coordinator", options.coordinator, options.security);
  }
  if (status.ok()) status = CheckCertificate(flags, options);
  if (status.ok()) status = CheckNode(options.node);
  if (status.ok()) status = CheckFiles(flags);
  if (!status.ok()) return status;

  absl::StatusOr<std::vector<DeviceOptions>> devices = CheckDevices(flags, host);
  if (!devices.ok()) return devices.status();
  options.devices = *std::move(devices);
  status = SetSpeeds(flags.emulated_speeds, options.devices);
  if (status.ok()) status = CheckTaints(flags.taints);
  if (!status.ok()) return status;
  absl::StatusOr<std::map<std::string, std::string>> labels = CheckLabels(flags.labels);
  if (!labels.ok()) return labels.status();
  options.labels = *std::move(labels);
  if (flags.allow_programs) options.labels[protocol::kProgramsLabel] = "true";
  options.taints = flags.taints;
  const absl::StatusOr<Duration> deadline = DrainDeadline(flags.drain_deadline);
  if (!deadline.ok()) return deadline.status();
  options.drain_deadline = *deadline;
  options.preemption_command = flags.preemption_command;
  std::vector<std::string> own_folders = host.state_folders;
  if (!flags.tls_dir.empty()) own_folders.push_back(flags.tls_dir);
  absl::StatusOr<box::BoxOptions> box = ResolveBox(
      flags.box,
      {.home = host.home, .own_folders = own_folders, .memory_bytes = host.memory_bytes});
  if (!box.ok()) return box.status();
  options.box = *std::move(box);
  options.box.workers_max = kWorkersPerDeviceMax * options.devices.size();
  absl::StatusOr<TorchscriptRule> torchscript = ParseTorchscriptRule(flags.torchscript);
  if (!torchscript.ok()) return torchscript.status();
  options.torchscript = *std::move(torchscript);
  options.worker_env = flags.worker_env;
  const absl::StatusOr<double> factor = CpuFactor(flags, host);
  if (!factor.ok()) return factor.status();
  options.emulated_cpu_factor = *factor;
  options.threads_per_cpu_device = ThreadsPerCpuDevice(options.devices, host.cores);
  return options;
}

}  // namespace tactus::agent
