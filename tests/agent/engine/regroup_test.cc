// A member that goes from a group that is lost to the next one, with what it has made so far.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/engine/combine/lanes.h"
#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encodings.h"
#include "tests/agent/engine/failing_transport.h"
#include "tests/agent/engine/survivor.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using collective::Transport;
using policies::Aggregation;
using policies::Plan;
using policies::Synchronization;

constexpr std::size_t kLength = Survivor::kLength;
constexpr std::uint64_t kSamples = 157;

struct Way {
  std::string name;
  EngineOptions options{};
  Plan plan{};  // of three
};

EngineOptions Options(OptimizerOptions optimizer) {
  return {
      .train_samples = kSamples, .micro_batch = 2, .optimizer = optimizer, .stop = {.epochs = 3}};
}

Way WayOf(std::string name, OptimizerOptions optimizer, Plan plan) {
  plan.batch_sizes = {3, 2, 4};
  return {.name = std::move(name), .options = Options(optimizer), .plan = std::move(plan)};
}

// Signs travel from the third round or so.
std::vector<Way> OneBit() {
  const Plan plan{.encoding = policies::Encoding::kOneBit};
  std::vector<Way> ways = {WayOf("OneBitAdam", AdamOptions{.learning_rate = 0.01}, plan),
                           WayOf("OneBitLamb", LambOptions{.learning_rate = 0.01}, plan)};
  for (Way& way : ways) {
    way.options.learning_rate.base_batch = 9;
    way.options.encoding.one_bit.warm_up = 3;
  }
  return ways;
}

std::vector<Way> EveryStep() {
  const SgdOptions momentum{.learning_rate = 0.01, .momentum = 0.9};
  std::vector<Way> ways = {
      WayOf("Momentum", momentum, {}), WayOf("Adam", AdamOptions{.learning_rate = 0.01}, {}),
      WayOf("Adasum", SgdOptions{.learning_rate = 0.01}, {.aggregation = Aggregation::kAdasum}),
      WayOf("Adascale", momentum, {.learning_rate_rule = policies::LearningRateRule::kAdascale})};
  for (Way& way : OneBit()) ways.push_back(std::move(way));
  return ways;
}

// What its steps make of a member does not hang on time.
std::vector<Way> Windows() {
  const SgdOptions momentum{.learning_rate = 0.01, .momentum = 0.5};
  const AdamOptions adam{.learning_rate = 0.01};
  const Plan periodic{.synchronization = Synchronization::kPeriodic, .period = 3};
  std::vector<Way> ways = {WayOf("Windows", momentum, periodic),
                           WayOf("WindowsOfAdam", adam, periodic),
                           WayOf("BlockMomentum", momentum, periodic)};
  ways.back().options.block_momentum = 0.3;
  return ways;
}

std::vector<Way> Steady() {
  std::vector<Way> ways = EveryStep();
  for (Way& way : Windows()) ways.push_back(std::move(way));
  return ways;
}

std::vector<Way> AllWays() {
  const SgdOptions momentum{.learning_rate = 0.01, .momentum = 0.5};
  const AdamOptions adam{.learning_rate = 0.01};
  const Plan periodic{.synchronization = Synchronization::kPeriodic, .period = 3};
  const Plan delayed{.synchronization = Synchronization::kDelayed, .period = 4};
  std::vector<Way> ways = Steady();
  ways.push_back(WayOf("ElasticWindows", momentum, periodic));
  ways.back().options.elastic = true;
  ways.push_back(WayOf("AdasumOfAdam", adam, {.aggregation = Aggregation::kAdasum}));
  ways.push_back(WayOf("Delayed", momentum, delayed));
  ways.push_back(WayOf("LookingAhead", momentum, delayed));
  ways.back().options.look_ahead = true;
  return ways;
}

