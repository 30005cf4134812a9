// Windows of local steps that are under way when their group is lost: the next one goes on with
// them, and what is lost is the share of who is gone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/survivor.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using collective::Transport;
using policies::Aggregation;
using policies::LearningRateRule;
using policies::Plan;
using policies::Synchronization;

constexpr std::uint64_t kSamples = 157;
constexpr std::uint64_t kPeriod = 3;

struct Way {
  std::string name;
  EngineOptions options{};
  Plan plan{};  // without sizes
};

Way WayOf(std::string name, OptimizerOptions optimizer) {
  return {.name = std::move(name),
          .options = {.train_samples = kSamples,
                      .micro_batch = 2,
                      .optimizer = optimizer,
                      .stop = {.epochs = 3}},
          .plan = {.synchronization = Synchronization::kPeriodic, .period = kPeriod}};
}

Way OfSgd(std::string name = "Sgd") {
  return WayOf(std::move(name), SgdOptions{.learning_rate = 0.01, .momentum = 0.5});
}

std::vector<Way> AllWays() {
  std::vector<Way> ways = {OfSgd(),
                           WayOf("Adam", AdamOptions{.learning_rate = 0.01}),
                           OfSgd("BlockMomentum"),
                           OfSgd("MomentumAnew"),
                           OfSgd("Adasum"),
                           OfSgd("Encoded")};
  ways[2].options.block_momentum = 0.3;
  ways[3].options.keep_local_momentum = false;
  ways[4].plan.aggregation = Aggregation::kAdasum;
  ways[5].plan.encoding = policies::Encoding::kAdacomp;  // with a residual
  return ways;
}

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

Plan PlanOf(const Way& way, std::vector<std::uint32_t> sizes) {
  Plan plan = way.plan;
  plan.batch_sizes = std::move(sizes);
  return plan;
}

void ExpectSame(Survivor& one, Survivor& other) {
  EXPECT_EQ(one.parameters(), other.parameters());
  EXPECT_EQ(one.State(), other.State());
}

class RegroupWindowsTest : public testing::TestWithParam<Way> {};
class SameMembersWindowsTest : public testing::TestWithParam<Way> {};

// Groups that fall apart again and again, within one window, too, with nobody gone.
TEST_P(SameMembersWindowsTest, GoOnBitForBitAsIfNothingHadBeenLost) {
  const Way& way = GetParam();
  const Plan plan = PlanOf(way, {3, 2, 4});
  Members whole(way.options);
  std::vector<Survivor*> undisturbed = whole.Everybody();
  Train(undisturbed, {.plan = plan});

  Members lost(way.options);
  std::vector<Survivor*> members = lost.Everybody();
  Train(members, {.plan = plan, .after_step = LoseAfter(0, {1, 3, 5}), .told_of_rounds = false});
  Train(members, {.plan = plan, .after_step = LoseAfter(0, {1, 1, 1})});
  Train(members, {.plan = plan, .after_step = LoseAfter(5, {3, kAllBatches, 1})});
  Train(members, {.plan = plan, .before_step = AbortIn(5, 2)});
  Train(members, {.plan = plan, .after_step = LoseAfter(9, {1, 1, 1})});
  Train(members, {.plan = plan});

  ASSERT_EQ(members.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    ExpectSame(lost[i], whole[i]);
    EXPECT_EQ(lost[i].used(), whole[i].used());
  }
}

