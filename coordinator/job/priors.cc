#include "coordinator/job/priors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "policies/memory.h"

namespace tactus::job {

std::string PriorKey(const std::string& kind, const std::vector<MemberRecord>& members) {
  std::map<std::tuple<DeviceKind, std::string, double>, int> devices;
  for (const MemberRecord& member : members) {
    ++devices[{member.kind, member.model, member.emulated_speed}];
  }
  policies::MemoryWriter writer;
  for (const auto& [device, count] : devices) {
    const auto& [device_kind, model, emulated_speed] = device;
    writer.Write(device_kind);
    writer.Write(model);
    writer.Write(emulated_speed);
    writer.Write(count);
  }
  policies::TextSum sum;
  sum.Add(writer.Finish());
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), sum.value(), 16).ptr;
  return kind + "-" + std::string(digits.data(), end);
}

std::string PassBoundKey(const std::string& kind, const MemberRecord& member) {
  return "pass-" + PriorKey(kind, {member});
}

std::string BytesOfPassBound(std::uint32_t samples) { return std::to_string(samples); }

std::uint32_t PassBoundOf(const std::string& bytes) {
  std::uint32_t samples = 0;
  const char* const end = bytes.data() + bytes.size();
  const auto read = std::from_chars(bytes.data(), end, samples);
  return read.ec == std::errc() && read.ptr == end ? samples : 0;
}

void Priors::Restore(PriorRecord record) {
  newest_ = std::max(newest_, record.number);
  std::string key = record.key;
  records_.insert_or_assign(std::move(key), std::move(record));
}

std::string Priors::Find(const std::string& key) const {
  const auto found = records_.find(key);
  return found == records_.end() ? "" : found->second.prior;
}

void Priors::Put(const std::string& key, std::string prior, Actions& actions) {
  PriorRecord& record = records_[key];
  record = {.key = key, .number = ++newest_, .prior = std::move(prior)};
  actions.push_back(PersistPrior{record});
  while (records_.size() > kPriorsMax) {
    const auto oldest = std::ranges::min_element(
        records_, {}, [](const auto& entry) { return entry.second.number; });
    actions.push_back(PersistPrior{{.key = oldest->first}});
    records_.erase(oldest);
  }
}

void Priors::Drop(const std::string& key, Actions& actions) {
  if (records_.erase(key) > 0) actions.push_back(PersistPrior{{.key = key}});
}

std::uint32_t Priors::PassSamplesMax(const std::string& kind, const MemberRecord& member) const {
  return kind.empty() ? 0 : PassBoundOf(Find(PassBoundKey(kind, member)));
}

void Priors::BoundPasses(const std::string& kind, const MemberRecord& member, std::uint32_t samples,
                         Actions& actions) {
  if (samples == 0 || kind.empty()) return;
  const std::uint32_t known = PassSamplesMax(kind, member);
  if (known != 0 && known <= samples) return;
  Put(PassBoundKey(kind, member), BytesOfPassBound(samples), actions);
}

}  // namespace tactus::job
