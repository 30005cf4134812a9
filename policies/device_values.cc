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

// D of a group of so many members. REQUIRES: not 1 that grows.
double TransferOf(const MeasuredGroup& group, std::size_t members) {
  const std::size_t now = group.speeds.size();
  if (members == 1) return 0;
  return group.transfer_seconds * ExchangedShare(members) / ExchangedShare(now);
}

// Of the same total in the best shares over members of these speeds. [useful samples/s]
double BestRate(const MeasuredGroup& group, const std::vector<double>& speeds) {
  const std::vector<std::uint32_t>& sizes = group.plan.batch_sizes;
  Plan plan = group.plan;
  plan.batch_sizes = ProportionalShares(
      speeds, std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0}), group.batch);
  return UsefulRate(Forecast(plan, speeds, TransferOf(group, speeds.size())), group.worth);
}

}  // namespace

DeviceValues ValueDevices(const MeasuredGroup& group) {
  const std::vector<double>& speeds = group.speeds;
  TACTUS_CHECK(!speeds.empty() && speeds.size() == group.plan.batch_sizes.size());
  DeviceValues values{
      .useful = UsefulRate(Forecast(group.plan, speeds, group.transfer_seconds), group.worth),
      .transfer_seconds = group.transfer_seconds};
  const auto count = static_cast<std::uint32_t>(speeds.size());
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    std::vector<double> others = speeds;
    others.erase(others.begin() + rank);
    const double without = others.empty() ? 0 : BestRate(group, others);
    values.devices.push_back(
        {.rank = rank, .speed = speeds[rank], .adds = values.useful - without});
  }
  if (count == 1) return values;
  values.transfer_seconds_less = TransferOf(group, count - 1);
  values.transfer_seconds_more = TransferOf(group, count + 1);
  std::vector<std::uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0u);
  std::ranges::stable_sort(ranks, std::ranges::greater(),
                           [&](std::uint32_t rank) { return speeds[rank]; });
  for (const std::uint32_t rank : {ranks.front(), ranks[count / 2], ranks.back()}) {
    std::vector<double> more = speeds;
    more.push_back(speeds[rank]);
    values.more.push_back(
        {.rank = rank, .speed = speeds[rank], .adds = BestRate(group, more) - values.useful});
  }
  return values;
}

}  // namespace tactus::policies
