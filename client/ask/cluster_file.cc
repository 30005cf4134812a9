#include "client/ask/cluster_file.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "client/ask/durations.h"
#include "client/ask/fault_fields.h"
#include "client/text/quantity.h"
#include "client/yaml/message_reader.h"
#include "client/yaml/yaml_file.h"
#include "coordinator/spec/field_rules.h"
#include "tactus/sim/v1/cluster.pb.h"

namespace tactus::client {
namespace {

using simulator::ClusterModel;
using simulator::DeviceModel;
using simulator::HostModel;
using simulator::LinkModel;
using simulator::NoiseModel;
using spec::FieldChecks;

constexpr const char* kNameAllowed = "a name of 1 to 63 letters, digits, '.', '_' and '-'";
constexpr const char* kDeviceAllowed = "cpu:N or cuda:N, N being 0 to 65535";

std::string ItemOf(const std::string& list, int index) {
  return list + "[" + std::to_string(index) + "]";
}

void CheckName(const std::string& field, const std::string& name, FieldChecks& checks) {
  const bool right =
      !name.empty() && name.size() <= 63 && std::ranges::all_of(name, [](const char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
      });
  if (!right) checks.Add(field, "found " + spec::Shown(name) + ", allowed is " + kNameAllowed);
}

// Of the three messages of a link.
template <typename Link>
LinkModel LinkOf(const Link& link) {
  return {.latency_seconds = SecondsOf(link.latency()),
          .bytes_per_second = link.rate(),
          .burst_bytes = link.burst()};
}

// ---- devices

NoiseModel NoiseOf(const sim::v1::Noise& noise, const std::string& place, FieldChecks& checks) {
  const auto check = [&](const std::string& key, bool given) {
    if (given || noise.slow_factor() <= 1) return;
    checks.Missing(place + key, "give a duration, as slow_factor is above 1");
  };
  check(".slow_mean", noise.has_slow_mean());
  check(".fast_mean", noise.has_fast_mean());
  return {.log_sigma = noise.sigma(),
          .slow_factor = noise.slow_factor(),
          .slow_seconds = SecondsOf(noise.slow_mean()),
          .fast_seconds = SecondsOf(noise.fast_mean())};
}

double SampleSeconds(const sim::v1::Device& device, const std::string& place, FieldChecks& checks) {
  const bool per_second = device.has_samples_per_second();
  if (per_second == device.has_sample_time()) {
    checks.Add(place, per_second ? "found both samples_per_second and sample_time, allowed is "
                                   "one of them"
                                 : "give samples_per_second or sample_time");
  }
  return per_second ? 1 / device.samples_per_second() : SecondsOf(device.sample_time());
}

// What `count` devices from a name on are called.
struct DeviceNames {
  std::string kind{};  // "cpu:"
  std::uint64_t first = 0;

