#include "client/ask/cluster_writer.h"

#include "base/check.h"
#include "client/ask/fault_fields.h"
#include "client/text/quantity.h"
#include "client/yaml/yaml_tree.h"

namespace tactus::client {
namespace {

std::string Text(const simulator::LinkModel& link) {
  std::string text = "rate: " + FormatBitRate(link.bytes_per_second) +
                     ", latency: " + FormatSeconds(link.latency_seconds);
  if (link.burst_bytes > 0) text += ", burst: " + FormatSize(link.burst_bytes);
  return text;
}

std::string Text(const simulator::NoiseModel& noise) {
  std::string text = "sigma: " + FormatNumber(noise.log_sigma);
  if (noise.slow_factor > 1) {
    text += ", slow_factor: " + FormatNumber(noise.slow_factor) +
            ", slow_mean: " + FormatSeconds(noise.slow_seconds) +
            ", fast_mean: " + FormatSeconds(noise.fast_seconds);
  }
  return text;
}

std::string Text(const simulator::DeviceModel& device) {
  std::string text = "name: " + YamlScalar(device.name) +
                     ", samples_per_second: " + FormatNumber(1 / device.sample_seconds);
  if (device.batch_seconds > 0) text += ", batch_time: " + FormatSeconds(device.batch_seconds);
  if (device.noise != simulator::NoiseModel()) text += ", noise: {" + Text(device.noise) + "}";
  if (device.drift_per_hour != 0) {
    text += ", drift_per_hour: " + FormatNumber(device.drift_per_hour);
  }
  if (device.samples_max > 0) text += ", samples_max: " + std::to_string(device.samples_max);
  return text;
}

std::string Text(const simulator::HostModel& host) {
  std::string text = "  - name: " + YamlScalar(host.name) + "\n";
  if (!host.group.empty()) text += "    group: " + YamlScalar(host.group) + "\n";
  text += "    link: {" + Text(host.link) + "}\n    devices:\n";
  for (const simulator::DeviceModel& device : host.devices) {
    text += "      - {" + Text(device) + "}\n";
  }
  return text;
}

std::string Text(const simulator::ControlModel& control) {
  std::string text = "control: {delay: " + FormatSeconds(control.delay_seconds);
  if (control.jitter_seconds > 0) text += ", jitter: " + FormatSeconds(control.jitter_seconds);
  if (control.duplicate_share > 0) {
    text += ", duplicate_share: " + FormatNumber(control.duplicate_share);
  }
  return text + ", persist_time: " + FormatSeconds(control.persist_seconds) + "}\n";
}

std::string Name(simulator::Algorithm algorithm) {
  switch (algorithm) {
    case simulator::Algorithm::kMesh:
      return "mesh";
    case simulator::Algorithm::kRing:
      return "ring";
    case simulator::Algorithm::kRecursiveHalving:
      return "recursive_halving";
    case simulator::Algorithm::kTree:
      return "tree";
  }
  TACTUS_CHECK(false);
}

}  // namespace

std::string WriteClusterFile(const simulator::ClusterModel& cluster, const SimulatedWork& work) {
  std::string text = "hosts:\n";
  for (const simulator::HostModel& host : cluster.hosts) text += Text(host);
  if (!cluster.between.empty()) text += "between:\n";
  for (const simulator::GroupLink& pair : cluster.between) {
    text += "  - {groups: [" + YamlScalar(pair.a) + ", " + YamlScalar(pair.b) + "], " +
            Text(pair.link) + "}\n";
  }
  text += "local: {" + Text(cluster.local) + "}\n";
  text += "collective: " + Name(cluster.algorithm) + "\n";
  text += Text(cluster.control);
  text += WriteWork(work);
  if (!cluster.faults.empty()) text += "faults:\n";
  for (const simulator::Fault& fault : cluster.faults) text += "  - " + WriteFault(fault) + "\n";
  return text;
}

}  // namespace tactus::client
