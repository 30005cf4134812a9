#include "policies/device_values.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "policies/proportional_shares.h"
#include "policies/round_forecast.h"

namespace tactus::policies {
namespace {

// Of what a member sends and receives, the share of the parameters over 2.
double ExchangedShare(std::size_t members) {
  return static_cast<double>(members - 1) / static_cast<double>(members);
}

std::size_t ReplicasOf(const MeasuredGroup& group, std::size_t members) {
  return members / group.batch.replica_members;
}

// D of a group of so many replicas. REQUIRES: not 1 that grows.
double TransferOf(const MeasuredGroup& group, std::size_t replicas) {
  const std::size_t now = ReplicasOf(group, group.speeds.size());
  if (replicas == 1) return 0;
  return group.transfer_seconds * ExchangedShare(replicas) / ExchangedShare(now);
}

// Of the same total in the best shares over members of these speeds. [useful samples/s]
double BestRate(const MeasuredGroup& group, const std::vector<double>& speeds) {
  const std::vector<std::uint32_t>& sizes = group.plan.batch_sizes;
  Plan plan = group.plan;
  plan.batch_sizes = ProportionalShares(
      speeds, std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), group.batch);
  const double transfer = TransferOf(group, ReplicasOf(group, speeds.size()));
  return UsefulRate(Forecast(plan, speeds, transfer), group.worth);
}

}  // namespace

DeviceValues ValueDevices(const MeasuredGroup& group) {
  const std::vector<double>& speeds = group.speeds;
  TACTUS_CHECK(!speeds.empty() && speeds.size() == group.plan.batch_sizes.size());
  DeviceValues values{
      .useful = UsefulRate(Forecast(group.plan, speeds, group.transfer_seconds), group.worth),
      .transfer_seconds = group.transfer_seconds};
  const auto count = static_cast<std::uint32_t>(speeds.size());
  const std::uint32_t members = group.batch.replica_members;
  TACTUS_CHECK(count % members == 0);
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    std::vector<double> others = speeds;
    const auto first = others.begin() + rank / members * members;
    others.erase(first, first + members);
    const double without = others.empty() ? 0 : BestRate(group, others);
    values.devices.push_back(
        {.rank = rank, .speed = speeds[rank], .adds = values.useful - without});
  }
  const std::size_t replicas = ReplicasOf(group, count);
  if (replicas == 1) return values;
  values.transfer_seconds_less = TransferOf(group, replicas - 1);
  values.transfer_seconds_more = TransferOf(group, replicas + 1);
  std::vector<std::uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0u);
  std::ranges::stable_sort(ranks, std::ranges::greater(),
                           [&](std::uint32_t rank) { return speeds[rank]; });
  for (const std::uint32_t rank : {ranks.front(), ranks[count / 2], ranks.back()}) {
    std::vector<double> more = speeds;
    more.insert(more.end(), members, speeds[rank]);
    values.more.push_back(
        {.rank = rank, .speed = speeds[rank], .adds = BestRate(group, more) - values.useful});
  }
  return values;
}

}  // namespace tactus::policies
