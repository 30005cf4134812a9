#include "policies/neighbour_synchronization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policies/planner.h"

namespace tactus::policies {
namespace {

PlannerOptions Job(const std::string& graph = "auto", double momentum = 0.9) {
  PlannerOptions options{.batch_policy = "fixed"};
  options.synchronization.policy = "decentlam";
  options.synchronization.graph = graph;
  options.momentum = momentum;
  return options;
}

// What the planner begins with.
Revision Begun(const PlannerOptions& options, std::uint32_t members) {
  return Planner(options).Start({.members = members});
}

std::string ReasonOf(const Revision& revision) {
  const auto found = std::ranges::find(revision.decisions, Axis::kSynchronization, &Decision::axis);
  return found->reason;
}

TEST(NeighbourSynchronizationTest, FewAreOnARingAndManyOnAnExponentialGraph) {
  EXPECT_EQ(Begun(Job(), 1).plan.synchronization, Synchronization::kEveryStep);
  EXPECT_EQ(Begun(Job(), 2).plan.graph, Topology::kRing);
  EXPECT_EQ(Begun(Job(), 7).plan.graph, Topology::kRing);
  EXPECT_EQ(Begun(Job(), 8).plan.graph, Topology::kExponential);
  EXPECT_EQ(Begun(Job("complete"), 8).plan.graph, Topology::kComplete);
  EXPECT_EQ(ReasonOf(Begun(Job(), 8)),
            "decentlam exponential: for 8 members; with momentum 0.90 a step multiplies "
            "differences between members by 0.95 at most");
}

// A job may come to have a size that its check has not seen.
TEST(NeighbourSynchronizationTest, AGraphThatIsNotStableGivesWayWithTheFigure) {
  const Revision begun = Begun(Job("one_peer_exponential"), 16);

  EXPECT_EQ(begun.plan.graph, Topology::kExponential);
  EXPECT_NE(ReasonOf(begun).find("one_peer_exponential with momentum 0.90 would multiply "
                                 "differences between 16 members by 1.20 a step"),
            std::string::npos)
      << ReasonOf(begun);
  EXPECT_EQ(Begun(Job("one_peer_exponential", 0.4), 16).plan.graph, Topology::kOnePeerExponential);
  EXPECT_EQ(Begun(Job("one_peer_hypercube", 0.4), 16).plan.graph, Topology::kOnePeerHypercube);
  EXPECT_EQ(Begun(Job("one_peer_hypercube", 0.4), 12).plan.graph, Topology::kExponential);
  PlannerOptions biased = Job("one_peer_exponential");
  biased.synchronization.correct_bias = false;
  EXPECT_EQ(Begun(biased, 16).plan.graph, Topology::kOnePeerExponential);
}

// A group whose exchanges take as long as its slowest neighbours': of links between two hosts, of
// which some are slow.
class Group {
 public:
  Group(const PlannerOptions& options, std::uint32_t members) : options_(options) {
    plan_ = planner_.emplace(options_).Start({.members = members}).plan;
    plan_.version = 1;
  }

  // Another coordinator goes on with what this one remembered.
  void RestartPlanner() {
    const std::string memory = planner_->Memory();
    const auto members = static_cast<std::uint32_t>(plan_.batch_sizes.size());
    ASSERT_EQ(planner_.emplace(options_).Recall(memory, members), "");
    planner_->Resume(plan_, {});
    EXPECT_EQ(planner_->Memory(), memory);
  }

  void Slow(std::uint32_t one, std::uint32_t other) { slow_.insert(std::minmax(one, other)); }

  // Rounds under the plan in force; the reasons of plans that followed.
  std::vector<std::string> Run(int rounds) {
    std::vector<std::string> reasons;
    for (int i = 0; i < rounds; ++i, ++round_) {
      for (std::uint32_t rank = 0; rank < plan_.batch_sizes.size(); ++rank) {
        planner_->Observe({.round = round_,
                           .plan_version = plan_.version,
                           .rank = rank,
                           .samples = 32,
                           .loss_sum = 32,
                           .steps = 1,
                           .compute_seconds = 0.1,
                           .blocked_seconds = Longest(),
                           .transfer_seconds = Longest(),
                           .round_seconds = 0.1 + Longest(),
                           .exchange_seconds = ExchangeOf(rank),
                           .samples_global = 32 * plan_.batch_sizes.size(),
                           .loss_mean_global = 1,
                           .learning_rate = 0.1});
      }
      const std::optional<Revision> revision = planner_->Decide(plan_, std::nullopt);
      if (!revision) continue;
      plan_ = revision->plan;
      reasons.push_back(plan_.reason);
    }
    return reasons;
  }

  double ExchangeOf(std::uint32_t rank) const {
    const MixingGraph graph =
        Placed(GraphOf(*plan_.graph, static_cast<std::uint32_t>(plan_.batch_sizes.size()), round_),
               plan_.circle);
    double longest = 0.01;
    for (const Neighbour& other : graph[rank]) {
      if (slow_.contains(std::minmax(rank, other.rank))) longest = 0.1;
    }
    return longest;
  }
  double Longest() const {
    double longest = 0;
    for (std::uint32_t rank = 0; rank < plan_.batch_sizes.size(); ++rank) {
      longest = std::max(longest, ExchangeOf(rank));
    }
    return longest;
  }
  const Plan& plan() const { return plan_; }

