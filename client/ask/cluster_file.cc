#include "client/ask/cluster_file.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "client/ask/fault_fields.h"
#include "client/text/quantity.h"
#include "client/yaml/yaml_fields.h"

namespace tactus::client {
namespace {

using simulator::ClusterModel;
using simulator::DeviceModel;
using simulator::HostModel;
using simulator::LinkModel;

const spec::Interval kSigma = {.low = 0, .high = 2, .text = "0 to 2"};
const spec::Interval kSlowFactor = {.low = 1, .high = 1e6, .text = "1 to 1e6"};
const spec::Interval kPhase = {
    .low = simulator::kPhaseSecondsMin, .high = 365 * 86400.0, .text = "1ms to 365d"};
const spec::Interval kDrift = {.low = -100, .high = 100, .text = "-100 to 100"};
const spec::Interval kSpeed = {.low = 1e-3, .high = 1e9, .text = "0.001 to 1e9"};
const spec::Interval kShareBelowOne = {.low = 0, .high = 1, .high_included = false, .text = "0 to below 1"};
const std::vector<std::string> kAlgorithms = {"mesh", "ring", "recursive_halving", "tree"};
constexpr const char* kNameAllowed = "a name of 1 to 63 letters, digits, '.', '_' and '-'";
constexpr const char* kDeviceAllowed = "cpu:N or cuda:N, N being 0 to 65535";

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= 63 && std::ranges::all_of(text, [](const char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

void ReadName(YamlFields& fields, const std::string& key, std::string* name) {
  fields.Text(key, name);
  if (!name->empty() && !IsName(*name)) fields.Refuse(key, kNameAllowed);
}

void ReadLink(YamlFields& fields, LinkModel* link) {
  fields.Rate("rate", &link->bytes_per_second);
  fields.Seconds("latency", kBriefly, &link->latency_seconds);
  fields.Size("burst", &link->burst_bytes);
}

void ReadLinkAt(YamlFields& parent, const std::string& key, LinkModel* link) {
  std::optional<YamlFields> fields = parent.Map(key);
  if (!fields) return;
  ReadLink(*fields, link);
  fields->RefuseOthers();
}

// ---- devices

void ReadNoise(YamlFields fields, simulator::NoiseModel* noise) {
  fields.Number("sigma", kSigma, &noise->log_sigma);
  fields.Number("slow_factor", kSlowFactor, &noise->slow_factor);
  fields.Seconds("slow_mean", kPhase, &noise->slow_seconds);
  fields.Seconds("fast_mean", kPhase, &noise->fast_seconds);
  fields.RefuseOthers();
  const bool phases = noise->slow_factor > 1;
  for (const char* key : {"slow_mean", "fast_mean"}) {
    if (phases && !fields.Has(key)) fields.Refuse(key, "a duration, as slow_factor is above 1");
  }
}

void ReadSpeed(YamlFields& fields, DeviceModel* device) {
  const bool per_second = fields.Has("samples_per_second");
  const bool time = fields.Has("sample_time");
  if (per_second == time) {
    return fields.Add("", per_second ? "found both samples_per_second and sample_time, allowed is "
                                       "one of them"
                                     : "give samples_per_second or sample_time");
  }
  double speed = 1 / device->sample_seconds;
  fields.Number("samples_per_second", kSpeed, &speed);
  device->sample_seconds = 1 / speed;
  fields.Seconds("sample_time", kBrieflyAboveZero, &device->sample_seconds);
}

// What `count` devices from a name on are called.
struct DeviceNames {
  std::string kind{};  // "cpu:"
  std::uint64_t first = 0;

  std::string At(std::uint64_t index) const { return kind + std::to_string(first + index); }
};

// The name given, or the next of the CPU's.
DeviceNames ReadDeviceName(YamlFields& fields, std::uint64_t cpus) {
  std::string name = "cpu:" + std::to_string(cpus);
  fields.Text("name", &name);
  const std::size_t colon = name.find(':') + 1;
  const std::optional<double> index = ParseNumber(std::string_view(name).substr(colon));
  const std::string kind = name.substr(0, colon);
  const DeviceNames names = {
      kind, static_cast<std::uint64_t>(std::clamp(index.value_or(0), 0.0, 65535.0))};
  if ((kind != "cpu:" && kind != "cuda:") || names.At(0) != name) {
    fields.Refuse("name", kDeviceAllowed);
    return {"cpu:", cpus};
  }
  return names;
}

void ReadDevices(YamlFields& host, HostModel* model) {
  std::set<std::string> taken;
  std::uint64_t cpus = 0;
  for (YamlFields& fields : host.Maps("devices")) {
    DeviceModel device;
    const DeviceNames names = ReadDeviceName(fields, cpus);
    std::uint64_t count = 1;
    fields.Whole("count", {1, kSimulatedDevicesMax}, &count);
    ReadSpeed(fields, &device);
    fields.Seconds("batch_time", kBriefly, &device.batch_seconds);
    if (auto noise = fields.Map("noise")) ReadNoise(*noise, &device.noise);
    fields.Number("drift_per_hour", kDrift, &device.drift_per_hour);
    std::uint64_t samples_max = 0;
    fields.Whole("samples_max", {1, 1u << 20}, &samples_max);
    device.samples_max = static_cast<std::uint32_t>(samples_max);
    fields.RefuseOthers();
    for (std::uint64_t i = 0; i < count; ++i) {
      device.name = names.At(i);
      if (!taken.insert(device.name).second) {
        fields.Add("name", "there is a second " + device.name + " on this host");
        break;
      }
      model->devices.push_back(device);
    }
    if (names.kind == "cpu:") cpus = std::max(cpus, names.first + count);
  }
  if (model->devices.empty()) host.Refuse("devices", "a list of at least one device");
}

// ---- hosts

// Reads one entry of the list `hosts` and adds the hosts that it stands for.
void ReadHost(YamlFields& fields, std::set<std::string>& names, std::vector<HostModel>* hosts) {
  HostModel host;
  ReadName(fields, "name", &host.name);
  if (!fields.Has("name")) fields.Refuse("name", kNameAllowed);
  std::uint64_t count = 1;
  fields.Whole("count", {1, kSimulatedDevicesMax}, &count);
  ReadName(fields, "group", &host.group);
  ReadLinkAt(fields, "link", &host.link);
  ReadDevices(fields, &host);
  fields.RefuseOthers();
  std::size_t devices = count * host.devices.size();
  for (const HostModel& other : *hosts) devices += other.devices.size();
  if (devices > kSimulatedDevicesMax) {
    return fields.Add("", "found " + std::to_string(devices) + " devices up to here, allowed are " +
                              std::to_string(kSimulatedDevicesMax));
  }
  const std::string stem = host.name;
  for (std::uint64_t i = 1; i <= count; ++i) {
    if (count > 1) host.name = stem + "-" + std::to_string(i);
    if (host.name == kCoordinatorName) fields.Refuse("name", "any name but coordinator");
    if (!host.name.empty() && !names.insert(host.name).second) {
      return fields.Add("name", "there is a second host " + host.name);
    }
    hosts->push_back(host);
  }
}

void ReadHosts(YamlFields& file, std::vector<HostModel>* hosts) {
  std::set<std::string> names;
  std::vector<YamlFields> entries = file.Maps("hosts");
  for (YamlFields& fields : entries) ReadHost(fields, names, hosts);
  if (entries.empty()) file.Refuse("hosts", "a list of at least one host");
}

void ReadBetween(YamlFields& file, ClusterModel* cluster) {
  std::set<std::string> groups;
  for (const HostModel& host : cluster->hosts) groups.insert(host.group);
  groups.erase("");
  const std::vector<std::string> known(groups.begin(), groups.end());
  std::set<std::set<std::string>> pairs;
  for (YamlFields& fields : file.Maps("between")) {
    simulator::GroupLink between;
    std::vector<std::string> pair = fields.Texts("groups");
    ReadLink(fields, &between.link);
    fields.RefuseOthers();
    if (!fields.Has("rate")) fields.Refuse("rate", "a rate, such as 1gbit");
    if (pair.size() != 2 || pair[0] == pair[1]) {
      fields.Refuse("groups", "a list of two groups of hosts");
      continue;
    }
    for (const std::string& group : pair) {
      if (groups.contains(group)) continue;
      fields.Add("groups",
                 "found \"" + group + "\", allowed is " +
                     (known.empty() ? "nothing, as no host has a group" : spec::Enumerate(known)));
    }
    if (!pairs.insert({pair[0], pair[1]}).second) fields.Add("groups", "given twice");
    between.a = pair[0];
    between.b = pair[1];
    cluster->between.push_back(between);
  }
}

void ReadControl(YamlFields& file, simulator::ControlModel* control) {
  std::optional<YamlFields> fields = file.Map("control");
  if (!fields) return;
  fields->Seconds("delay", kBriefly, &control->delay_seconds);
  fields->Seconds("jitter", kBriefly, &control->jitter_seconds);
  fields->Number("duplicate_share", kShareBelowOne, &control->duplicate_share);
  fields->Seconds("persist_time", kBriefly, &control->persist_seconds);
  fields->RefuseOthers();
}

ClusterFile ReadCluster(const YamlValue& root, const std::string& folder) {
  ClusterFile file;
  YamlFields fields(root, "", file.errors);
  if (!file.errors.empty()) return file;
  ReadHosts(fields, &file.cluster.hosts);
  ReadBetween(fields, &file.cluster);
  ReadLinkAt(fields, "local", &file.cluster.local);
  std::size_t algorithm = 0;
  fields.Choice("collective", kAlgorithms, &algorithm);
  file.cluster.algorithm = static_cast<simulator::Algorithm>(algorithm);
  ReadControl(fields, &file.cluster.control);
  file.work = ReadWork(fields, folder);
  // They name hosts and devices, which a mistake may have left out.
  if (file.errors.empty()) ReadFaults(fields, &file.cluster);
  fields.Has("faults");
  fields.RefuseOthers();
  return file;
}

}  // namespace

ClusterFile ParseClusterFile(std::string_view text, const std::string& loss,
                             const std::string& folder) {
  YamlFile yaml = ParseYamlFile(text, {});
  ClusterFile file;
  file.errors = std::move(yaml.errors);
  if (file.errors.empty() && yaml.root.kind == YamlValue::Kind::kNull) {
    file.errors.push_back("the file is empty; a cluster has at least hosts");
  }
  if (!file.errors.empty()) return file;
  if (!loss.empty()) {
    YamlDocument given = ParseYamlArgument(loss);
    std::string problem = given.error;
    if (problem.empty()) problem = SetYamlPath("loss", std::move(given.root), &yaml.root);
    if (!problem.empty()) return {.errors = {"--loss: " + problem}};
  }
  return ReadCluster(yaml.root, folder);
}

ClusterFile ReadClusterFile(const std::string& path, const std::string& loss) {
  const FileText file = ReadYamlText(path, "a cluster file");
  if (!file.error.empty()) return {.errors = {file.error}};
  return ParseClusterFile(file.text, loss, std::filesystem::path(path).parent_path().string());
}

}  // namespace tactus::client
