#include "agent/engine/combine/leaders.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace tactus::engine {

Leaders FindLeaders(std::span<const LeaderScore> scores, std::span<const std::uint32_t> nodes,
                    std::uint32_t least_steps) {
  TACTUS_CHECK(nodes.size() == scores.size());
  const auto may_lead = [&](std::size_t rank) {
    const LeaderScore& score = scores[rank];
    return score.sound && std::isfinite(score.loss) && score.steps >= least_steps;
  };
  const auto best_of = [&](const auto& counts) {
    std::optional<std::size_t> best;
    for (std::size_t rank = 0; rank < scores.size(); ++rank) {
      if (!counts(rank) || !may_lead(rank)) continue;
      if (!best || scores[rank].loss < scores[*best].loss) best = rank;
    }
    return best;
  };
  Leaders leaders{.of_group = best_of([](std::size_t) { return true; })};
  for (const std::uint32_t node : nodes) {
    leaders.of_nodes.push_back(best_of([&](std::size_t rank) { return nodes[rank] == node; }));
  }
  return leaders;
}

// By the largest remainders, so that the sum is exact but for those who are raised to one step.
std::vector<std::uint64_t> StepsUntilPull(std::span<const std::uint64_t> before,
                                          const std::vector<bool>& taking_part,
                                          std::uint32_t period) {
  TACTUS_CHECK(before.size() == taking_part.size());
  std::uint64_t taken = 0;
  std::uint64_t members = 0;
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    if (!taking_part[rank]) continue;
    taken += before[rank];
    ++members;
  }
  const std::uint64_t due = members * period;
  std::vector<std::uint64_t> steps(before.size());
  std::vector<std::size_t> ranks;
  std::vector<std::uint64_t> remainders(before.size());
  std::uint64_t given = 0;
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    if (!taking_part[rank]) continue;
    steps[rank] = taken > 0 ? due * before[rank] / taken : period;
    remainders[rank] = taken > 0 ? due * before[rank] % taken : 0;
    given += steps[rank];
    ranks.push_back(rank);
  }
  std::ranges::stable_sort(ranks, [&](std::size_t one, std::size_t other) {
    return remainders[one] > remainders[other];
  });
  for (const std::size_t rank : ranks) {
    if (given >= due) break;
    ++steps[rank];
    ++given;
  }
  for (const std::size_t rank : ranks) steps[rank] = std::max<std::uint64_t>(steps[rank], 1);
  return steps;
}

void RecentLosses::Add(double loss, std::uint64_t samples, bool taken) {
  if (!taken || !std::isfinite(loss)) {
    ++skipped_;
    return;
  }
  skipped_ = 0;
  steps_.push_back({.loss = loss, .samples = samples});
  if (steps_.size() > length_) steps_.pop_front();
}

LeaderScore RecentLosses::Score() const {
  double loss = 0;
  double samples = 0;
  for (const Step& step : steps_) {
    loss += step.loss;
    samples += static_cast<double>(step.samples);
  }
  return {.loss = samples > 0 ? loss / samples : 0,
          .steps = static_cast<std::uint32_t>(steps_.size())};
}

}  // namespace tactus::engine