// Asks for another group, in the round after `rounds`.
Survivor::BeforeStep RegroupIn(std::uint64_t rounds, int rank) {
  return [=](RoundEngine& engine, Transport& transport) {
    if (transport.rank() == rank && engine.rounds() == rounds) {
      engine.RequestStop("one more", StopKind::kRegroup);
    }
    return true;
  };
}

class SameMembersTest : public testing::TestWithParam<Way> {};

// The round that was lost is computed anew from the same samples and the same state; one of local
// steps goes on.
TEST_P(SameMembersTest, GoOnBitForBitAsIfNothingHadBeenLost) {
  const Way& way = GetParam();
  Members whole(way.options);
  std::vector<Survivor*> undisturbed = whole.Everybody();
  Train(undisturbed, {.plan = way.plan});

  Members lost(way.options);
  std::vector<Survivor*> members = lost.Everybody();
  Train(members, {.plan = way.plan, .before_step = AbortIn(5, 1), .told_of_rounds = false});
  ASSERT_EQ(members.size(), 3u);
  EXPECT_LE(lost[0].member().rounds, 5u);
  Train(members, {.plan = way.plan, .before_step = AbortIn(9, 2)});
  Train(members, {.plan = way.plan});

  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lost[i].parameters(), whole[i].parameters());
    EXPECT_EQ(lost[i].State(), whole[i].State());
  }
}

TEST_P(SameMembersTest, GoOnBitForBitWhereOneAskedForAnotherGroup) {
  const Way& way = GetParam();
  Members whole(way.options);
  std::vector<Survivor*> undisturbed = whole.Everybody();
  Train(undisturbed, {.plan = way.plan});

  Members asked(way.options);
  std::vector<Survivor*> members = asked.Everybody();
  Train(members, {.plan = way.plan, .before_step = RegroupIn(5, 1), .told_of_rounds = false});
  ASSERT_EQ(members.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(asked[i].member().rounds, 6u);
  EXPECT_EQ(asked[1].reason(), "one more");
  Train(members, {.plan = way.plan});

  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(asked[i].parameters(), whole[i].parameters());
    EXPECT_EQ(asked[i].State(), whole[i].State());
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SameMembersTest, testing::ValuesIn(Steady()),
                         [](const auto& way) { return way.param.name; });

class RegroupTest : public testing::TestWithParam<Way> {};

TEST_P(RegroupTest, TheOthersGoOnWithoutADeadMember) {
  const Way& way = GetParam();
  for (const int dies : {0, 2}) {
    SCOPED_TRACE(dies);
    Members all(way.options);
    std::vector<Survivor*> members = all.Everybody();
    Train(members, {.plan = way.plan, .before_step = DieIn(4, dies), .told_of_rounds = false});
    ASSERT_EQ(members.size(), 2u);
    for (Survivor* const each : members) EXPECT_LE(each->member().rounds, 5u);
    EXPECT_GE(members[0]->member().rounds, 3u);

    Plan plan = way.plan;
    plan.version = 5;
    plan.batch_sizes = {4, 3};
    Train(members, {.plan = plan});

    ASSERT_EQ(members.size(), 2u);
    EXPECT_EQ(members[0]->reason(), "3 epochs completed");
    EXPECT_EQ(members[0]->parameters(), members[1]->parameters());
    EXPECT_EQ(members[0]->member().rounds, members[1]->member().rounds);
    EXPECT_EQ(members[0]->State().ledger, members[1]->State().ledger);
    EXPECT_EQ(TimesUsed(all.Everybody(), kSamples), std::vector<std::uint64_t>(kSamples, 3));
  }
}

// No round is lost, whatever the way of running them: the edge is a window's, or the last round
// that was under way.
TEST_P(RegroupTest, ANewcomerIsTakenInAndAnotherLeavesWhereNothingIsLost) {
  const Way& way = GetParam();
  Members all(way.options, 4);
  std::vector<Survivor*> members = {&all[0], &all[1], &all[2]};
  Train(members, {.plan = way.plan, .before_step = RegroupIn(3, 2), .told_of_rounds = false});
  ASSERT_EQ(members.size(), 3u);
  for (Survivor* const each : members) {
    EXPECT_EQ(each->member().rounds, members[0]->member().rounds);
    EXPECT_GE(each->member().rounds, 4u);
    EXPECT_EQ(each->parameters(), members[0]->parameters());
  }

  members = {&all[1], &all[2], &all[3]};
  Plan plan = way.plan;
  plan.version = 5;
  Train(members, {.plan = plan});

  for (Survivor* const each : members) {
    EXPECT_EQ(each->reason(), "3 epochs completed");
    EXPECT_EQ(each->parameters(), members[0]->parameters());
    EXPECT_EQ(each->State().ledger, members[0]->State().ledger);
    EXPECT_EQ(each->member().rounds, members[0]->member().rounds);
  }
  EXPECT_FALSE(all[3].used().empty());
  EXPECT_EQ(TimesUsed(all.Everybody(), kSamples), std::vector<std::uint64_t>(kSamples, 3));
}

INSTANTIATE_TEST_SUITE_P(Ways, RegroupTest, testing::ValuesIn(AllWays()),
                         [](const auto& way) { return way.param.name; });

// ---- Who is behind

class TakeOverTest : public testing::TestWithParam<Way> {
 protected:
  TakeOverTest() : all_(OptionsWithEnd(), 2) {
    all_[0].SetParameters(7);
    std::vector<Survivor*> ahead = {&all_[1]};
    Plan plan = GetParam().plan;
    plan.batch_sizes = {9};
    Train(ahead, {.plan = plan, .told_of_rounds = false});
  }

  static EngineOptions OptionsWithEnd() {
    EngineOptions options = GetParam().options;
    options.stop = {.rounds = 6};
    return options;
  }

  // The first has done nothing, the second six rounds; over these transports.
  std::vector<Outcome> Meet(std::vector<std::unique_ptr<Transport>> transports) {
    std::vector<Outcome> outcomes(2);
    std::vector<std::jthread> threads;
    Plan plan = GetParam().plan;
    plan.batch_sizes = {5, 4};
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        outcomes[rank] = *all_[rank].TrainIn(*transports[rank], plan, {0, 6},
                                             [](RoundEngine&, Transport&) { return true; });
      });
    }
    threads.clear();
    return outcomes;
  }

  Members all_;
};

