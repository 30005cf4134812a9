// Epochs of a part of the samples, which is chosen anew after so many.

#include "agent/engine/samples/subset.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "agent/engine/samples/ledger.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using policies::Synchronization;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kAll = 60;
constexpr std::uint64_t kSize = 20;

// The nth choice: other samples each time, and weights of mean 1.
Subset Nth(std::uint64_t number, bool weighted = true) {
  Rng rng(number);
  std::set<std::uint64_t> samples;
  while (samples.size() < kSize) samples.insert(rng.Below(kAll));
  Subset subset{
      .number = number, .kind = SubsetKind::kCraig, .samples = {samples.begin(), samples.end()}};
  for (std::size_t i = 0; i < kSize && weighted; ++i) {
    subset.weights.push_back(i % 2 == 0 ? 1.5f : 0.5f);
  }
  return subset;
}

// Momentum that local steps keep is each member's own, and none of a state that all share.
GroupRun Choosing(policies::Plan plan, std::uint32_t epochs = 2) {
  const double momentum = plan.synchronization == Synchronization::kPeriodic ? 0 : 0.9;
  return {.options = {.train_samples = kSize,
                      .subset = {.kind = SubsetKind::kCraig, .fraction = 1.0 / 3, .epochs = epochs},
                      .micro_batch = 3,
                      .optimizer = SgdOptions{.learning_rate = 0.02, .momentum = momentum},
                      .stop = {.epochs = 6}},
          .plan = std::move(plan),
          .choose = [](int, const RoundEngine& engine) {
            return Nth(engine.ledger().subset().number + 1);
          }};
}

TEST(SubsetTest, IsRefusedWhereItDoesNotFit) {
  Subset subset = Nth(1);
  EXPECT_EQ(ReasonAgainst(subset, kSize), "");
  EXPECT_EQ(ReasonAgainst(Subset{}, kSize), "");
  EXPECT_THAT(ReasonAgainst(subset, kSize + 1), HasSubstr("20 samples, an epoch 21"));
  subset.weights[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(ReasonAgainst(subset, kSize), HasSubstr("not a number above 0"));
  subset.weights.pop_back();
  EXPECT_THAT(ReasonAgainst(subset, kSize), HasSubstr("19 weights"));
  subset.weights.clear();
  std::swap(subset.samples[0], subset.samples[1]);
  EXPECT_THAT(ReasonAgainst(subset, kSize), HasSubstr("do not rise"));
  EXPECT_THAT(ReasonAgainst(Subset{.samples = {1}}, 1), HasSubstr("never chosen"));
  Subset strange = Nth(1);
  strange.kind = static_cast<SubsetKind>(7);
  EXPECT_THAT(ReasonAgainst(strange, kSize), HasSubstr("of no kind"));
}

TEST(SubsetTest, IsDueAtTheBeginningAndAfterSoManyEpochs) {
  const SubsetOptions every_two{.kind = SubsetKind::kRandom, .epochs = 2};

  EXPECT_FALSE(IsDue({}, {}, 7));
  EXPECT_TRUE(IsDue(every_two, {}, 0));
  const auto chosen = [](std::uint64_t number, std::uint64_t epoch) {
    return Subset{.number = number, .epoch = epoch, .kind = SubsetKind::kRandom};
  };
  EXPECT_FALSE(IsDue(every_two, chosen(1, 0), 1));
  EXPECT_TRUE(IsDue(every_two, chosen(1, 0), 2));
  EXPECT_FALSE(IsDue(every_two, chosen(2, 3), 3));
}

// Inputs do not change as the model learns.
TEST(SubsetTest, IsChosenOnceByInputs) {
  const SubsetOptions by_inputs{.kind = SubsetKind::kCraig, .epochs = 2, .by_inputs = true};

  EXPECT_TRUE(IsDue(by_inputs, {}, 0));
  EXPECT_TRUE(IsDue(by_inputs, {.number = 1, .kind = SubsetKind::kCraig}, 1));
  EXPECT_FALSE(IsDue(by_inputs, {.number = 1, .kind = SubsetKind::kCraig, .by_inputs = true}, 9));
}

TEST(SubsetTest, IsDueWhereAnotherKindIsAskedFor) {
  const Subset drawn{.number = 2, .epoch = 3, .kind = SubsetKind::kRandom};
  const Subset by_gradients{.number = 2, .epoch = 3, .kind = SubsetKind::kCraig};
  const SubsetOptions random{.kind = SubsetKind::kRandom, .epochs = 100};
  const SubsetOptions craig{.kind = SubsetKind::kCraig, .epochs = 100};
  const SubsetOptions by_inputs{.kind = SubsetKind::kCraig, .epochs = 100, .by_inputs = true};

  EXPECT_FALSE(IsDue(random, drawn, 4));
  EXPECT_TRUE(IsDue(random, by_gradients, 4));
  EXPECT_TRUE(IsDue(craig, drawn, 4));
  EXPECT_FALSE(IsDue(craig, by_gradients, 4));
  EXPECT_TRUE(IsDue(by_inputs, by_gradients, 4));
  EXPECT_FALSE(IsDue({}, drawn, 4));
}

TEST(SubsetTest, PositionsStandForItsSamples) {
  SampleLedger ledger(kSize, 1);
  const Subset subset = Nth(1);

  ledger.Choose(subset);

  std::map<std::uint64_t, float> weights;
  for (std::uint64_t at = 0; at < kSize; ++at) weights[ledger.SampleAt(at)] = ledger.WeightAt(at);
  ASSERT_EQ(weights.size(), kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    EXPECT_EQ(weights.at(subset.samples[i]), subset.weights[i]);
  }
}

TEST(SubsetTest, AllOfTheSamplesWithoutWeightsAreAsNone) {
  SampleLedger none(kSize, 1);
  SampleLedger all(kSize, 1);
  Subset subset{.number = 1, .samples = std::vector<std::uint64_t>(kSize)};
  std::iota(subset.samples.begin(), subset.samples.end(), 0);

  all.Choose(subset);

  EXPECT_FALSE(all.weighted());
  for (std::uint64_t at = 0; at < 3 * kSize; ++at) EXPECT_EQ(all.SampleAt(at), none.SampleAt(at));
}

struct Way {
  std::string name;
  policies::Plan plan{};
};

class SubsetTrainingTest : public testing::TestWithParam<Way> {};

// Each epoch is of the subset that was chosen before it, each of its samples once.
TEST_P(SubsetTrainingTest, EpochsAreOfWhatWasChosenAndItIsChosenAnew) {
  const std::vector<MemberRun> group = Train(Choosing(GetParam().plan));

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    EXPECT_EQ(member.parameters, group[0].parameters);
    EXPECT_EQ(member.state->ledger.subset, group[0].state->ledger.subset);
  }
  EXPECT_EQ(group[0].state->ledger.subset.number, 3u);
  EXPECT_EQ(group[0].state->ledger.subset.epoch, 4u);
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    std::vector<std::uint64_t> used;
    for (const MemberRun& member : group) {
      const auto found = member.used.find(epoch);
      if (found == member.used.end()) continue;
      used.insert(used.end(), found->second.begin(), found->second.end());
    }
    std::ranges::sort(used);
    EXPECT_EQ(used, Nth(1 + epoch / 2).samples) << "epoch " << epoch;
  }
}

