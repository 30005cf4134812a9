// Graphs of neighbours, and whether DecentLaM's momentum is stable by them.

#include "policies/mixing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace tactus::policies {
namespace {

constexpr std::array kAll = {Topology::kRing,
                             Topology::kExponential,
                             Topology::kDirectedExponential,
                             Topology::kOnePeerExponential,
                             Topology::kOnePeerHypercube,
                             Topology::kComplete};

std::vector<double> Mixed(const MixingGraph& graph, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (const Neighbour& each : graph[i]) y[i] += each.weight * x[each.rank];
  }
  return y;
}

// All of them, of one to 128 members.
TEST(MixingTest, RowsAndColumnsSumToOneInEveryGraph) {
  for (const Topology topology : kAll) {
    for (std::uint32_t members = 1; members <= 128; ++members) {
      if (!Takes(topology, members)) continue;
      for (std::uint32_t phase = 0; phase < PhasesOf(topology, members); ++phase) {
        const MixingGraph graph = GraphOf(topology, members, phase);
        std::vector<double> columns(members);
        for (std::uint32_t i = 0; i < members; ++i) {
          double row = 0;
          std::set<std::uint32_t> seen;
          EXPECT_EQ(graph[i].front().rank, i);
          for (const Neighbour& each : graph[i]) {
            row += each.weight;
            columns[each.rank] += each.weight;
            EXPECT_TRUE(seen.insert(each.rank).second);
            EXPECT_GT(each.weight, 0);
          }
          EXPECT_NEAR(row, 1, 1e-12);
        }
        for (const double column : columns) EXPECT_NEAR(column, 1, 1e-12);
      }
    }
  }
}

TEST(MixingTest, RingsAndSymmetricGraphsAreSymmetric) {
  for (const Topology topology : {Topology::kRing, Topology::kExponential,
                                  Topology::kOnePeerHypercube, Topology::kComplete}) {
    for (const std::uint32_t members : {2u, 4u, 8u, 16u}) {
      const MixingGraph graph = GraphOf(topology, members, 0);
      for (std::uint32_t i = 0; i < members; ++i) {
        for (const Neighbour& each : graph[i]) {
          const auto& back = graph[each.rank];
          EXPECT_NE(std::ranges::find(back, Neighbour{.rank = i, .weight = each.weight}),
                    back.end());
        }
      }
    }
  }
}

// Two to the power of steps members have the mean after so many steps; six have not.
TEST(MixingTest, OnePeerGraphsAverageExactlyWhereMembersAreAPowerOfTwo) {
  std::vector<double> x = {0, 1, 2, 3, 4, 5, 6, 15};
  for (std::uint64_t step = 0; step < 3; ++step) {
    x = Mixed(GraphOf(Topology::kOnePeerExponential, 8, step), x);
  }
  for (const double value : x) EXPECT_NEAR(value, 4.5, 1e-12);
  std::vector<double> six = {0, 1, 2, 3, 4, 15};
  for (std::uint64_t step = 0; step < 3; ++step) {
    six = Mixed(GraphOf(Topology::kOnePeerExponential, 6, step), six);
  }
  EXPECT_GT(std::abs(six[0] - 25.0 / 6), 0.1);
}

TEST(MixingTest, GrowthIsThatOfTheRecursion) {
  EXPECT_NEAR(GrowthOf(Topology::kDirectedExponential, 8, 0.9, 0.01), 1.2342, 1e-4);
  EXPECT_NEAR(GrowthOf(Topology::kDirectedExponential, 8, 0.5, 0.01), 0.9826, 1e-4);
  EXPECT_NEAR(GrowthOf(Topology::kExponential, 8, 0.9, 0.01), 0.9487, 1e-4);
  const std::vector<std::pair<std::uint32_t, double>> one_peer = {
      {4, 1.078}, {8, 1.112}, {16, 1.194}, {32, 1.225}};
  for (const auto& [members, growth] : one_peer) {
    EXPECT_NEAR(GrowthOf(Topology::kOnePeerExponential, members, 0.9, 0.01), growth, 1e-3);
  }
  for (const std::uint32_t members : {4u, 8u, 16u}) {
    // 0.98 is how the mean of all goes, which no graph changes.
    EXPECT_LT(GrowthOf(Topology::kOnePeerExponential, members, 0.5, 0.01), 0.98);
  }
  const std::vector<std::pair<std::uint32_t, double>> cube = {{4, 0.949}, {8, 1.052}, {16, 1.217}};
  for (const auto& [members, growth] : cube) {
    EXPECT_NEAR(GrowthOf(Topology::kOnePeerHypercube, members, 0.9, 0.01), growth, 1e-3);
  }
}