TEST_P(TakeOverTest, WhoHasFewerRoundsTakesAllOfTheStateOfWhoHasTheMost) {
  ASSERT_EQ(all_[1].member().rounds, 6u);

  const std::vector<Outcome> outcomes = Meet(NewGroup(2));

  EXPECT_EQ(outcomes, std::vector<Outcome>(2, Outcome::kFinished));
  EXPECT_EQ(all_[0].reason(), "6 rounds completed");
  EXPECT_EQ(all_[0].parameters(), all_[1].parameters());
  EXPECT_EQ(all_[0].State(), all_[1].State());
  EXPECT_EQ(all_[0].member().optimizers_differ, all_[1].member().optimizers_differ);
}

TEST_P(TakeOverTest, OneThatFailsHalfWayLeavesWhatWasThere) {
  for (int collectives = 0;; ++collectives) {
    SCOPED_TRACE(collectives);
    const std::vector<EngineState> states = {all_[0].State(), all_[1].State()};
    const std::vector<std::vector<float>> parameters = {all_[0].parameters(), all_[1].parameters()};
    std::vector<std::unique_ptr<Transport>> transports = NewGroup(2);
    transports[1] = std::make_unique<FailingTransport>(std::move(transports[1]), collectives);

    const std::vector<Outcome> outcomes = Meet(std::move(transports));

    if (outcomes[0] == Outcome::kFinished) break;
    ASSERT_LT(collectives, 10);
    EXPECT_EQ(all_[0].State(), states[0]);
    EXPECT_EQ(all_[0].parameters(), parameters[0]);
    EXPECT_EQ(all_[1].State(), states[1]);
    EXPECT_EQ(all_[1].parameters(), parameters[1]);
  }
  EXPECT_EQ(all_[0].parameters(), all_[1].parameters());
}