// Those who live have the blocks that they would have as a group of their own: the dead member was
// the last. So all is as if it had never been there: its samples are the next round's first.
TEST_P(RegroupWindowsTest, TheShareOfTheDeadMemberAloneIsLost) {
  const Way& way = GetParam();
  Members without(way.options, 2);
  std::vector<Survivor*> undisturbed = without.Everybody();
  Train(undisturbed, {.plan = PlanOf(way, {3, 2})});

  for (const Batches& batches : {Batches{kAllBatches, kAllBatches, kAllBatches},
                                 {3, 2, kAllBatches},
                                 {kAllBatches, 1, kAllBatches}}) {
    Members all(way.options);
    std::vector<Survivor*> members = all.Everybody();
    Train(members, {.plan = PlanOf(way, {3, 2, 4}),
                    .before_step = DieIn(0, 2),
                    .after_step = LoseAfter(0, batches),
                    .told_of_rounds = false});
    ASSERT_EQ(members.size(), 2u);

    Train(members, {.plan = PlanOf(way, {3, 2})});

    for (std::size_t i = 0; i < 2; ++i) {
      ExpectSame(all[i], without[i]);
      EXPECT_EQ(all[i].used(), without[i].used());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RegroupWindowsTest, testing::ValuesIn(AllWays()),
                         [](const auto& way) { return way.param.name; });

// Adasum's exchanges may be over for one when it is the first to give up the next round, and not
// for the others: they are behind then.
std::vector<Way> WaysToCombineAtOnce() {
  std::vector<Way> ways = AllWays();
  std::erase_if(ways, [](const Way& way) { return way.name == "Adasum"; });
  for (const auto& [name, rule] : {std::pair("Linear", LearningRateRule::kLinear),
                                   std::pair("Adascale", LearningRateRule::kAdascale)}) {
    ways.push_back(OfSgd(name));
    ways.back().options.learning_rate.base_batch = 6;
    ways.back().plan.learning_rate_rule = rule;
  }
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Ways, SameMembersWindowsTest, testing::ValuesIn(WaysToCombineAtOnce()),
                         [](const auto& way) { return way.param.name; });

// ---- Who goes on

// Alone, and under another plan, as one has nobody to combine with.
TEST(OneSurvivorTest, GoesOnWithItsWindow) {
  Way way = OfSgd();
  way.options.stop = {.rounds = 1};
  Survivor alone(way.options);
  std::vector<Survivor*> undisturbed = {&alone};
  Train(undisturbed, {.plan = PlanOf(way, {3}), .told_of_rounds = false});
  Members all(way.options, 2);
  std::vector<Survivor*> members = all.Everybody();
  Train(members,
        {.plan = PlanOf(way, {3, 2}), .before_step = DieIn(0, 1), .told_of_rounds = false});
  ASSERT_EQ(members.size(), 1u);

  Train(members, {.plan = {.version = 4, .batch_sizes = {7}}});

  EXPECT_EQ(all[0].reason(), "1 rounds completed");
  ExpectSame(all[0], alone);
  ASSERT_EQ(all[0].reports().size(), 1u);
  const policies::Report& report = all[0].reports()[0];
  EXPECT_EQ(report.samples, 3 * kPeriod);
  EXPECT_EQ(report.samples_global, 3 * kPeriod);
  EXPECT_EQ(report.steps, kPeriod);
  EXPECT_EQ(report.plan_version, 4u);
  EXPECT_EQ(report.epoch_consumed, 3 * kPeriod);
}

// Two go on; who joins them takes no step of it, and all combine.
TEST(JoinerTest, HasNoPartInTheWindowThatGoesOn) {
  Way way = OfSgd();
  way.options.stop = {.rounds = 1};
  Members without(way.options, 2);
  std::vector<Survivor*> undisturbed = without.Everybody();
  Train(undisturbed, {.plan = PlanOf(way, {3, 2})});
  Members all(way.options, 3);
  all[2].SetParameters(7);
  std::vector<Survivor*> members = {&all[0], &all[1]};
  Train(members,
        {.plan = PlanOf(way, {3, 2}), .after_step = LoseAfter(0, {2, 3}), .told_of_rounds = false});

  members = all.Everybody();
  Train(members, {.plan = PlanOf(way, {2, 2, 5})});

  for (std::size_t i = 0; i < 2; ++i) ExpectSame(all[i], without[i]);
  ExpectAlike(members);
  EXPECT_TRUE(all[2].used().empty());
  ASSERT_EQ(all[2].reports().size(), 1u);
  EXPECT_EQ(all[2].reports()[0].samples, 0u);
  EXPECT_EQ(all[2].reports()[0].contributors, 2u);
}

// The others had applied the window that it lost, and were within the next.
TEST(BehindTest, WhoIsBehindLetsGoOfItsWindowAndTheOthersGoOnWithTheirs) {
  const Way way = OfSgd();
  Members all(way.options);
  std::vector<Survivor*> members = all.Everybody();
  TrainTorn(members, {.plan = PlanOf(way, {3, 2, 4}), .told_of_rounds = false},
            {.rounds = 1, .ranks = {false, false, true}});
  ASSERT_EQ(all[0].member().rounds, 2u);
  ASSERT_EQ(all[1].member().rounds, 2u);
  ASSERT_EQ(all[2].member().rounds, 1u);
  EXPECT_TRUE(all[2].member().window.has_value());

  Train(members, {.plan = PlanOf(way, {3, 2, 4})});

  ASSERT_EQ(members.size(), 3u);
  ExpectAlike(members);
  EXPECT_EQ(TimesUsed(members, kSamples), std::vector<std::uint64_t>(kSamples, 3));
  const auto samples = [&](std::size_t i, std::uint64_t round) {
    const auto& reports = all[i].reports();
    const auto found = std::ranges::find(reports, round, &policies::Report::round);
    return found == reports.end() ? 0 : found->samples;
  };
  EXPECT_EQ(samples(0, 2), 3 * kPeriod);
  EXPECT_EQ(samples(1, 2), 2 * kPeriod);
  EXPECT_EQ(samples(2, 2), 0u);
  EXPECT_EQ(samples(2, 3), 4 * kPeriod);
}

// It has applied what the others have, and has not begun what they have begun.
TEST(BetweenRoundsTest, WhoHasNotBegunTheWindowHasNoPartInIt) {
  const Way way = OfSgd();
  Members all(way.options);
  std::vector<Survivor*> members = all.Everybody();
  const auto lose_at_edge = [](RoundEngine& engine, Transport& transport) {
    if (transport.rank() != 0 || engine.rounds() != 2 || !engine.at_edge()) return;
    transport.Abort("told to");
    engine.LoseGroup("told to");
  };
  Train(members,
        {.plan = PlanOf(way, {3, 2, 4}), .after_step = lose_at_edge, .told_of_rounds = false});
  EXPECT_FALSE(all[0].member().window.has_value());
  ASSERT_TRUE(all[1].member().window.has_value());

  Train(members, {.plan = PlanOf(way, {3, 2, 4})});

  ExpectAlike(members);
  EXPECT_EQ(TimesUsed(members, kSamples), std::vector<std::uint64_t>(kSamples, 3));
  EXPECT_EQ(all[0].reports()[2].samples, 0u);
  EXPECT_EQ(all[1].reports()[2].samples, 2 * kPeriod);
  EXPECT_EQ(all[2].reports()[2].samples, 4 * kPeriod);
}

// ---- Windows that do not

class OtherPlanTest : public testing::TestWithParam<Plan> {};

// All is as if the window had not begun: momentum, too.
TEST_P(OtherPlanTest, LetsGoOfTheWindow) {
  const Way way = OfSgd();
  Plan plan = GetParam();
  plan.batch_sizes = {3, 2};
  Members without(way.options, 2);
  std::vector<Survivor*> undisturbed = without.Everybody();
  Train(undisturbed, {.plan = plan});
  Members all(way.options);
  std::vector<Survivor*> members = all.Everybody();
  Train(members,
        {.plan = PlanOf(way, {3, 2, 4}), .before_step = DieIn(0, 2), .told_of_rounds = false});

  Train(members, {.plan = plan});

  for (std::size_t i = 0; i < 2; ++i) ExpectSame(all[i], without[i]);
  EXPECT_EQ(TimesUsed(members, kSamples), std::vector<std::uint64_t>(kSamples, 3));
}

INSTANTIATE_TEST_SUITE_P(Plans, OtherPlanTest,
                         testing::Values(Plan{}, Plan{.synchronization = Synchronization::kPeriodic,
                                                      .period = 2,
                                                      .aggregation = Aggregation::kAdasum}),
                         [](const auto& plan) {
                           return plan.param.period == 1 ? "EveryStep" : "Adasum";
                         });

// Of a group that its members had begun anew meanwhile.
TEST(OtherWindowTest, TwoWindowsThatAreNotTheSameAreLetGoOf) {
  const Way way = OfSgd();
  Members all(way.options, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<Survivor*> apart = {&all[i]};
    Train(apart, {.plan = PlanOf(way, {static_cast<std::uint32_t>(3 + i)}),
                  .after_step = LoseAfter(0, {3}),
                  .told_of_rounds = false});
    ASSERT_TRUE(all[i].member().window.has_value());
  }

  std::vector<Survivor*> members = all.Everybody();
  Train(members, {.plan = PlanOf(way, {3, 2, 4})});

  Members whole(way.options);
  std::vector<Survivor*> undisturbed = whole.Everybody();
  Train(undisturbed, {.plan = PlanOf(way, {3, 2, 4})});
  for (std::size_t i = 0; i < 3; ++i) ExpectSame(all[i], whole[i]);
}

TEST(RestoredTest, WhoGoesOnFromAStateHasNoWindow) {
  const Way way = OfSgd();
  Survivor survivor(way.options);
  const EngineState start = survivor.State();
  std::vector<Survivor*> members = {&survivor};
  Train(members,
        {.plan = PlanOf(way, {3}), .after_step = LoseAfter(0, {3}), .told_of_rounds = false});
  ASSERT_TRUE(survivor.member().window.has_value());

  survivor.member().Restore(start);

  EXPECT_FALSE(survivor.member().window.has_value());
  EXPECT_EQ(survivor.parameters(), std::vector<float>(Survivor::kLength));
}

class LostTrialWindowTest : public testing::TestWithParam<bool> {};

// Where the trial is undone, so is what began within it.
TEST_P(LostTrialWindowTest, GoesOnUnlessTheTrialIsUndone) {
  const bool led_up = GetParam();
  const Way way = OfSgd();
  Members all(way.options);
  std::vector<Survivor*> members = all.Everybody();
  Plan trial = PlanOf(way, {3, 2, 4});
  trial.version = 1;
  trial.trial = policies::Trial::kBegins;
  const auto before_step = [&](RoundEngine& engine, Transport& transport) {
    if (engine.rounds() == 2) engine.OfferPlan(trial);
    if (led_up && engine.plan().version == 1) {
      all[static_cast<std::size_t>(transport.rank())].AddLoss(1e6);
    }
    return true;
  };

  Train(members, {.plan = PlanOf(way, {3, 2, 4}),
                  .before_step = before_step,
                  .after_step = LoseAfter(6, {3, 2, 1}),
                  .told_of_rounds = false});

  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[i].member().rounds, 6u);
    EXPECT_EQ(all[i].parameters(), all[0].parameters());
    EXPECT_EQ(all[i].member().window.has_value(), !led_up);
  }
  Train(members, {.plan = PlanOf(way, {3, 2, 4})});
  ExpectAlike(members);
  EXPECT_EQ(TimesUsed(members, kSamples), std::vector<std::uint64_t>(kSamples, 3));
}

