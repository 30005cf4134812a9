// Who leads, how many steps each takes, and how pulls go: as the method's formulas have it.

#include "agent/engine/combine/leaders.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "agent/engine/combine/leader_exchange.h"
#include "base/rng.h"
#include "cuda/device.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
const std::vector<std::uint32_t> kTwoNodes = {0, 0, 1, 1};

std::vector<LeaderScore> ScoresOf(const std::vector<double>& losses) {
  std::vector<LeaderScore> scores;
  for (const double loss : losses) scores.push_back({.loss = loss, .steps = 10});
  return scores;
}

double Pulled(double x, double leader, double share) {
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  std::array<float, 1> parameters = {static_cast<float>(x)};
  std::array<float, 1> scratch = {};
  const std::array<float, 1> towards = {static_cast<float>(leader)};
  PullTowards(*device, towards, share, scratch, parameters);
  return parameters[0];
}

// f(x) = (x - 3)^2 / 2.
double LossAt(double x) { return 0.5 * (x - 3) * (x - 3); }

// Both pulls and the gradient at once, as the method is stated.
TEST(LeadersTest, TheStatedStepIsOfGradientAndBothLeadersAtOnce) {
  const std::vector<double> x = {0, 1, 5, 2};
  std::vector<double> losses;
  for (const double at : x) losses.push_back(LossAt(at));
  EXPECT_EQ(losses, (std::vector<double>{4.5, 2, 2, 0.5}));

  const Leaders leaders = FindLeaders(ScoresOf(losses), kTwoNodes, 1);

  ASSERT_EQ(leaders.of_group, 3u);
  EXPECT_EQ(leaders.of_nodes[0], 1u);
  EXPECT_EQ(leaders.of_nodes[2], 3u);
  const std::vector<double> expected = {0.8, 1.4, 3.9, 2.1};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double step = x[i] - 0.1 * (x[i] - 3) - 0.1 * (x[i] - x[*leaders.of_nodes[i]]) -
                        0.2 * (x[i] - x[*leaders.of_group]);
    EXPECT_NEAR(step, expected[i], 1e-12);
  }
}

TEST(LeadersTest, PullsFollowTheStepOneAfterTheOther) {
  std::vector<double> x = {0, 1, 5, 2};
  for (double& at : x) at -= 0.1 * (at - 3);
  std::vector<double> losses;
  for (const double at : x) losses.push_back(LossAt(at));
  const std::vector<double> expected_losses = {3.645, 1.62, 1.62, 0.405};
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(losses[i], expected_losses[i], 1e-12);

  const Leaders leaders = FindLeaders(ScoresOf(losses), kTwoNodes, 1);

  const std::vector<double> of_node = {0.39, 1.2, 4.53, 2.1};
  const std::vector<double> of_all = {0.732, 1.38, 4.044, 2.1};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double once = Pulled(x[i], x[*leaders.of_nodes[i]], 0.1);
    EXPECT_NEAR(once, of_node[i], 1e-6);
    EXPECT_NEAR(Pulled(once, x[*leaders.of_group], 0.2), of_all[i], 1e-6);
  }
}

TEST(LeadersTest, WhoseLossIsNoNumberNeverLeadsAndTheLowerRankWinsATie) {
  const Leaders leaders = FindLeaders(ScoresOf({kNan, 0.7, 0.7, kInfinite}), {{0, 0, 0, 0}}, 1);

  EXPECT_EQ(leaders.of_group, 1u);
}

TEST(LeadersTest, NobodyLeadsWithTooFewStepsOrWithWrongParameters) {
  std::vector<LeaderScore> scores = ScoresOf({1, 2, 3, 4});
  scores[0].sound = false;
  scores[1].steps = 4;
  EXPECT_EQ(FindLeaders(scores, kTwoNodes, 5).of_group, 2u);
  EXPECT_EQ(FindLeaders(scores, kTwoNodes, 5).of_nodes[0], std::nullopt);
  EXPECT_EQ(FindLeaders(scores, kTwoNodes, 11).of_group, std::nullopt);
}

// Four members of period four meet when they have taken 16 steps together, and again at 32.
TEST(LeadersTest, StepsAreCountedOverAllMembers) {
  const std::vector<bool> all(4, true);
  const auto sum = [](const std::vector<std::uint64_t>& steps) {
    return std::accumulate(steps.begin(), steps.end(), std::uint64_t{0});
  };
  const std::vector<std::uint64_t> first = StepsUntilPull({{0, 0, 0, 0}}, all, 4);
  EXPECT_EQ(first, (std::vector<std::uint64_t>{4, 4, 4, 4}));
  EXPECT_EQ(sum(first) + sum(StepsUntilPull(first, all, 4)), 32u);
  // One is eight times as slow.
  EXPECT_EQ(StepsUntilPull({{32, 32, 32, 4}}, all, 25),
            (std::vector<std::uint64_t>{32, 32, 32, 4}));
  EXPECT_EQ(sum(StepsUntilPull({{9, 7, 8, 1}}, all, 4)), 16u);
}

