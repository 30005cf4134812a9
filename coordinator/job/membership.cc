#include "coordinator/job/membership.h"

#include <algorithm>
#include <cstddef>
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

}  // namespace

void Membership::Join(const std::string& name, std::vector<DeviceRecord> devices) {
  std::ranges::stable_sort(devices, {}, KeyOf);
  std::set<std::string> seen;
  std::erase_if(devices,
                [&seen](const DeviceRecord& device) { return !seen.insert(device.name).second; });
  Node& node = nodes_[name];
  node.connected = true;
  node.devices = std::move(devices);
}

void Membership::Lose(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.connected = false;
  found->second.strays.clear();
}

bool Membership::Connected(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found != nodes_.end() && found->second.connected;
}

void Membership::Hold(const MemberRecord& member, JobId job, const std::string& job_name) {
  const Place place{member.node, member.device};
  const bool device_was_free =
      holders_.insert({place, Holder{.worker = member.worker, .job = job, .job_name = job_name}})
          .second;
  TACTUS_CHECK(device_was_free);
  const bool worker_was_free = places_.insert({member.worker, place}).second;
  TACTUS_CHECK(worker_was_free);
}

void Membership::Release(WorkerId worker) {
  const auto found = places_.find(worker);
  if (found == places_.end()) return;
  holders_.erase(found->second);
  places_.erase(found);
}

const Holder* Membership::HolderOf(const std::string& node, const std::string& device) const {
  const auto found = holders_.find({node, device});
  return found == holders_.end() ? nullptr : &found->second;
}

std::vector<MemberRecord> Membership::Free(DeviceKind kind) const {
  if (kind == DeviceKind::kAny) kind = AnyCuda() ? DeviceKind::kCuda : DeviceKind::kCpu;
  std::vector<MemberRecord> free;
  for (const auto& [name, node] : nodes_) {
    if (!node.connected || !node.strays.empty()) continue;
    for (const DeviceRecord& device : node.devices) {
      if (device.kind != kind || HolderOf(name, device.name) != nullptr) continue;
      free.push_back(
          {.node = name, .device = device.name, .emulated_speed = device.emulated_speed});
    }
  }
  return free;
}

std::vector<WorkerId> Membership::SetStrays(const std::string& name,
                                            const std::set<WorkerId>& running) {
  std::set<WorkerId>& strays = nodes_[name].strays;
  std::vector<WorkerId> fresh;
  std::ranges::set_difference(running, strays, std::back_inserter(fresh));
  strays = running;
  return fresh;
}

bool Membership::IsStray(WorkerId worker) const {
  return std::ranges::any_of(
      nodes_, [worker](const auto& entry) { return entry.second.strays.contains(worker); });
}

void Membership::RemoveStray(WorkerId worker) {
  for (auto& [name, node] : nodes_) node.strays.erase(worker);
}

bool Membership::AnyCuda() const {
  return std::ranges::any_of(nodes_, [](const auto& entry) {
    return entry.second.connected &&
           std::ranges::any_of(entry.second.devices, [](const DeviceRecord& device) {
             return device.kind == DeviceKind::kCuda;
           });
  });
}

}  // namespace tactus::job
