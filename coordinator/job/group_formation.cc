#include "coordinator/job/group_formation.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "coordinator/job/mesh_places.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

// The lowest rank whose value is the most frequent one. values [members], not empty.
std::size_t RankOfMost(const std::vector<std::uint64_t>& values) {
  return static_cast<std::size_t>(
      // The first maximum: on a tie the lowest rank.
      std::ranges::max_element(
          values, {},
          [&values](std::uint64_t value) { return std::ranges::count(values, value); }) -
      values.begin());
}

// The first rank that differs from most; nothing: none does.
std::optional<Mismatch> OddOneOf(const std::vector<std::uint64_t>& values) {
  const std::size_t reference = RankOfMost(values);
  const auto odd =
      std::ranges::find_if(values, [&](std::uint64_t value) { return value != values[reference]; });
  if (odd == values.end()) return std::nullopt;
  return Mismatch{.rank = static_cast<std::uint32_t>(odd - values.begin()),
                  .reference = static_cast<std::uint32_t>(reference),
                  .found = *odd,
                  .expected = values[reference]};
}

template <typename T>
bool AllSet(const std::vector<std::optional<T>>& items) {
  return std::ranges::all_of(items, [](const auto& item) { return item.has_value(); });
}

template <typename T>
std::vector<std::uint32_t> Unset(const std::vector<std::optional<T>>& items) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < items.size(); ++rank) {
    if (!items[rank]) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

std::uint64_t ProgramHash(const ReadyMessage& ready) {
  return ready.program ? ready.program->hash : 0;
}

std::string WordsOf(const Mismatch& mismatch, const std::vector<MemberRecord>& members) {
  if (!mismatch.is_count) {
    return WorkerName(members[mismatch.rank]) + " has other " + mismatch.noun + " than " +
           WorkerName(members[mismatch.reference]);
  }
  return WorkerName(members[mismatch.rank]) + " has " + std::to_string(mismatch.found) + " " +
         mismatch.noun + ", " + WorkerName(members[mismatch.reference]) + " has " +
         std::to_string(mismatch.expected);
}

std::vector<std::uint32_t> NodesOf(const std::vector<MemberRecord>& members) {
  std::vector<std::string> seen;
  std::vector<std::uint32_t> nodes;
  for (const MemberRecord& member : members) {
    const auto found = std::ranges::find(seen, member.node);
    nodes.push_back(static_cast<std::uint32_t>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(member.node);
  }
  return nodes;
}

bool GroupFormation::SetReady(std::uint32_t rank, const ReadyMessage& ready) {
  if (phase_ != Phase::kLoading || ready_[rank]) return false;
  ready_[rank] = ready;
  return AllSet(ready_);
}

std::optional<Mismatch> GroupFormation::FindMismatch(bool of_meshes) const {
  const auto values_of = [this](const auto& of) {
    std::vector<std::uint64_t> values;
    for (const auto& ready : ready_) values.push_back(ready ? of(*ready) : 0);
    return values;
  };
  for (const LoadedCount& count : kLoadedCounts) {
    if (std::optional<Mismatch> odd =
            OddOneOf(values_of([&](const ReadyMessage& ready) { return ready.*count.value; }))) {
      odd->noun = count.noun;
      odd->field = ready_.front()->program ? "program" : count.field;
      return odd;
    }
  }
  std::optional<Mismatch> odd = OddOneOf(values_of(ProgramHash));
  if (odd) {
    odd->noun = "parameters, or another optimizer, seed, batch size, clipping or end,";
    odd->field = "program";
  } else if (of_meshes) {
    odd = OddOneOf(values_of([](const ReadyMessage& ready) { return ready.mesh_version; }));
    if (!odd) return std::nullopt;
    odd->noun = "rules of splitting a model, from another version of Tactus,";
    odd->field = kMeshField;
  }
  if (odd) odd->is_count = false;
  return odd;
}

void GroupFormation::Begin(std::uint64_t generation) {
  TACTUS_CHECK(phase_ == Phase::kLoading && AllSet(ready_));
  phase_ = Phase::kMeeting;
  generation_ = generation;
}

bool GroupFormation::SetEndpoint(std::uint32_t rank, const EndpointMessage& endpoint) {
  if (phase_ != Phase::kMeeting || endpoint.generation != generation_ || endpoints_[rank]) {
    return false;
  }
  endpoints_[rank] = endpoint.endpoint;
  if (!AllSet(endpoints_)) return false;
  phase_ = Phase::kFormed;
  return true;
}

std::vector<std::string> GroupFormation::endpoints() const {
  TACTUS_CHECK(phase_ == Phase::kFormed);
  std::vector<std::string> endpoints;
  for (const auto& endpoint : endpoints_) endpoints.push_back(*endpoint);
  return endpoints;
}

std::vector<std::uint32_t> GroupFormation::Missing() const {
  return phase_ == Phase::kLoading ? Unset(ready_) : Unset(endpoints_);
}

std::string GroupFormation::Obstacle(const std::vector<MemberRecord>& members) const {
  std::vector<MemberRecord> missing;
  for (const std::uint32_t rank : Missing()) missing.push_back(members[rank]);
  switch (phase_) {
    case Phase::kLoading:
      return WorkerNames(missing) + " still loading model and data";
    case Phase::kMeeting:
      return WorkerNames(missing) + " gave no address to the group";
    case Phase::kFormed:
      return "the group of " + WorkerCount(members.size()) + " finished no round";
  }
  TACTUS_CHECK(false);
}

const ReadyMessage& GroupFormation::loaded() const {
  TACTUS_CHECK(phase_ != Phase::kLoading);
  return *ready_.front();
}

std::vector<policies::Encoding> GroupFormation::encodings() const {
  const auto all_know = [this](std::string_view name) {
    return std::ranges::all_of(ready_, [name](const std::optional<ReadyMessage>& ready) {
      return std::ranges::find(ready->encodings, name) != ready->encodings.end();
    });
  };
  std::vector<policies::Encoding> encodings;
  for (std::size_t i = 1; i < policies::kEncodingNames.size(); ++i) {
    const auto encoding = static_cast<policies::Encoding>(i);
    if (all_know(NameOf(encoding))) encodings.push_back(encoding);
  }
  return encodings;
}

std::vector<double> GroupFormation::speeds() const {
  std::vector<double> speeds;
  for (const std::optional<ReadyMessage>& ready : ready_) {
    speeds.push_back(ready->samples_per_second);
  }
  return speeds;
}

std::vector<std::string> GroupFormation::nccl_versions() const {
  std::vector<std::string> versions;
  for (const std::optional<ReadyMessage>& ready : ready_) versions.push_back(ready->nccl_version);
  return versions;
}

}  // namespace tactus::job