// The subset is in the state, and the next choice is made where it would have been.
TEST_P(SubsetTrainingTest, AGroupGoesOnFromEveryEdgeBitForBit) {
  GroupRun run = Choosing(GetParam().plan);
  run.keep_edges = true;
  const std::vector<MemberRun> whole = Train(run);
  run.keep_edges = false;

  for (std::size_t edge = 0; edge < whole[0].edges.size(); edge += 3) {
    SCOPED_TRACE(edge);
    run.from = whole[0].edges[edge];
    const std::vector<MemberRun> on = Train(run);
    for (std::size_t rank = 0; rank < on.size(); ++rank) {
      EXPECT_EQ(on[rank].parameters, whole[rank].parameters);
      EXPECT_EQ(on[rank].state->ledger, whole[rank].state->ledger);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SubsetTrainingTest,
                         testing::Values(Way{"EveryStep", {.version = 1, .batch_sizes = {3, 2}}},
                                         Way{"Periodic",
                                             {.version = 1,
                                              .synchronization = Synchronization::kPeriodic,
                                              .period = 2,
                                              .batch_sizes = {3, 2}}}),
                         [](const auto& info) { return info.param.name; });

// Its rounds cross epochs' edges: a few of the next one's samples are of the former choice.
TEST(SubsetTest, OverlappingRoundsStandStillForAChoice) {
  const std::vector<MemberRun> group = Train(Choosing(
      {.version = 1, .synchronization = Synchronization::kDelayed, .batch_sizes = {3, 2}}));

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    EXPECT_EQ(member.state->ledger.subset.samples, Nth(3).samples);
    EXPECT_EQ(member.state->ledger.subset.epoch, 4u);
  }
}

// The weighted gradient is the mean of weight times gradient: a weight counts as so many samples.
TEST(SubsetTest, AWeightOfTwoCountsAsTwoSamples) {
  const auto train = [](std::vector<std::uint64_t> samples, std::vector<float> weights) {
    GroupRun run{
        .options = {.train_samples = samples.size(),
                    .subset = {.kind = SubsetKind::kCraig, .epochs = 100},
                    .optimizer = SgdOptions{.learning_rate = 0.125},
                    .stop = {.rounds = 1}},
        .plan = {.version = 1, .batch_sizes = {static_cast<std::uint32_t>(samples.size())}},
        .task = Task{.segments = {{.name = "x", .length = 1, .shape = {1}}},
                     .start = {0},
                     .add_gradient =
                         [](int, std::uint64_t index, auto, std::span<float> gradients) {
                           gradients[0] += static_cast<float>(index);
                           return static_cast<double>(index);
                         }},
        .choose = [=](int, const RoundEngine&) {
          return Subset{.number = 1, .samples = samples, .weights = weights};
        }};
    return Train(run)[0];
  };

  const MemberRun weighted = train({4, 7}, {1.5f, 0.5f});

  // (1.5 * 4 + 0.5 * 7) / 2 = 4.75
  EXPECT_EQ(weighted.parameters[0], -0.125f * 4.75f);
  EXPECT_EQ(weighted.reports[0].loss_mean_global, 4.75);
  EXPECT_EQ(train({4, 7}, {}).parameters[0], -0.125f * 5.5f);
}

TEST(SubsetTest, WhatWasChosenBeforeMayStay) {
  GroupRun run = Choosing({.version = 1, .batch_sizes = {3, 2}});
  run.choose = [](int, const RoundEngine& engine) -> std::optional<Subset> {
    if (engine.ledger().subset().number == 1) return std::nullopt;
    return Nth(engine.ledger().subset().number + 1);
  };

  const std::vector<MemberRun> group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kFinished);
  EXPECT_EQ(group[0].state->ledger.subset.samples, Nth(1).samples);
  EXPECT_EQ(group[0].state->ledger.subset.epoch, 4u);
}