 private:
  const PlannerOptions options_;
  std::optional<Planner> planner_;
  Plan plan_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> slow_;
  std::uint64_t round_ = 0;
};

TEST(NeighbourSynchronizationTest, TheEndsOfASlowLinkAreNoNeighboursAnyMore) {
  Group of_four(Job(), 4);
  of_four.Slow(0, 3);
  EXPECT_EQ(of_four.Run(100).size(), 1u);
  EXPECT_EQ(of_four.Longest(), 0.01);
  Group group(Job(), 6);
  group.Slow(2, 3);
  EXPECT_EQ(group.Longest(), 0.1);

  const std::vector<std::string> reasons = group.Run(100);

  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0],
            "workers 2 and 3 are no neighbours any more: they exchange in 0.10 s what others do "
            "in 0.0100 s");
  EXPECT_EQ(group.Longest(), 0.01);
  EXPECT_TRUE(Fits(group.plan(), 6));
}

TEST(NeighbourSynchronizationTest, SlowLinksAreLeftOutOneAfterTheOther) {
  Group group(Job(), 7);
  group.Slow(0, 1);
  group.Slow(3, 4);
  group.Slow(2, 5);

  const std::vector<std::string> reasons = group.Run(300);

  EXPECT_LE(reasons.size(), 4u);
  EXPECT_EQ(group.Longest(), 0.01);
}

// Its neighbours change twice at most, for nothing.
TEST(NeighbourSynchronizationTest, AMemberThatIsSlowWithAllStaysWhereItIs) {
  Group group(Job(), 6);
  for (std::uint32_t other = 0; other < 6; ++other) {
    if (other != 3) group.Slow(3, other);
  }

  EXPECT_LE(group.Run(500).size(), NeighbourSynchronization::kMoves);
}

// What it is told of pairs, and of the latest rounds, outlives the coordinator.
TEST(NeighbourSynchronizationTest, APlannerThatIsRestartedMovesWhomOneThatLivesMoves) {
  const auto with_slow_links = [] {
    Group group(Job(), 7);
    group.Slow(0, 1);
    group.Slow(3, 4);
    group.Slow(2, 5);
    return group;
  };
  Group lives = with_slow_links();
  const std::vector<std::string> reasons = lives.Run(300);
  ASSERT_FALSE(reasons.empty());

  for (const int every : {1, 5, 50}) {
    Group restarted = with_slow_links();
    std::vector<std::string> found;
    for (int round = 0; round < 300; round += every) {
      for (std::string& reason : restarted.Run(every)) found.push_back(std::move(reason));
      restarted.RestartPlanner();
    }
    EXPECT_EQ(found, reasons) << every;
    EXPECT_EQ(restarted.plan(), lives.plan()) << every;
  }
}

TEST(NeighbourSynchronizationTest, WhoWasMovedInVainIsNotMovedAgainAfterARestart) {
  Group group(Job(), 6);
  for (std::uint32_t other = 0; other < 6; ++other) {
    if (other != 3) group.Slow(3, other);
  }
  std::size_t moves = 0;

  for (int i = 0; i < 10; ++i) {
    moves += group.Run(50).size();
    group.RestartPlanner();
  }

  EXPECT_LE(moves, NeighbourSynchronization::kMoves);
}

TEST(NeighbourSynchronizationTest, WhereAllAreNeighboursNobodyMoves) {
  Group of_three(Job(), 3);
  of_three.Slow(0, 1);
  EXPECT_TRUE(of_three.Run(100).empty());
  Group complete(Job("complete"), 6);
  complete.Slow(0, 1);
  EXPECT_TRUE(complete.Run(100).empty());
}

TEST(NeighbourSynchronizationTest, LinksThatAreAlikeAndShortLeaveThePlanAlone) {
  Group group(Job(), 8);
  EXPECT_TRUE(group.Run(100).empty());
}

TEST(PlanTest, AGraphFitsItsMembers) {
  Plan plan{.synchronization = Synchronization::kDecentlam,
            .batch_sizes = {1, 1, 1},
            .graph = Topology::kRing};
  EXPECT_TRUE(Fits(plan, 3));
  plan.circle = {2, 0, 1};
  EXPECT_TRUE(Fits(plan, 3));
  plan.circle = {2, 0, 2};
  EXPECT_FALSE(Fits(plan, 3));
  plan.circle = {0, 1, 2, 3};
  EXPECT_FALSE(Fits(plan, 3));
  plan.circle.clear();
  plan.graph = Topology::kOnePeerHypercube;
  EXPECT_FALSE(Fits(plan, 3));
  plan.graph.reset();
  EXPECT_FALSE(Fits(plan, 3));
  plan.graph = Topology::kRing;
  plan.synchronization = Synchronization::kEveryStep;
  EXPECT_FALSE(Fits(plan, 3));
}

}  // namespace
}  // namespace tactus::policies
