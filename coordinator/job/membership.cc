#include "coordinator/job/membership.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <tuple>

#include "base/check.h"

namespace tactus::job {
namespace {

// "cpu:10" as ("cpu", 2 digits, "10"): numbers of any length in numerical order.
using DeviceKey = std::tuple<std::string_view, std::size_t, std::string_view>;

DeviceKey KeyOf(const DeviceRecord& device) {
  const std::string_view name = device.name;
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return {name, 0, {}};
  std::string_view number = name.substr(colon + 1);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return {name.substr(0, colon), number.size(), number};
}

constexpr unsigned kStrikesMax = 2;
// What passes of several need beside that of each, and what is not seen between two reports.
constexpr double kMemoryShare = 0.75;
constexpr double kRoomMost = 1e6;  // more than ever share a device

void SetFault(Node& node, DeviceRecord& device, const std::string& of_agent) {
  const auto strikes = node.strikes.find(device.name);
  const bool struck = strikes != node.strikes.end() && strikes->second >= kStrikesMax;
  device.fault = of_agent.empty() && struck
                     ? "its worker's parameters were wrong " + std::to_string(strikes->second) +
                           " times; restart the agent when the device is well"
                     : of_agent;
}

}  // namespace

void Membership::Join(const std::string& name, std::vector<DeviceRecord> devices, NodeTraits traits,
                      std::uint64_t incarnation) {
  // Stable, so that of two with one name the first that was given stays first, and is kept.
  std::ranges::stable_sort(devices, {}, KeyOf);
  std::set<std::string> seen;
  std::erase_if(devices,
                [&seen](const DeviceRecord& device) { return !seen.insert(device.name).second; });
  Node& node = nodes_[name];
  node.connected = true;
  if (node.incarnation != incarnation) node.strikes.clear();
  node.incarnation = incarnation;
  node.devices = std::move(devices);
  for (DeviceRecord& device : node.devices) SetFault(node, device, device.fault);
  node.traits = std::move(traits);
  Recount(name);
}

void Membership::Miss(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.connected = false;
  Recount(name);
}

void Membership::Lose(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.strays.clear();
  Miss(name);
}

void Membership::Forget(const std::string& name) {
  TACTUS_CHECK(AnyHolderOn(name) == nullptr);
  Lose(name);  // out of what is kept beside nodes_
  marked_.erase(name);
  nodes_.erase(name);
}

void Membership::SetLeaving(const std::string& name, const std::string& reason) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.leaving = reason;
  Recount(name);
}

void Membership::SetFaults(const std::string& name,
                           const std::map<std::string, std::string>& faults) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  for (DeviceRecord& device : found->second.devices) {
    const auto fault = faults.find(device.name);
    SetFault(found->second, device, fault == faults.end() ? "" : fault->second);
  }
  Recount(name);
}

bool Membership::Strike(const std::string& name, const std::string& device) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return false;
  Node& node = found->second;
  const bool again = ++node.strikes[device] >= kStrikesMax;
  for (DeviceRecord& each : node.devices) {
    if (each.name == device && again) SetFault(node, each, "");
  }
  Recount(name);
  return again;
}

void Membership::Mark(const NodeRecord& mark) {
  Node& node = nodes_[mark.name];
  node.cordoned = mark.cordoned;
  node.draining = mark.draining;
  if (mark.cordoned || mark.draining) {
    marked_.insert(mark.name);
  } else {
    marked_.erase(mark.name);
  }
  Recount(mark.name);
}

NodeRecord Membership::MarkOf(const std::string& name) const {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return {.name = name};
  return {.name = name, .cordoned = found->second.cordoned, .draining = found->second.draining};
}

bool Membership::IsOpen(const Node& node) {
  const bool closed = node.cordoned || node.draining || !node.leaving.empty();
  return node.connected && !closed && node.strays.empty();
}

// The devices of a node are few, and what changes them is rare.
void Membership::Recount(const std::string& name) {
  const Node& node = nodes_.at(name);
  free_.erase(free_.lower_bound({name, 0}), free_.upper_bound({name, SIZE_MAX}));
  const auto is_cuda = [](const DeviceRecord& device) { return device.kind == DeviceKind::kCuda; };
  if (node.connected && std::ranges::any_of(node.devices, is_cuda)) {
    with_cuda_.insert(name);
  } else {
    with_cuda_.erase(name);
  }
  if (node.strays.empty()) {
    with_strays_.erase(name);
  } else {
    with_strays_.insert(name);
  }
  if (!IsOpen(node)) return;
  for (std::size_t index = 0; index < node.devices.size(); ++index) {
    const DeviceRecord& device = node.devices[index];
    if (device.fault.empty() && HolderOf(name, device.name) == nullptr) free_.insert({name, index});
  }
}

bool Membership::MayHold(const MemberRecord& member) const {
  const auto found = holders_.find({member.node, member.device});
  if (found == holders_.end()) return true;
  return !member.array.empty() && std::ranges::all_of(found->second, [&](const Holder& holder) {
    return holder.array == member.array;
  });
}

void Membership::Hold(const MemberRecord& member, JobId job, const std::string& job_name) {
  TACTUS_CHECK(MayHold(member));
  const Place place{member.node, member.device};
  holders_[place].push_back(
      {.worker = member.worker, .job = job, .job_name = job_name, .array = member.array});
  const bool worker_was_free = places_.insert({member.worker, place}).second;
  TACTUS_CHECK(worker_was_free);
  if (nodes_.contains(member.node)) Recount(member.node);
}