INSTANTIATE_TEST_SUITE_P(Both, LostTrialWindowTest, testing::Bool(),
                         [](const auto& led_up) { return led_up.param ? "LedUp" : "LedDown"; });

// A step that was not taken before the loss has the window undone after it, everywhere.
TEST(NotFiniteTest, AWindowThatIsOfNoUseIsNoneInTheNextGroupEither) {
  Way way = OfSgd();
  way.options.stop = {.rounds = 1};
  Members all(way.options);
  std::vector<Survivor*> members = all.Everybody();
  const auto spoil = [&](RoundEngine&, Transport& transport) {
    if (transport.rank() == 1) all[1].AddLoss(std::numeric_limits<double>::quiet_NaN());
    return transport.rank() != 2;
  };
  Train(members, {.plan = PlanOf(way, {3, 2, 4}),
                  .before_step = spoil,
                  .after_step = LoseAfter(0, {4, 1, kAllBatches}),
                  .told_of_rounds = false});

  Train(members, {.plan = PlanOf(way, {3, 2})});

  ASSERT_EQ(members.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(all[i].parameters(), std::vector<float>(Survivor::kLength));
    EXPECT_EQ(all[i].reports()[0].nonfinite_members, 1u);
    EXPECT_EQ(all[i].reports()[0].samples_global, 5 * kPeriod);
  }
}