  std::string At(std::uint64_t index) const { return kind + std::to_string(first + index); }
};

// The name given, or the next of the CPU's.
DeviceNames NamesOf(const std::string& name, std::uint64_t cpus, const std::string& field,
                    FieldChecks& checks) {
  if (name.empty()) return {"cpu:", cpus};
  const std::size_t colon = name.find(':') + 1;
  const std::optional<double> index = ParseNumber(std::string_view(name).substr(colon));
  const DeviceNames names = {name.substr(0, colon), static_cast<std::uint64_t>(std::clamp(
                                                        index.value_or(0), 0.0, 65535.0))};
  if ((names.kind != "cpu:" && names.kind != "cuda:") || names.At(0) != name) {
    checks.Add(field, "found " + spec::Shown(name) + ", allowed is " + kDeviceAllowed);
    return {"cpu:", cpus};
  }
  return names;
}

std::vector<DeviceModel> DevicesOf(const sim::v1::Host& host, const std::string& host_place,
                                   FieldChecks& checks) {
  std::vector<DeviceModel> models;
  std::set<std::string> taken;
  std::uint64_t cpus = 0;
  for (int d = 0; d < host.devices_size(); ++d) {
    const sim::v1::Device& device = host.devices(d);
    const std::string place = ItemOf(host_place + ".devices", d);
    const DeviceNames names = NamesOf(device.name(), cpus, place + ".name", checks);
    DeviceModel model = {.batch_seconds = SecondsOf(device.batch_time()),
                         .sample_seconds = SampleSeconds(device, place, checks),
                         .noise = NoiseOf(device.noise(), place + ".noise", checks),
                         .drift_per_hour = device.drift_per_hour(),
                         .samples_max = device.samples_max()};
    for (std::uint64_t i = 0; i < device.count() && models.size() <= kSimulatedDevicesMax; ++i) {
      model.name = names.At(i);
      if (!taken.insert(model.name).second) {
        checks.Add(place + ".name", "there is a second " + model.name + " on this host");
        break;
      }
      models.push_back(model);
    }
    if (names.kind == "cpu:") cpus = std::max(cpus, names.first + device.count());
  }
  return models;
}

// ---- hosts

// Adds the hosts that one entry of the list stands for.
void AddHosts(const sim::v1::Host& entry, const std::string& place, std::set<std::string>& names,
              std::vector<HostModel>* hosts, FieldChecks& checks) {
  if (entry.name().empty()) checks.Missing(place + ".name", std::string("give ") + kNameAllowed);
  if (!entry.name().empty()) CheckName(place + ".name", entry.name(), checks);
  if (!entry.group().empty()) CheckName(place + ".group", entry.group(), checks);
  HostModel host = {.group = entry.group(),
                    .link = LinkOf(entry.link()),
                    .devices = DevicesOf(entry, place, checks)};
  std::size_t devices = entry.count() * host.devices.size();
  for (const HostModel& other : *hosts) devices += other.devices.size();
  if (devices > kSimulatedDevicesMax) {
    return checks.Add(place, "found " + std::to_string(devices) +
                                 " devices up to here, allowed are " +
                                 std::to_string(kSimulatedDevicesMax));
  }
  for (std::uint64_t i = 1; i <= entry.count(); ++i) {
    host.name = entry.name() + (entry.count() > 1 ? "-" + std::to_string(i) : "");
    if (host.name == kCoordinatorName) {
      checks.Add(place + ".name", "found \"coordinator\", allowed is any name but coordinator");
    }
    if (!entry.name().empty() && !names.insert(host.name).second) {
      return checks.Add(place + ".name", "there is a second host " + host.name);
    }
    hosts->push_back(host);
  }
}

// The names of a pair, of which hosts have both.
std::pair<std::string, std::string> PairOf(const sim::v1::GroupLink& link,
                                           const std::set<std::string>& groups,
                                           const std::string& field, FieldChecks& checks) {
  if (link.groups_size() != 2 || link.groups(0) == link.groups(1)) {
    checks.Add(field, "give a list of two groups of hosts");
    return {};
  }
  const std::vector<std::string> known(groups.begin(), groups.end());
  for (const std::string& group : link.groups()) {
    if (groups.contains(group)) continue;
    checks.Add(field,
               "found " + spec::Shown(group) + ", allowed is " +
                   (known.empty() ? "nothing, as no host has a group" : spec::Enumerate(known)));
  }
  return {link.groups(0), link.groups(1)};
}

void AddBetween(const sim::v1::Cluster& cluster, ClusterModel* model, FieldChecks& checks) {
  std::set<std::string> groups;
  for (const HostModel& host : model->hosts) groups.insert(host.group);
  groups.erase("");
  std::set<std::set<std::string>> pairs;
  for (int i = 0; i < cluster.between_size(); ++i) {
    const sim::v1::GroupLink& link = cluster.between(i);
    const std::string place = ItemOf("between", i);
    if (!link.has_rate()) checks.Missing(place + ".rate", "give a rate, such as 1gbit");
    const auto [a, b] = PairOf(link, groups, place + ".groups", checks);
    if (!a.empty() && !pairs.insert({a, b}).second) checks.Add(place + ".groups", "given twice");
    model->between.push_back({.a = a, .b = b, .link = LinkOf(link)});
  }
}

// ---- the file

// All but the faults. Requires: nothing is left open, and every value is right by itself.
ClusterModel ModelOf(const sim::v1::Cluster& cluster, FieldChecks& checks) {
  ClusterModel model;
  std::set<std::string> names;
  for (int i = 0; i < cluster.hosts_size(); ++i) {
    AddHosts(cluster.hosts(i), ItemOf("hosts", i), names, &model.hosts, checks);
  }
  AddBetween(cluster, &model, checks);
  model.local = LinkOf(cluster.local());
  model.algorithm = static_cast<simulator::Algorithm>(cluster.collective() - 1);
  model.control = {.delay_seconds = SecondsOf(cluster.control().delay()),
                   .jitter_seconds = SecondsOf(cluster.control().jitter()),
                   .duplicate_share = cluster.control().duplicate_share(),
                   .persist_seconds = SecondsOf(cluster.control().persist_time())};
  return model;
}

// What a file may say in short: a loss model's name alone, and no hidden layers as an empty list.
void Unfold(YamlValue* root) {
  using enum YamlValue::Kind;
  const YamlValue* loss = FindYamlKey(*root, "loss");
  if (loss == nullptr) return;
  if (loss->kind == kScalar && sim::v1::Loss::descriptor()->FindFieldByName(loss->text)) {
    const YamlValue defaults = {.kind = kMap, .line = loss->line, .entries = {}};
    const YamlEntry entry = {.key = loss->text, .line = loss->line, .value = defaults};
    SetYamlPath("loss", {.kind = kMap, .line = loss->line, .entries = {entry}}, root);
    return;
  }
  const YamlValue* perceptron = FindYamlKey(*loss, "perceptron");
  const YamlValue* hidden = perceptron ? FindYamlKey(*perceptron, "hidden") : nullptr;
  if (hidden != nullptr && hidden->kind == kList && hidden->items.empty()) {
    SetYamlPath("loss.perceptron.linear", {.kind = kScalar, .text = "true", .entries = {}}, root);
  }
}

// One is the other or around it, so that a mistake in one may be why something else is said of the
// other.
bool Related(const std::string& a, const std::string& b) {
  return a.starts_with(b) || b.starts_with(a);
}

ClusterFile ReadCluster(YamlValue root, const std::string& folder) {
  Unfold(&root);
  sim::v1::Cluster cluster;
  const std::vector<runtime::FieldViolation> unread = ReadMessage(root, &cluster);
  ClusterFile file = {.errors = ErrorTexts(unread)};
  FieldChecks checks;
  spec::CheckFields(cluster, "", "", checks);
  if (checks.violations().empty()) {
    sim::v1::Loss& loss = *cluster.mutable_loss();
    if (loss.model_case() == sim::v1::Loss::MODEL_NOT_SET) loss.mutable_noisy_quadratic();
    spec::FillDefaults("", &cluster);
    file.cluster = ModelOf(cluster, checks);
    file.work = ReadWork(cluster, folder, checks);
    // They name hosts and devices, which a mistake may have left out.
    if (unread.empty() && checks.violations().empty()) ReadFaults(cluster, &file.cluster, checks);
  }
  for (const auto& [field, description] : checks.violations()) {
    const auto related = [&](const std::string& other) { return Related(field, other); };
    if (std::ranges::any_of(unread, related, &runtime::FieldViolation::field)) continue;
    const int line = LineAt(root, field);
    const std::string place = line == 0 ? "" : " (line " + std::to_string(line) + ")";
    file.errors.push_back(field + ": " + description + place);
  }
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
  return ReadCluster(std::move(yaml.root), folder);
}

ClusterFile ReadClusterFile(const std::string& path, const std::string& loss) {
  const FileText file = ReadYamlText(path, "a cluster file");
  if (!file.error.empty()) return {.errors = {file.error}};
  return ParseClusterFile(file.text, loss, std::filesystem::path(path).parent_path().string());
}

}  // namespace tactus::client