// (x^2 - 1)^2 / 4 has a maximum between its two minima, where a mean of both stays for ever.
TEST(LeadersTest, FollowersOfALeaderAreNotCaughtBetweenTwoMinima) {
  std::vector<double> led = {-0.9, 0.9};
  std::vector<double> averaged = led;
  const auto descend = [](double& x) { x -= 0.05 * x * (x * x - 1); };
  const auto loss = [](double x) { return 0.25 * (x * x - 1) * (x * x - 1); };
  for (int round = 0; round < 200; ++round) {
    for (double& x : led) descend(x);
    for (double& x : averaged) descend(x);
    const Leaders leaders = FindLeaders(ScoresOf({loss(led[0]), loss(led[1])}), {{0, 1}}, 1);
    const double leader = led[*leaders.of_group];
    for (double& x : led) x += 0.3 * (leader - x);
    const double mean = (averaged[0] + averaged[1]) / 2;
    for (double& x : averaged) x += 0.3 * (mean - x);
  }
  EXPECT_NEAR(led[0], -1, 1e-4);
  EXPECT_NEAR(led[1], -1, 1e-4);
  EXPECT_NEAR(averaged[1], 0, 1e-20);
}

TEST(LeadersTest, LossesOfTheLatestStepsAreTheirMeanAndNoZerosCount) {
  RecentLosses recent(10);
  for (const double loss : {2.0, 1.9, 1.8}) recent.Add(4 * loss, 4, true);
  EXPECT_NEAR(recent.Score().loss, 1.9, 1e-12) << "zeros for steps to come would make it 0.57";
  EXPECT_EQ(recent.Score().steps, 3u);
  recent.Add(kNan, 4, true);
  recent.Add(1, 4, false);
  EXPECT_EQ(recent.skipped(), 2u);
  EXPECT_NEAR(recent.Score().loss, 1.9, 1e-12);
  for (int i = 0; i < 10; ++i) recent.Add(1, 1, true);
  EXPECT_EQ(recent.skipped(), 0u);
  EXPECT_EQ(recent.Score().loss, 1);
  EXPECT_EQ(recent.Score().steps, 10u);
}

// What holds whatever the scores, nodes and paces are.
TEST(LeadersTest, InvariantsHoldForAThousandGroups) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng = Rng(seed).Fork("leaders");
    const std::size_t members = 1 + rng.Below(9);
    std::vector<LeaderScore> scores;
    std::vector<std::uint32_t> nodes;
    std::vector<std::uint64_t> before;
    std::vector<bool> takes_part;
    for (std::size_t i = 0; i < members; ++i) {
      const bool wrong = rng.Below(5) == 0;
      scores.push_back({.loss = wrong ? kNan : rng.Normal(),
                        .steps = static_cast<std::uint32_t>(rng.Below(12)),
                        .sound = rng.Below(6) != 0});
      nodes.push_back(static_cast<std::uint32_t>(rng.Below(3)));
      before.push_back(rng.Below(40));
      takes_part.push_back(i == 0 || rng.Below(4) != 0);
    }
    const Leaders leaders = FindLeaders(scores, nodes, 5);
    if (leaders.of_group) {
      const std::size_t leader = *leaders.of_group;
      EXPECT_TRUE(scores[leader].sound && scores[leader].steps >= 5);
      EXPECT_EQ(leaders.of_nodes[leader], leader) << "who leads all leads its node";
      for (std::size_t i = 0; i < members; ++i) {
        const bool may = scores[i].sound && scores[i].steps >= 5;
        EXPECT_FALSE(may && scores[i].loss < scores[leader].loss);
        EXPECT_EQ(nodes[leaders.of_nodes[i].value_or(i)], nodes[i]);
      }
      // Whatever the order of the ranks, the same member leads: no two losses are equal.
      std::vector<LeaderScore> turned(scores.rbegin(), scores.rend());
      const std::vector<std::uint32_t> turned_nodes(nodes.rbegin(), nodes.rend());
      EXPECT_EQ(FindLeaders(turned, turned_nodes, 5).of_group, members - 1 - leader);
    }
    const auto period = static_cast<std::uint32_t>(1 + rng.Below(30));
    const std::vector<std::uint64_t> steps = StepsUntilPull(before, takes_part, period);
    std::uint64_t sum = 0;
    std::uint64_t raised = 0;
    std::uint64_t parts = 0;
    for (std::size_t i = 0; i < members; ++i) {
      sum += steps[i];
      EXPECT_EQ(steps[i] > 0, takes_part[i]);
      if (!takes_part[i]) continue;
      ++parts;
      raised += steps[i] == 1 ? 1 : 0;
    }
    EXPECT_GE(sum, parts * period);
    EXPECT_LE(sum, parts * period + raised) << "but for who is raised to one step";
    // In the hull of where it was and where the leader is, and still where both are the same.
    const double x = rng.Normal();
    const double y = rng.Normal();
    const double share = 0.99 * rng.Uniform();
    const double pulled = Pulled(x, y, share);
    EXPECT_GE(pulled, std::min(x, y) - 1e-6);
    EXPECT_LE(pulled, std::max(x, y) + 1e-6);
    EXPECT_EQ(Pulled(x, x, share), static_cast<float>(x));
  }
}

}  // namespace
}  // namespace tactus::engine
