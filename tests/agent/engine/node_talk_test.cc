#include "agent/engine/combine/node_talk.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"

namespace tactus::engine {
namespace {

using Nodes = std::vector<std::uint32_t>;

TEST(NodeTalkTest, TiersAreSeveralNodesOfWhichOneHasSeveralMembers) {
  EXPECT_TRUE(TiersOf(Nodes{0, 0, 1}).any());
  EXPECT_TRUE(TiersOf(Nodes{7, 3, 7}).any());
  for (const Nodes& nodes : {Nodes{}, Nodes{0}, Nodes{0, 0, 0}, Nodes{0, 1, 2}}) {
    EXPECT_FALSE(TiersOf(nodes).any());
  }
}

struct Case {
  policies::Encoding kind = policies::Encoding::kDense;
  Nodes nodes{};
  Meeting meeting = Meeting::kInProcess;
};

// The members of nodes, and a group that has one member in place of each node.
class NodesTest : public ::testing::TestWithParam<Case> {
 protected:
  static EncodedGroup::Setup SetupOf(int members, Nodes nodes) {
    return {.members = members,
            .kind = GetParam().kind,
            .segments = {{.name = "a", .length = 3000, .shape = {30, 100}},
                         {.name = "b", .length = 5000, .shape = {50, 100}},
                         {.name = "c", .length = 40, .shape = {40}}},
            .meeting = GetParam().meeting,
            .pieces = 2,
            .nodes = std::move(nodes)};
  }
  static const Nodes& nodes() { return GetParam().nodes; }
  static int members() { return static_cast<int>(nodes().size()); }
  // By node, in the order in which they first appear: its ranks.
  static std::vector<std::vector<int>> Ranks() {
    std::vector<std::vector<int>> ranks;
    std::map<std::uint32_t, std::size_t> known;
    for (int rank = 0; rank < members(); ++rank) {
      const auto [at, fresh] = known.try_emplace(nodes()[rank], ranks.size());
      if (fresh) ranks.emplace_back();
      ranks[at->second].push_back(rank);
    }
    return ranks;
  }
  // Whole numbers, so that the order of sums does not matter; lanes are left to the first one.
  std::vector<std::vector<float>> SumsOfNodes(const std::vector<std::vector<float>>& buffers) {
    std::vector<std::vector<float>> sums;
    for (const std::vector<int>& node : Ranks()) {
      std::vector<std::vector<float>> of_node;
      for (const int rank : node) of_node.push_back(buffers[rank]);
      sums.push_back(DenseSum(of_node));
    }
    return sums;
  }
  std::vector<std::vector<float>> Sum(EncodedGroup& group,
                                      const std::vector<std::vector<float>>& buffers,
                                      std::uint64_t round) {
    const std::size_t length = group.length() - EncodedGroup::kLanes;
    second_.assign(length, 1);
    first_.assign(length, 0);
    scales_.assign(group.segments().size(), 2);
    const double all = 4;  // shares of it are exact
    auto sums = group.Sum(buffers, {.number = round, .samples = all},
                          {.first = first_,
                           .second = second_,
                           .scales = scales_,
                           .beta1 = 0,
                           .since = 1,
                           .samples = all,
                           .own_samples = 1});
    group.Settle(true);
    return sums;
  }
  std::vector<double> LeftByAll() {
    std::vector<double> sums(group_.LeftOver(0).size());
    for (int rank = 0; rank < members(); ++rank) {
      const std::vector<float> left = group_.LeftOver(rank);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(left[i]);
    }
    return sums;
  }
  static std::vector<float> Values(std::vector<float> buffer) {
    buffer.resize(buffer.size() - EncodedGroup::kLanes);
    return buffer;
  }
  static std::vector<float> Lanes(const std::vector<float>& buffer) {
    return {buffer.end() - EncodedGroup::kLanes, buffer.end()};
  }

  EncodedGroup group_{SetupOf(members(), nodes())};
  EncodedGroup leaders_{SetupOf(static_cast<int>(Ranks().size()), {})};
  std::vector<float> first_;
  std::vector<float> second_;
  std::vector<double> scales_;
};

TEST_P(NodesTest, SumsAreThoseOfAGroupOfTheNodes) {
  for (std::uint64_t round = 0; round < 4; ++round) {
    const auto buffers = WholeBuffers(group_, members(), 40 + round);

    const auto sums = Sum(group_, buffers, round);

    EXPECT_TRUE(AllAlike(sums));
    EXPECT_EQ(Values(sums[0]), Values(Sum(leaders_, SumsOfNodes(buffers), round)[0])) << round;
    EXPECT_EQ(Lanes(sums[0]), Lanes(DenseSum(buffers)));
  }
}

TEST_P(NodesTest, OnlyLeadersSendWhatIsEncodedAndLeaveSomethingOut) {
  const auto buffers = WholeBuffers(group_, members(), 7);
  Sum(group_, buffers, 0);
  Sum(leaders_, SumsOfNodes(buffers), 0);

  const std::vector<std::vector<int>> nodes = Ranks();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const int rank : nodes[node]) {
      const bool leads = rank == nodes[node].front();
      const int as = static_cast<int>(node);
      EXPECT_EQ(group_.bytes(rank),
                leads ? leaders_.bytes(as) : EncodedGroup::kLanes * sizeof(float));
      const std::size_t count = group_.encodings(rank).Residuals().size();
      for (std::size_t which = 0; which < count; ++which) {
        if (group_.LeftOver(rank, which).size() < 10) continue;  // what the residual is of
        const std::vector<float> left = group_.LeftOver(rank, which);
        EXPECT_EQ(left, leads ? leaders_.LeftOver(as, which) : std::vector<float>(left.size()));
      }
    }
  }
}

