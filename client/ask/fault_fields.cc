#include "client/ask/fault_fields.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "client/ask/durations.h"

namespace tactus::client {
namespace {

using google::protobuf::FieldDescriptor;
using simulator::ClusterModel;
using simulator::Fault;
using simulator::HostModel;
using Kind = simulator::Fault::Kind;

// The numbers of the fields that say what happens, in the order of Fault::Kind.
constexpr std::array kKinds = {
    sim::v1::Fault::kCrashFieldNumber,     sim::v1::Fault::kPauseFieldNumber,
    sim::v1::Fault::kSlowFieldNumber,      sim::v1::Fault::kCrashAgentFieldNumber,
    sim::v1::Fault::kPartitionFieldNumber, sim::v1::Fault::kCrashCoordinatorFieldNumber,
    sim::v1::Fault::kDiskFullFieldNumber,  sim::v1::Fault::kWrongStoreFieldNumber,
};

// Those of a fault that are given.
std::vector<const FieldDescriptor*> GivenKinds(const sim::v1::Fault& fault) {
  std::vector<const FieldDescriptor*> fields;
  fault.GetReflection()->ListFields(fault, &fields);
  std::erase_if(fields, [](const FieldDescriptor* field) {
    return std::ranges::find(kKinds, field->number()) == kKinds.end();
  });
  return fields;
}

const HostModel* FindHost(const ClusterModel& cluster, const std::string& name) {
  const auto found = std::ranges::find(cluster.hosts, name, &HostModel::name);
  return found == cluster.hosts.end() ? nullptr : &*found;
}

// HOST of an agent, else HOST/DEVICE.
void ReadWhere(const std::string& text, const std::string& field, const ClusterModel& cluster,
               Fault* fault, spec::FieldChecks& checks) {
  const bool agent = fault->kind == Kind::kAgentCrash;
  const std::size_t slash = agent ? text.size() : std::min(text.find('/'), text.size());
  fault->host = text.substr(0, slash);
  fault->device = text.substr(std::min(slash + 1, text.size()));
  const HostModel* host = FindHost(cluster, fault->host);
  const auto right = [&](const auto& device) { return device.name == fault->device; };
  if (host != nullptr && (agent || std::ranges::any_of(host->devices, right))) return;
  const HostModel& first = cluster.hosts.front();
  const std::string such = first.name + "/" + first.devices.front().name;
  checks.Add(field,
             "found " + spec::Shown(text) + ", allowed is " +
                 (agent ? "the name of a host" : "HOST/DEVICE of this cluster, such as " + such));
}

void ReadPartition(const sim::v1::Fault& message, const std::string& field,
                   const ClusterModel& cluster, Fault* fault, spec::FieldChecks& checks) {
  const std::vector<std::string> ends(message.partition().begin(), message.partition().end());
  if (ends.size() != 2 || ends[0] == ends[1] || FindHost(cluster, ends[0]) == nullptr ||
      (ends[1] != kCoordinatorName && FindHost(cluster, ends[1]) == nullptr)) {
    return checks.Add(field, "allowed is [HOST, HOST] or [HOST, coordinator] of this cluster");
  }
  fault->host = ends[0];
  fault->peer = ends[1];
}

// What some kinds alone have.
void CheckOwned(const sim::v1::Fault& message, const std::string& place, Kind kind,
                spec::FieldChecks& checks) {
  const bool slow = kind == Kind::kSlowDown;
  if (slow && !message.has_factor()) {
    checks.Missing(place + ".factor", "give how many times as long it takes");
  }
  if (!slow && message.has_factor()) checks.Add(place + ".factor", "is for slow");
  if (kind != Kind::kPartition && message.one_way()) {
    checks.Add(place + ".one_way", "is for partition");
  }
  if (kind == Kind::kWorkerCrash && message.has_for_()) {
    checks.Add(place + ".for", "is not for crash: a worker that crashed stays away");
  }
}

Fault FaultOf(const sim::v1::Fault& message, const std::string& place, const ClusterModel& cluster,
              spec::FieldChecks& checks) {
  if (!message.has_at()) checks.Missing(place + ".at", "give when it happens, such as 30s");
  const std::vector<const FieldDescriptor*> kinds = GivenKinds(message);
  if (kinds.size() != 1) {
    checks.Add(place, "found " + std::to_string(kinds.size()) +
                          " faults, allowed is one of crash, pause, slow, crash_agent, partition, "
                          "crash_coordinator, disk_full, wrong_store");
    return {};
  }
  const FieldDescriptor& given = *kinds.front();
  const std::string field = place + "." + given.name();
  Fault fault = {
      .kind = static_cast<Kind>(std::ranges::find(kKinds, given.number()) - kKinds.begin()),
      .at_seconds = SecondsOf(message.at()),
      .for_seconds = SecondsOf(message.for_()),
      .one_way = message.one_way(),
      .factor = message.has_factor() ? message.factor() : 1};
  if (given.is_repeated()) {
    ReadPartition(message, field, cluster, &fault, checks);
  } else if (given.type() == FieldDescriptor::TYPE_STRING) {
    ReadWhere(message.GetReflection()->GetString(message, &given), field, cluster, &fault, checks);
  }
  CheckOwned(message, place, fault.kind, checks);
  return fault;
}

}  // namespace

void ReadFaults(const sim::v1::Cluster& cluster, ClusterModel* model, spec::FieldChecks& checks) {
  for (int i = 0; i < cluster.faults_size(); ++i) {
    const std::string place = "faults[" + std::to_string(i) + "]";
    model->faults.push_back(FaultOf(cluster.faults(i), place, *model, checks));
  }
}

void WriteFault(const Fault& model, sim::v1::Fault* fault) {
  *fault->mutable_at() = DurationOf(model.at_seconds);
  const FieldDescriptor* kind =
      fault->GetDescriptor()->FindFieldByNumber(kKinds.at(static_cast<std::size_t>(model.kind)));
  if (kind->is_repeated()) {
    fault->add_partition(model.host);
    fault->add_partition(model.peer);
  } else if (kind->type() == FieldDescriptor::TYPE_BOOL) {
    fault->GetReflection()->SetBool(fault, kind, true);
  } else {
    const std::string where = model.host + (model.device.empty() ? "" : "/" + model.device);
    fault->GetReflection()->SetString(fault, kind, where);
  }
  if (model.kind == Kind::kSlowDown) fault->set_factor(model.factor);
  fault->set_one_way(model.one_way);
  if (model.for_seconds > 0) *fault->mutable_for_() = DurationOf(model.for_seconds);
}

}  // namespace tactus::client