// ---- What the record says

TEST(ReportOfWindowTest, TellsOfAllOfItsTime) {
  Way way = OfSgd();
  way.options.stop = {.rounds = 1};
  Members all(way.options, 2);
  std::vector<Survivor*> members = all.Everybody();
  Train(members,
        {.plan = PlanOf(way, {4, 2}), .after_step = LoseAfter(0, {4, 2}), .told_of_rounds = false});
  Train(members, {.plan = PlanOf(way, {4, 2})});

  const policies::Report& report = all[0].reports()[0];
  EXPECT_EQ(report.samples, 4 * kPeriod);
  EXPECT_EQ(report.steps, kPeriod);
  // Six batches of a tick of the test's clock each, at least.
  EXPECT_GE(report.compute_seconds, 0.0059);
  EXPECT_GE(report.round_seconds, report.compute_seconds);
  EXPECT_NEAR(ToSeconds(all[0].member().train_time), report.round_seconds, 1e-8);
}

// ---- Elastic windows, which hang on time

TEST(ElasticRegroupTest, AllTakeThePeriodAtLeastAndTheLedgerIsExact) {
  Way way = OfSgd();
  way.options.elastic = true;
  for (const Batches& batches :
       {Batches{kAllBatches, kAllBatches, kAllBatches}, {3, 2, 1}, {kAllBatches, 1, kAllBatches}}) {
    Members all(way.options);
    std::vector<Survivor*> members = all.Everybody();
    Train(members, {.plan = PlanOf(way, {3, 2, 4}),
                    .before_step = DieIn(4, 2),
                    .after_step = LoseAfter(4, batches),
                    .told_of_rounds = false});
    ASSERT_EQ(members.size(), 2u);
    ASSERT_TRUE(all[0].member().window.has_value());

    Train(members, {.plan = PlanOf(way, {2, 2})});

    ExpectAlike(members);
    EXPECT_EQ(TimesUsed(all.Everybody(), kSamples), std::vector<std::uint64_t>(kSamples, 3));
    const policies::Report& report = all[0].reports()[4];
    EXPECT_GE(report.steps, kPeriod);
    EXPECT_EQ(report.samples, 3 * report.steps) << "it goes on with the sizes it began with";
  }
}

}  // namespace
}  // namespace tactus::engine