// As after a group in which each of them spoke for itself.
TEST_P(NodesTest, WhatWasLeftOutBeforeIsHandedToTheLeader) {
  const auto zeros = WholeBuffers(group_, members(), 7);
  Sum(group_, zeros, 0);
  Sum(leaders_, SumsOfNodes(zeros), 0);
  if (group_.encodings(0).Residuals().empty()) return;
  std::vector<float> owed(group_.LeftOver(0).size());
  for (const cuda::Segment& segment : group_.segments()) {
    if (segment.shape.size() < 2) continue;  // it travels dense, and leaves nothing out
    for (std::size_t i = 0; i < segment.length; i += 3) {
      owed[segment.offset + i] = static_cast<float>(i % 7) * 64;
    }
  }
  const std::vector<std::vector<int>> nodes = Ranks();
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::vector<int>& ranks = nodes[node];
    if (ranks.size() < 2) continue;
    group_.SetLeftOver(ranks.back(), 0, owed);
    std::vector<float> all = leaders_.LeftOver(static_cast<int>(node));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += owed[i];
    leaders_.SetLeftOver(static_cast<int>(node), 0, all);
    break;
  }
  const auto buffers = WholeBuffers(group_, members(), 9);
  const std::vector<double> before = LeftByAll();

  const auto sums = Sum(group_, buffers, 1);

  EXPECT_TRUE(AllAlike(sums));
  // AdaComp takes twice what is new where it looks for what stands out: what is handed over is new
  // to the leader, and goes sooner. Nothing of it is lost.
  if (GetParam().kind == policies::Encoding::kAdacomp) {
    const std::vector<double> after = LeftByAll();
    const std::vector<float> put_in = DenseSum(buffers);
    for (std::size_t i = 0; i < owed.size(); ++i) {
      const double whole = static_cast<double>(put_in[i]) + before[i];
      const double come = static_cast<double>(sums[0][i]) + after[i];
      EXPECT_NEAR(come, whole, 1e-4 * (1 + std::abs(whole))) << i;
    }
    return;
  }
  const auto expected = Sum(leaders_, SumsOfNodes(buffers), 1);
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < owed.size(); ++i) {
    const double d = static_cast<double>(sums[0][i]) - static_cast<double>(expected[0][i]);
    difference += d * d;
    size += static_cast<double>(expected[0][i]) * static_cast<double>(expected[0][i]);
  }
  // The order of additions may decide which of two nearly equal values goes first.
  EXPECT_LT(difference, 1e-3 * size);
}

std::vector<Case> AllCases() {
  using Kind = policies::Encoding;
  std::vector<Case> cases;
  for (const Kind kind :
       {Kind::kFloat16, Kind::kBfloat16, Kind::kDq, Kind::kSketch, Kind::kAdacomp, Kind::kOneBit}) {
    for (const Nodes& nodes : {Nodes{0, 0, 1, 1}, Nodes{0, 1, 0, 1, 0}, Nodes{3, 3, 3, 5}}) {
      cases.push_back({.kind = kind, .nodes = nodes});
    }
    cases.push_back({.kind = kind, .nodes = {0, 0, 1}, .meeting = Meeting::kTcp});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, NodesTest, ::testing::ValuesIn(AllCases()), [](const auto& info) {
  return std::string(policies::kEncodingNames[static_cast<std::size_t>(info.param.kind)]) + "_" +
         std::to_string(info.index);
});

// Of them nothing travels encoded, and it is one group as ever where all are on one node.
TEST(NodeTalkTest, OnOneNodeAllSpeakForThemselves) {
  const EncodedGroup::Setup setup{.members = 3,
                                  .kind = policies::Encoding::kFloat16,
                                  .segments = {{.name = "a", .length = 3000, .shape = {30, 100}}}};
  EncodedGroup::Setup together = setup;
  together.nodes = {2, 2, 2};
  EncodedGroup group(setup);
  EncodedGroup on_one(together);
  const auto buffers = NormalBuffers(group, 3, 5);

  EXPECT_EQ(on_one.Sum(buffers), group.Sum(buffers));
  EXPECT_EQ(on_one.bytes(2), group.bytes(2));
}

}  // namespace
}  // namespace tactus::engine