INSTANTIATE_TEST_SUITE_P(Ways, TakeOverTest, testing::ValuesIn(AllWays()),
                         [](const auto& way) { return way.param.name; });

class OneBitTakeOverTest : public testing::TestWithParam<Way> {};

// All but residuals, which are a member's own.
TEST_P(OneBitTakeOverTest, AJoinerComesToWhereSignsTravel) {
  const Way& way = GetParam();
  Members all(way.options, 4);
  std::vector<Survivor*> members = {&all[0], &all[1], &all[2]};
  Train(members, {.plan = way.plan, .before_step = AbortIn(7, 1), .told_of_rounds = false});
  ASSERT_TRUE(all[1].State().one_bit.frozen);
  all[3].SetParameters(7);
  members = {&all[3], &all[2], &all[0], &all[1]};

  Plan plan = way.plan;
  plan.version = 5;
  plan.batch_sizes = {2, 3, 1, 3};
  Train(members, {.plan = plan});

  ASSERT_EQ(members.size(), 4u);
  EXPECT_EQ(all[3].reason(), "3 epochs completed");
  EXPECT_GT(all[3].State().one_bit.frozen_steps, 10u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].parameters(), all[3].parameters());
    EXPECT_EQ(all[i].State(), all[3].State());
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, OneBitTakeOverTest, testing::ValuesIn(OneBit()),
                         [](const auto& way) { return way.param.name; });

TEST(TakeOverOfOneTest, AMemberOfOtherRoundsThanTheGroupWasToldGivesItUp) {
  Survivor survivor(Options(SgdOptions{.learning_rate = 0.01}));

  const auto outcome = survivor.TrainIn(*NewGroup(1)[0], {.batch_sizes = {4}}, {3},
                                        [](RoundEngine&, Transport&) { return true; });

  EXPECT_EQ(outcome, Outcome::kGroupLost);
  EXPECT_EQ(survivor.reason(),
            "the group was told of 3 rounds of this member, which has applied 0");
}

// Buffers are each member's own, but where one has none that it learned.
TEST(TakeOverOfBuffersTest, WhoIsBehindTakesTheDonorsAndTheOthersKeepTheirs) {
  const EngineOptions options = Options(SgdOptions{.learning_rate = 0.01});
  Members all(options);
  std::vector<Survivor*> ahead = {&all[0], &all[1]};
  Train(ahead,
        {.plan = {.batch_sizes = {3, 3}}, .before_step = RegroupIn(2, 0), .told_of_rounds = false});
  std::vector<std::vector<float>> buffers = {{1, 2}, {3, 4}, {0, 0}};
  std::vector<std::unique_ptr<Transport>> transports = NewGroup(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        cuda::Buffer gradients = all[rank].device().Allocate(kLength + LaneCount(3));
        cuda::Sums losses = all[rank].device().AllocateSums(1);
        RoundEngine engine(all[rank].member(),
                           {.gradients = gradients.span(), .loss_sum = losses.span()},
                           *transports[rank], {.batch_sizes = {2, 2, 2}});
        EXPECT_TRUE(engine.Begin(SurvivorTime(), {.rounds = {3, 3, 0}, .buffers = buffers[rank]}));
      });
    }
  }

  EXPECT_EQ(buffers, (std::vector<std::vector<float>>{{1, 2}, {3, 4}, {1, 2}}));
  EXPECT_EQ(all[2].member().rounds, 3u);
}