double StableAt(Topology topology, std::uint32_t members, double gamma_h) {
  double largest = 0;
  for (double momentum = 0; momentum < 1; momentum += 0.001) {
    if (GrowthOf(topology, members, momentum, gamma_h) < 1) largest = momentum;
  }
  return largest;
}

TEST(MixingTest, TheLargestStableMomentumIsThatOfTheGraph) {
  const std::vector<std::pair<std::uint32_t, double>> directed = {
      {4, 0.64}, {8, 0.52}, {16, 0.50}, {32, 0.51}, {64, 0.53}};
  for (const auto& [members, momentum] : directed) {
    EXPECT_NEAR(StableAt(Topology::kDirectedExponential, members, 1e-6), momentum, 0.01);
  }
  EXPECT_NEAR(StableAt(Topology::kDirectedExponential, 75, 1e-6), 0.39, 0.01);
  const std::vector<std::pair<std::uint32_t, double>> one_peer = {
      {4, 0.77}, {8, 0.71}, {16, 0.56}, {32, 0.52}, {64, 0.507}, {128, 0.503}};
  for (const auto& [members, momentum] : one_peer) {
    EXPECT_NEAR(StableAt(Topology::kOnePeerExponential, members, 1e-3), momentum, 0.01);
  }
}

TEST(MixingTest, WhatIsSymmetricAndStaysIsStableForEveryMomentum) {
  for (const Topology topology : {Topology::kRing, Topology::kExponential}) {
    for (std::uint32_t members = 1; members <= 64; ++members) {
      for (const double momentum : {0.0, 0.5, 0.9, 0.99}) {
        EXPECT_TRUE(IsStable(topology, members, momentum)) << members << " " << momentum;
      }
    }
  }
  EXPECT_FALSE(IsStable(Topology::kDirectedExponential, 8, 0.9));
  EXPECT_FALSE(IsStable(Topology::kOnePeerExponential, 8, 0.9));
  EXPECT_GE(LargestMomentum(Topology::kDirectedExponential, 2, 64), 0.35);
  EXPECT_GE(LargestMomentum(Topology::kOnePeerExponential, 2, 64), 0.45);
}

// ---- The recursion on f_i = (x - c_i)^2 / 2, in double: what the engine does in float.

struct Node {
  double x = 0;
  double p = 0;
};

void DecentLam(const MixingGraph& graph, const std::vector<double>& c, double rate, double ratio,
               double momentum, std::vector<Node>& nodes) {
  std::vector<double> z;
  for (std::size_t i = 0; i < c.size(); ++i) z.push_back(nodes[i].x - rate * (nodes[i].x - c[i]));
  const std::vector<double> y = Mixed(graph, z);
  for (std::size_t i = 0; i < c.size(); ++i) {
    nodes[i].p = momentum * ratio * nodes[i].p + (nodes[i].x - y[i]);
    nodes[i].x -= nodes[i].p;
  }
}

// Momentum of each member's own gradients, mixed as they are.
void Naive(const MixingGraph& graph, const std::vector<double>& c, double rate, double momentum,
           std::vector<Node>& nodes) {
  std::vector<double> z;
  for (std::size_t i = 0; i < c.size(); ++i) {
    nodes[i].p = momentum * nodes[i].p + (nodes[i].x - c[i]);
    z.push_back(nodes[i].x - rate * nodes[i].p);
  }
  const std::vector<double> y = Mixed(graph, z);
  for (std::size_t i = 0; i < c.size(); ++i) nodes[i].x = y[i];
}

const std::vector<double> kFour = {0, 1, 2, 5};

void ExpectAt(const std::vector<Node>& nodes, const std::vector<double>& expected, double error) {
  for (std::size_t i = 0; i < nodes.size(); ++i) EXPECT_NEAR(nodes[i].x, expected[i], error);
}

