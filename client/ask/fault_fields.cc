#include "client/ask/fault_fields.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "client/text/names.h"
#include "client/text/quantity.h"

namespace tactus::client {
namespace {

using simulator::ClusterModel;
using simulator::Fault;
using simulator::HostModel;

// Keys that say what happens, in the order of Fault::Kind.
const std::vector<std::string> kKinds = {
    "crash", "pause", "slow", "crash_agent", "partition", "crash_coordinator", "disk_full"};
const spec::Interval kFactor = {.low = 1, .high = 1e6, .text = "1 to 1e6"};

const HostModel* FindHost(const ClusterModel& cluster, const std::string& name) {
  const auto found = std::ranges::find(cluster.hosts, name, &HostModel::name);
  return found == cluster.hosts.end() ? nullptr : &*found;
}

void ReadHostName(YamlFields& fields, const std::string& key, const ClusterModel& cluster,
                  Fault* fault) {
  fields.Text(key, &fault->host);
  if (!fault->host.empty() && FindHost(cluster, fault->host) == nullptr) {
    fields.Refuse(key, "the name of a host");
  }
}

void ReadDeviceName(YamlFields& fields, const std::string& key, const ClusterModel& cluster,
                    Fault* fault) {
  std::string text;
  fields.Text(key, &text);
  if (text.empty()) return;
  const std::size_t slash = std::min(text.find('/'), text.size());
  fault->host = text.substr(0, slash);
  fault->device = text.substr(std::min(slash + 1, text.size()));
  const HostModel* host = FindHost(cluster, fault->host);
  const auto right = [&](const simulator::DeviceModel& device) {
    return device.name == fault->device;
  };
  if (host == nullptr || std::ranges::none_of(host->devices, right)) {
    const HostModel& first = cluster.hosts.front();
    fields.Refuse(key, "HOST/DEVICE of this cluster, such as " + first.name + "/" +
                           first.devices.front().name);
  }
}

void ReadPartition(YamlFields& fields, const ClusterModel& cluster, Fault* fault) {
  const std::vector<std::string> ends = fields.Texts("partition");
  fields.Flag("one_way", &fault->one_way);
  const auto known = [&](const std::string& name) {
    return name == kCoordinatorName || FindHost(cluster, name) != nullptr;
  };
  if (ends.size() != 2 || ends[0] == ends[1] || FindHost(cluster, ends[0]) == nullptr ||
      !known(ends[1])) {
    return fields.Refuse("partition", "[HOST, HOST] or [HOST, coordinator] of this cluster");
  }
  fault->host = ends[0];
  fault->peer = ends[1];
}

void ReadWhere(YamlFields& fields, const ClusterModel& cluster, Fault* fault) {
  const std::string& key = kKinds[static_cast<std::size_t>(fault->kind)];
  switch (fault->kind) {
    case Fault::Kind::kSlowDown:
      fields.Number("factor", kFactor, &fault->factor);
      if (!fields.Has("factor")) fields.Refuse("factor", "how many times as long it takes");
      [[fallthrough]];
    case Fault::Kind::kWorkerCrash:
    case Fault::Kind::kPause:
      return ReadDeviceName(fields, key, cluster, fault);
    case Fault::Kind::kAgentCrash:
      return ReadHostName(fields, key, cluster, fault);
    case Fault::Kind::kPartition:
      return ReadPartition(fields, cluster, fault);
    case Fault::Kind::kCoordinatorCrash:
    case Fault::Kind::kDiskFull:
      break;
  }
  bool happens = true;
  fields.Flag(key, &happens);
  if (!happens) fields.Refuse(key, "true");
}

void ReadFault(YamlFields& fields, ClusterModel* cluster) {
  Fault fault;
  fields.Seconds("at", kLong, &fault.at_seconds);
  if (!fields.Has("at")) fields.Refuse("at", "when it happens, such as 30s");
  int given = 0;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (!fields.Has(kKinds[i])) continue;
    fault.kind = static_cast<Fault::Kind>(i);
    ++given;
  }
  if (given != 1) {
    fields.Add(
        "", "found " + std::to_string(given) + " faults, allowed is one of " + JoinNames(kKinds));
    return;
  }
  ReadWhere(fields, *cluster, &fault);
  // A worker that crashed stays away.
  if (fault.kind != Fault::Kind::kWorkerCrash) {
    fields.Seconds("for", kLongAboveZero, &fault.for_seconds);
  }
  fields.RefuseOthers();
  cluster->faults.push_back(fault);
}

std::string WhereText(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::kWorkerCrash:
    case Fault::Kind::kPause:
    case Fault::Kind::kSlowDown:
      return fault.host + "/" + fault.device;
    case Fault::Kind::kAgentCrash:
      return fault.host;
    case Fault::Kind::kPartition:
      return "[" + fault.host + ", " + fault.peer + "]";
    case Fault::Kind::kCoordinatorCrash:
    case Fault::Kind::kDiskFull:
      return "true";
  }
  TACTUS_CHECK(false);
}

}  // namespace

void ReadFaults(YamlFields& file, ClusterModel* cluster) {
  for (YamlFields& fields : file.Maps("faults")) ReadFault(fields, cluster);
}

std::string WriteFault(const Fault& fault) {
  std::string text = "{at: " + FormatSeconds(fault.at_seconds) + ", " +
                     kKinds[static_cast<std::size_t>(fault.kind)] + ": " + WhereText(fault);
  if (fault.kind == Fault::Kind::kSlowDown) text += ", factor: " + FormatNumber(fault.factor);
  if (fault.one_way) text += ", one_way: true";
  if (fault.for_seconds > 0) text += ", for: " + FormatSeconds(fault.for_seconds);
  return text + "}";
}

}  // namespace tactus::client