// As a job that goes on from another one's checkpoint.
TEST(SubsetTest, WhoGoesOnWithAnotherKindChoosesAnewAtOnce) {
  GroupRun run = Choosing({.version = 1, .batch_sizes = {3, 2}}, 100);
  run.keep_edges = true;
  const std::vector<MemberRun> former = Train(run);
  run.keep_edges = false;
  run.from = former[0].edges[6];  // within an epoch
  run.options.subset.kind = SubsetKind::kRandom;
  int chosen = 0;
  run.choose = [&](int rank, const RoundEngine& engine) -> std::optional<Subset> {
    chosen += rank == 0 ? 1 : 0;
    return Nth(engine.ledger().subset().number + 1, false);
  };

  const std::vector<MemberRun> drawn = Train(run);

  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(drawn[0].outcome, Outcome::kFinished) << drawn[0].reason;
  EXPECT_EQ(drawn[0].state->ledger.subset.number, 2u);
  EXPECT_EQ(drawn[0].state->ledger.subset.kind, SubsetKind::kRandom);
  EXPECT_EQ(drawn[0].state->ledger.subset.samples, Nth(2).samples);
  EXPECT_TRUE(drawn[0].state->ledger.subset.weights.empty());

  // What was chosen before may stay then, too, and is not asked about at each edge.
  chosen = 0;
  run.choose = [&](int rank, const RoundEngine&) -> std::optional<Subset> {
    chosen += rank == 0 ? 1 : 0;
    return std::nullopt;
  };
  const std::vector<MemberRun> stays = Train(run);
  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(stays[0].state->ledger.subset.samples, Nth(1).samples);
}

TEST(SubsetTest, WhoGoesOnWithoutOneTrainsOnAllAlike) {
  GroupRun run = Choosing({.version = 1, .batch_sizes = {3, 2}}, 100);
  run.keep_edges = true;
  const std::vector<MemberRun> former = Train(run);
  run.keep_edges = false;
  run.from = former[0].edges[6];
  run.options.subset = {};  // of as many samples as the subset had

  const std::vector<MemberRun> all = Train(run);

  EXPECT_EQ(all[0].outcome, Outcome::kFinished) << all[0].reason;
  EXPECT_EQ(all[0].state->ledger.subset, Subset{});
}

// Who joins where others go on takes over what they chose, and so does one that missed a choice.
TEST(SubsetTest, WhoTakesOverAStateTakesOverTheSubset) {
  const EngineOptions options{.train_samples = kSize,
                              .subset = {.kind = SubsetKind::kCraig, .epochs = 100},
                              .optimizer = SgdOptions{.learning_rate = 0.01},
                              .stop = {.rounds = 3}};
  Members members(options);
  Subset chosen = Nth(2);
  members[0].member().ledger.Choose(chosen);
  members[1].member().ledger.Choose(Nth(1));

  std::vector<Survivor*> all = members.Everybody();
  Train(all, {.plan = {.version = 1, .batch_sizes = {2, 2, 2}}});

  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(members[i].member().ledger.subset(), chosen) << i;
  EXPECT_EQ(members[0].State().ledger, members[2].State().ledger);
}

}  // namespace
}  // namespace tactus::engine