// What the hashes say is believed: of members that are said to hold the same none is sent anything.
class TakeOverOfParametersTest : public testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(TakeOverOfParametersTest, WhatAllHoldIsNotSent) {
  const auto [same, first] = GetParam();
  Members all(Options(SgdOptions{.learning_rate = 0.01}));
  std::vector<std::unique_ptr<Transport>> transports = NewGroup(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        cuda::Buffer gradients = all[rank].device().Allocate(kLength + LaneCount(2));
        cuda::Sums losses = all[rank].device().AllocateSums(1);
        const std::vector<float> values(kLength, static_cast<float>(rank + 1));
        all[rank].device().Copy(values, all[rank].member().parameters);
        RoundEngine engine(all[rank].member(),
                           {.gradients = gradients.span(), .loss_sum = losses.span()},
                           *transports[rank], {.batch_sizes = {2, 2}});
        const HashedParameters own{.hash = same ? 7 : 7 + rank};
        EXPECT_TRUE(first ? engine.Begin(SurvivorTime(), own)
                          : engine.Begin(SurvivorTime(), {.rounds = {0, 0}, .own = own}));
      });
    }
  }

  EXPECT_EQ(all[0].parameters(), std::vector<float>(kLength, 1));
  EXPECT_EQ(all[1].parameters(), std::vector<float>(kLength, same ? 2 : 1));
}

INSTANTIATE_TEST_SUITE_P(Hashes, TakeOverOfParametersTest,
                         testing::Combine(testing::Bool(), testing::Bool()), [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "Same" : "Other") +
                                  (std::get<1>(info.param) ? "AtFirst" : "LaterOn");
                         });

// ---- What a loss leaves unequal

struct Pair {
  explicit Pair(const EngineOptions& options) : all(options, 2) {}

  // The two meet, having applied as many rounds, and go no further.
  void Meet(bool lacks_best = false) {
    std::vector<std::unique_ptr<Transport>> transports = NewGroup(2);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        Survivor& survivor = all[rank];
        cuda::Buffer gradients = survivor.device().Allocate(kLength + LaneCount(2));
        cuda::Sums losses = survivor.device().AllocateSums(1);
        RoundEngine engine(survivor.member(),
                           {.gradients = gradients.span(), .loss_sum = losses.span()},
                           *transports[rank], {.batch_sizes = {2, 2}});
        const std::uint64_t rounds = survivor.member().rounds;
        EXPECT_TRUE(engine.Begin(
            SurvivorTime(), {.rounds = {rounds, rounds}, .lacks_best = rank == 0 && lacks_best}));
        due[rank] = engine.validation_due();
      });
    }
  }

  Members all;
  bool due[2] = {false, false};
};

EngineOptions Validating() {
  EngineOptions options = Options(SgdOptions{.learning_rate = 0.01});
  options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 2, .samples = 10};
  return options;
}

TEST(RegroupedPairTest, AValidationThatWasOverOnOneOfThemAloneIsOverOnBothOrNeither) {
  for (const std::size_t validated : {0, 1}) {
    Pair pair(Validating());
    for (std::size_t i = 0; i < 2; ++i) pair.all[i].member().rounds = 2;
    Member& one = pair.all[validated].member();
    one.validations.Take({.loss = 0.5, .samples = 10}, one.validation_mark(), Seconds(1));

    pair.Meet();

    EXPECT_EQ(pair.due[0], validated == 1);
    EXPECT_EQ(pair.due[1], validated == 1);
    EXPECT_EQ(pair.all[0].State().validation, pair.all[1].State().validation);
  }
}

TEST(RegroupedPairTest, OptimizersThatDifferOnOneDifferOnBoth) {
  Pair pair(Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}));
  pair.all[1].member().optimizers_differ = true;

  pair.Meet();

  EXPECT_TRUE(pair.all[0].member().optimizers_differ);
  EXPECT_TRUE(pair.all[1].member().optimizers_differ);
}

