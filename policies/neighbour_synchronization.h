// Members that mix their parameters with their neighbours': by which graph, and who is where on it.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/circle.h"
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
// that is slow with every neighbour is slow by itself, and stays where it is. What was found out of
// pairs is remembered: a planner that takes over moves nobody who was moved in vain.
//
// Source: [decentlam] for mixing; design: links.
class NeighbourSynchronization final : public RememberingPolicy<NeighbourSynchronization> {
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

  friend void Fields(auto& archive, Of<NeighbourSynchronization> auto& policy) {
    archive("version", policy.version_);
    archive("exchanges", policy.exchanges_);
    archive("rounds", policy.rounds_);
    archive("apart", policy.apart_);
    archive("settled", policy.settled_);
  }
  friend bool Sound(const NeighbourSynchronization& policy) { return policy.RoundsAreSound(); }

 private:
  struct Link {
    MemberPair pair{};
    double seconds = 0;
    double usual = 0;
  };
  std::string WhyNot(Topology graph, std::uint32_t members) const;
  std::optional<Link> SlowestLink(const Plan& plan) const;
  bool MayMove(const MemberPair& pair) const;
  bool RoundsAreSound() const;
  void ForgetRounds();

  const SynchronizationOptions options_;
  const double momentum_;
  std::uint64_t version_ = 0;                  // of the plan that these rounds ran under
  std::vector<std::deque<double>> exchanges_;  // [s] by rank, the latest rounds
  std::deque<double> rounds_;                  // [s] likewise, of any member
  std::vector<MemberPair> apart_;              // are not to be neighbours
  std::vector<MemberPair> settled_;            // are, slow as they may be
};

}  // namespace tactus::policies
