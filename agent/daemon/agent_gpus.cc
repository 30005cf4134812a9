// The part of Agent that watches the host's GPUs and says which are at fault.

#include <algorithm>
#include <string>
#include <utility>

#include "agent/daemon/agent.h"
#include "runtime/logging.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;
using tactus::agent::v1::FromAgent;

namespace {

constexpr std::size_t kReasonBytesMax = 255;  // that the coordinator takes
// Without a slowdown before it counts as over: a minute, by GpuWatch's intervals.
constexpr int kSlowdownReadings = 12;

// Of a driver's words, as much as may travel.
std::string Clipped(std::string reason) {
  if (reason.size() > kReasonBytesMax) reason.resize(kReasonBytesMax);
  std::ranges::replace_if(
      reason, [](char c) { return c < ' ' || c > '~'; }, '?');
  return reason;
}

metrics::AgentMetrics::Gpu MetricsOf(const cuda::GpuIdentity& gpu,
                                     const cuda::GpuReading& reading) {
  return {.index = gpu.index,
          .uuid = gpu.uuid,
          .model = gpu.model,
          .utilization_ratio = reading.utilisation_ratio,
          .memory_used_bytes = reading.memory_used_bytes,
          .temperature_celsius = reading.temperature_celsius,
          .power_watts = reading.power_watts,
          .sm_clock_hertz = reading.sm_clock_hertz,
          .uncorrected_ecc_errors = reading.uncorrected_ecc_errors,
          .throttle_reasons = reading.throttle_reasons,
          .fault = !reading.fault.empty()};
}

}  // namespace

void Agent::Watch(std::unique_ptr<cuda::GpuMonitor> gpus, const GpuWatch::Options& options) {
  gpu_watch_ = std::make_unique<GpuWatch>(
      control_, std::move(gpus), options,
      [this](const std::vector<cuda::GpuReading>& readings) { OnReadings(readings); });
}

void Agent::OnReadings(const std::vector<cuda::GpuReading>& readings) {
  const std::vector<cuda::GpuIdentity>& gpus = gpu_watch_->gpus();
  std::map<std::string, std::string> faults;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    metrics_.SetGpu(MetricsOf(gpus[i], readings[i]));
    for (const DeviceOptions& device : options_.devices) {
      if (!device.cuda || device.gpu != gpus[i].index) continue;
      NoteSlowdown(device.name, Clipped(readings[i].slowdown));
      if (!readings[i].fault.empty()) faults[device.name] = Clipped(readings[i].fault);
    }
  }
  SetFaults(std::move(faults));
}

// A GPU at the edge of its temperature is slowed down for moments: one that stays so is meant.
void Agent::NoteSlowdown(const std::string& device, const std::string& reason) {
  const auto found = slowdowns_.find(device);
  if (!reason.empty()) {
    if (found == slowdowns_.end()) {
      Logger("agent")->warn("device slowed down device={} reason={}", device, Quoted(reason));
    }
    slowdowns_[device] = {.reason = reason};
  } else if (found != slowdowns_.end() && ++found->second.readings_without >= kSlowdownReadings) {
    Logger("agent")->info("device no longer slowed down device={}", device);
    slowdowns_.erase(found);
  }
}

std::string Agent::SlowdownOf(const std::string& device) const {
  const auto found = slowdowns_.find(device);
  return found == slowdowns_.end() ? "" : found->second.reason;
}

void Agent::SetFaults(std::map<std::string, std::string> faults) {
  if (faults == faults_) return;
  const std::map<std::string, std::string> before = std::exchange(faults_, std::move(faults));
  FromAgent up;
  up.mutable_device_faults();
  for (const auto& [device, reason] : faults_) {
    tactus::agent::v1::DeviceFault* fault = up.mutable_device_faults()->add_faults();
    fault->set_device(device);
    fault->set_reason(reason);
    const auto known = before.find(device);
    if (known != before.end() && known->second == reason) continue;
    Logger("agent")->warn("device at fault device={} reason={}", device, Quoted(reason));
  }
  for (const auto& [device, reason] : before) {
    if (!faults_.contains(device)) Logger("agent")->info("device well again device={}", device);
  }
  // Never refused: it is rare, and a device at fault spoils what is started on it.
  static_cast<void>(link_.Send(up, Importance::kNode));
}

}  // namespace tactus::agent