void Membership::Release(WorkerId worker) {
  const auto found = places_.find(worker);
  if (found == places_.end()) return;
  const std::string node = found->second.first;
  const auto holders = holders_.find(found->second);
  std::erase_if(holders->second, [&](const Holder& holder) { return holder.worker == worker; });
  if (holders->second.empty()) {
    usages_.erase(holders->first);
    holders_.erase(holders);
  }
  places_.erase(found);
  if (nodes_.contains(node)) Recount(node);
}

// Fewer than once were there tell nothing new: libraries keep what their peak needed.
bool Membership::NoteMemory(WorkerId worker, std::uint64_t used) {
  const auto place = places_.find(worker);
  if (used == 0 || place == places_.end()) return false;
  std::vector<Holder>& holders = holders_.at(place->second);
  std::ranges::find(holders, worker, &Holder::worker)->told_memory = true;
  if (!std::ranges::all_of(holders, &Holder::told_memory)) return false;
  Usage& usage = usages_[place->second];
  if (holders.size() < usage.jobs) return false;
  const bool better = holders.size() > usage.jobs;
  usage = {.jobs = holders.size(), .bytes = better ? used : std::max(used, usage.bytes)};
  return better;
}

std::size_t Membership::RoomFor(const std::string& node, const std::string& device) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return 1;
  const auto at = std::ranges::find(found->second.devices, device, &DeviceRecord::name);
  if (at == found->second.devices.end()) return 1;
  const std::uint64_t limit =
      at->kind == DeviceKind::kCuda ? at->memory_bytes : found->second.traits.worker_memory_bytes;
  if (limit == 0) return SIZE_MAX;
  const auto usage = usages_.find({node, device});
  if (usage == usages_.end()) return 1;
  const double each =
      static_cast<double>(usage->second.bytes) / static_cast<double>(usage->second.jobs);
  const double room = kMemoryShare * static_cast<double>(limit) / each;
  return static_cast<std::size_t>(std::clamp(room, 1.0, kRoomMost));
}

void Membership::Release(JobId job) {
  std::vector<WorkerId> workers;
  for (const auto& [place, holders] : holders_) {
    for (const Holder& holder : holders) {
      if (holder.job == job) workers.push_back(holder.worker);
    }
  }
  for (const WorkerId worker : workers) Release(worker);
}

std::vector<WorkerId> Membership::HoldersOn(const std::string& node, JobId job) const {
  std::vector<WorkerId> workers;
  for (auto at = holders_.lower_bound({node, ""}); at != holders_.end() && at->first.first == node;
       ++at) {
    for (const Holder& holder : at->second) {
      if (holder.job == job) workers.push_back(holder.worker);
    }
  }
  return workers;
}

const Holder* Membership::HolderOf(const std::string& node, const std::string& device) const {
  const auto found = holders_.find({node, device});
  return found == holders_.end() ? nullptr : &found->second.front();
}

std::vector<Holder> Membership::HoldersOf(const std::string& node,
                                          const std::string& device) const {
  const auto found = holders_.find({node, device});
  return found == holders_.end() ? std::vector<Holder>() : found->second;
}

const Holder* Membership::AnyHolderOn(const std::string& node) const {
  const auto first = holders_.lower_bound({node, ""});
  return first == holders_.end() || first->first.first != node ? nullptr : &first->second.front();
}

FreeDevice Membership::Offered(const std::string& name, const Node& node,
                               const DeviceRecord& device) {
  return {.place = {.node = name,
                    .device = device.name,
                    .emulated_speed = device.emulated_speed,
                    .kind = device.kind,
                    .uuid = device.uuid,
                    .incarnation = node.incarnation,
                    .model = device.model},
          .kind = device.kind,
          .traits = &node.traits};
}

std::vector<FreeDevice> Membership::Free() const {
  std::vector<FreeDevice> free;
  free.reserve(free_.size());
  for (const auto& [name, index] : free_) {
    const Node& node = nodes_.at(name);
    free.push_back(Offered(name, node, node.devices[index]));
  }
  return free;
}

std::optional<FreeDevice> Membership::Seat(const std::string& node,
                                           const std::string& device) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !IsOpen(found->second)) return std::nullopt;
  const auto at = std::ranges::find(found->second.devices, device, &DeviceRecord::name);
  if (at == found->second.devices.end() || !at->fault.empty()) return std::nullopt;
  return Offered(node, found->second, *at);
}

std::vector<WorkerId> Membership::SetStrays(const std::string& name,
                                            const std::set<WorkerId>& running) {
  std::set<WorkerId>& strays = nodes_[name].strays;
  std::vector<WorkerId> fresh;
  std::ranges::set_difference(running, strays, std::back_inserter(fresh));
  strays = running;
  Recount(name);
  return fresh;
}

bool Membership::IsStray(WorkerId worker) const {
  return std::ranges::any_of(with_strays_, [&](const std::string& name) {
    return nodes_.at(name).strays.contains(worker);
  });
}

void Membership::RemoveStray(WorkerId worker) {
  // A copy: Recount() takes names out of the set.
  const std::set<std::string> names = with_strays_;
  for (const std::string& name : names) {
    if (nodes_.at(name).strays.erase(worker) > 0) Recount(name);
  }
}

}  // namespace tactus::job