TEST(MixingTest, TheFirstStepsAreThoseOfTheMethodAndDifferFromNaiveOnesInTheThird) {
  const MixingGraph ring = GraphOf(Topology::kRing, 4, 0);
  std::vector<Node> nodes(4);
  std::vector<Node> naive(4);
  for (const std::vector<double>& expected :
       {std::vector<double>{0.15, 0.1, 0.25, 0.3}, {0.4425, 0.325, 0.6775, 0.795}}) {
    DecentLam(ring, kFour, 0.1, 1, 0.9, nodes);
    Naive(ring, kFour, 0.1, 0.9, naive);
    ExpectAt(nodes, expected, 1e-12);
    ExpectAt(naive, expected, 1e-12);
  }
  DecentLam(ring, kFour, 0.1, 1, 0.9, nodes);
  Naive(ring, kFour, 0.1, 0.9, naive);
  ExpectAt(nodes, {0.864375, 0.70075, 1.191625, 1.35525}, 1e-12);
  ExpectAt(naive, {0.841875, 0.65575, 1.214125, 1.40025}, 1e-12);
}

// The bias of naive momentum, and that it is gone.
TEST(MixingTest, WhatMembersComeToDoesNotDependOnTheMomentum) {
  const MixingGraph ring = GraphOf(Topology::kRing, 4, 0);
  const auto bias = [](const std::vector<Node>& nodes) {
    double sum = 0;
    for (const Node& node : nodes) sum += (node.x - 2) * (node.x - 2) / 4;
    return sum;
  };
  for (const double momentum : {0.0, 0.9}) {
    std::vector<Node> nodes(4);
    for (int step = 0; step < 5000; ++step) DecentLam(ring, kFour, 0.1, 1, momentum, nodes);
    ExpectAt(nodes, {21.0 / 11, 20.0 / 11, 23.0 / 11, 24.0 / 11}, 1e-9);
    EXPECT_NEAR(bias(nodes), 0.02066116, 1e-8);
  }
  std::vector<Node> naive(4);
  for (int step = 0; step < 5000; ++step) Naive(ring, kFour, 0.1, 0.9, naive);
  ExpectAt(naive, {1.5, 1, 2.5, 3}, 1e-9);
  EXPECT_NEAR(bias(naive), 0.625, 1e-9);
}

TEST(MixingTest, ARateThatChangesScalesTheMomentum) {
  const MixingGraph ring = GraphOf(Topology::kRing, 4, 0);
  std::vector<Node> nodes = {{.x = 1}, {.x = 0}, {.x = -1}, {.x = 2}};
  for (int step = 0; step < 6; ++step) {
    DecentLam(ring, kFour, step < 3 ? 0.1 : 0.01, step == 3 ? 0.1 : 1, 0.9, nodes);
  }
  ExpectAt(nodes, {1.7097519193, 1.379651607, 0.4267957767, 2.067638089}, 1e-9);
}

// Over a thousand graphs, momenta and data: the mean goes as that of all gradients', whatever is
// mixed, and where the gate says so what members differ by does not grow without bound.
TEST(MixingTest, TheMeanIsKeptAndTheGateIsRight) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng = Rng(seed).Fork("mixing");
    const Topology topology = kAll[rng.Below(kAll.size())];
    const std::uint32_t members =
        topology == Topology::kOnePeerHypercube ? 1u << (1 + rng.Below(4)) : 2 + rng.Below(15);
    const double momentum = 0.05 * static_cast<double>(rng.Below(20));
    const double rate = std::pow(10.0, -static_cast<double>(1 + rng.Below(2)));
    std::vector<double> c;
    for (std::uint32_t i = 0; i < members; ++i) c.push_back(rng.Normal());
    std::vector<Node> nodes(members);
    double mean = 0;
    double mean_p = 0;
    double centre = 0;
    for (const double each : c) centre += each / members;
    const double growth = GrowthOf(topology, members, momentum, rate);
    const int steps = 300;
    for (int step = 0; step < steps; ++step) {
      DecentLam(GraphOf(topology, members, static_cast<std::uint64_t>(step)), c, rate, 1, momentum,
                nodes);
      mean_p = momentum * mean_p + rate * (mean - centre);
      mean -= mean_p;
      if (growth > 1.02 && step > 60) break;  // of large numbers the mean is lost to rounding
      double of_nodes = 0;
      for (const Node& node : nodes) of_nodes += node.x / members;
      EXPECT_NEAR(of_nodes, mean, 1e-6) << "seed " << seed;
      if (testing::Test::HasFailure()) return;
    }
    double apart = 0;
    for (const Node& node : nodes) apart = std::max(apart, std::abs(node.x - mean));
    if (growth >= 0.999) continue;
    EXPECT_LT(apart, 1000) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
