// Members that mix their parameters with their neighbours': by which graph, and who is where on it.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/axis_policy.h"
#include "policies/mixing.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// The graph is the one that the job's file asks for, or by the group's size: a ring of few, and
// from kExponentialFrom members on the exponential one, on which news is soon everywhere. One that
// does not take so many, or with which momentum would make what members differ by grow
// (WorstGrowth), gives way to that. A group of one member runs every step.
//
// Who are neighbours follows from measured links. In an exchange that all have come to, the ends of
// a slow link are longer at it than the others. Where a pair's is kSlow times as long as is usual,
// and worth mentioning beside the round, the two are put where they are no neighbours. A member
// that is slow with every neighbour is slow by itself, and stays where it is.
//
// Source: [decentlam] for mixing; design: links.
class NeighbourSynchronization final : public AxisPolicy {
 public:
  static constexpr std::uint32_t kExponentialFrom = 8;
  static constexpr std::size_t kRounds = 12;  // of which an exchange is the median
  // What is usual is what a quarter of the members are below: both ends of two links are half of
  // eight.
  static constexpr double kUsual = 0.25;
  static constexpr double kSlow = 3;
  static constexpr double kShareOfRound = 0.1;
  static constexpr std::size_t kMoves = 2;  // away from so many neighbours at most

  explicit NeighbourSynchronization(const PlannerOptions& job)
      : options_(job.synchronization), momentum_(job.momentum) {}

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  void Observe(const Report& report) override;
  std::optional<Proposal> Decide(const Situation& situation) override;

 private:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // the lower rank first

  struct Link {
    Pair pair{};
    double seconds = 0;
    double usual = 0;
  };
  std::string WhyNot(Topology graph, std::uint32_t members) const;
  std::optional<Link> SlowestLink(const Plan& plan) const;
  std::optional<std::vector<std::uint32_t>> CircleWithout(const Plan& plan, const Pair& pair) const;
  bool MayMove(const Pair& pair) const;
  void ForgetRounds();

  const SynchronizationOptions options_;
  const double momentum_;
  std::uint64_t version_ = 0;                  // of the plan that these rounds ran under
  std::vector<std::deque<double>> exchanges_;  // [s] by rank, the latest rounds
  std::deque<double> rounds_;                  // [s] likewise, of any member
  std::set<Pair> apart_;                       // are not to be neighbours
  std::set<Pair> settled_;                     // are, slow as they may be
};

}  // namespace tactus::policies