TEST(RegroupedPairTest, TheBestThatNobodyHasIsForgottenByAll) {
  Pair pair(Validating());
  for (std::size_t i = 0; i < 2; ++i) {
    Member& member = pair.all[i].member();
    member.rounds = 2;
    member.validations.Take({.loss = 0.5, .samples = 10}, member.validation_mark(), Seconds(1));
  }

  pair.Meet();
  EXPECT_EQ(pair.all[1].State().validation.best_samples, 10u);

  pair.Meet(/*lacks_best=*/true);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(pair.all[i].State().validation.best_samples, 0u);
    EXPECT_EQ(pair.all[i].State().validation.count, 1u);
  }
}

TEST(RegroupedPairTest, ParametersAreTheFirstMembersToTheLastBit) {
  Pair pair(Options(SgdOptions{.learning_rate = 0.01}));
  pair.all[0].SetParameters(1);
  pair.all[1].SetParameters(1.0000001f);

  pair.Meet();

  EXPECT_EQ(pair.all[1].parameters(), std::vector<float>(kLength, 1));
}

// What they are after a round that was not applied is the encoding's to know (Encoding::Settle).
TEST(RegroupedEncodingTest, ResidualsOutliveTheGroup) {
  EngineOptions options = Options(SgdOptions{.learning_rate = 0.01});
  options.encoding.dense = [](cuda::Device&, std::size_t length) {
    return std::make_unique<RoundingEncoding>(4.0f, length);
  };
  Survivor survivor(options);
  const auto residual = [&] {
    const std::span<const float> values = survivor.member().encodings.Residuals()[0].values;
    return std::vector<float>(values.begin(), values.end());
  };
  const Plan plan{.batch_sizes = {5}};

  survivor.TrainIn(*NewGroup(1)[0], plan, {}, AbortIn(3, 0));
  const std::vector<float> owed = residual();
  EXPECT_NE(owed, std::vector<float>(kLength));
  survivor.TrainIn(*NewGroup(1)[0], plan, {3}, [&](RoundEngine&, Transport&) {
    EXPECT_EQ(residual(), owed);
    return false;
  });
}

// ---- Trials

class LostTrialTest : public testing::TestWithParam<bool> {};

// As at training's end: by what all members know of its losses.
TEST_P(LostTrialTest, OneThatLedUpIsUndoneWithItsGroup) {
  const bool led_up = GetParam();
  Members all(Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}));
  std::vector<Survivor*> members = all.Everybody();
  std::vector<float> held;
  Plan plan{.version = 1, .batch_sizes = {3, 2, 4}};
  Plan trial = plan;
  trial.version = 2;
  trial.trial = policies::Trial::kBegins;
  const auto before_step = [&](RoundEngine& engine, Transport& transport) {
    if (engine.rounds() == 4) engine.OfferPlan(trial);
    if (transport.rank() == 0 && engine.rounds() == 5 && held.empty()) held = all[0].parameters();
    if (engine.plan().version == 2 && led_up)
      all[static_cast<std::size_t>(transport.rank())].AddLoss(1e6);
    if (transport.rank() == 2 && engine.rounds() == 9) transport.Abort("told to");
    return true;
  };

  Train(members, {.plan = plan, .before_step = before_step, .told_of_rounds = false});

  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].member().rounds, 9u);
    EXPECT_EQ(all[i].parameters() == held, led_up);
    EXPECT_EQ(all[i].State(), all[0].State());
  }
  // The next group's plan may say that the trial is undone: there is nothing left of it.
  const std::vector<float> before = all[0].parameters();
  plan.trial = policies::Trial::kUndone;
  Train(members, {.plan = plan, .before_step = [&](RoundEngine&, Transport& transport) {
                    if (transport.rank() == 0) {
                      EXPECT_EQ(all[0].parameters(), before);
                    }
                    return false;
                  }});
}

INSTANTIATE_TEST_SUITE_P(Both, LostTrialTest, testing::Bool(),
                         [](const auto& led_up) { return led_up.param ? "LedUp" : "LedDown"; });

}  // namespace
}  // namespace tactus::engine
