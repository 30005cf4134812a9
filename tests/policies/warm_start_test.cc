// Jobs that begin with what a former one found, in closed loops: sooner where it is right, and
// hardly later where it is not.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "policies/decision.h"
#include "policies/encodings.h"
#include "policies/plan_names.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

struct Setting {
  double transfer_seconds = 0.6;  // a step lasts 0.058 s
  double variance = 30;           // of one sample's gradient
  double drift = 0.02;
  std::uint64_t seed = 1;
};

VirtualJobOptions Options(const Setting& setting) {
  VirtualJobOptions options{
      .workers = {{.speed = 800}, {.speed = 800}, {.speed = 400}, {.speed = 200}},
      .transfer_seconds = setting.transfer_seconds,
      .noise = 0.05,
      .tried_speeds = {780, 810, 410, 195},
      .seed = setting.seed};
  options.planner.batch_policy = "auto";
  options.planner.synchronization.policy = "auto";
  options.planner.learning_rate_policy = "auto";
  options.loss.variance = setting.variance;
  options.loss.drift = setting.drift;
  options.loss.sample_noise = 0.3;
  return options;
}

// What a job of this setting hands on after five minutes.
std::optional<Prior> HandedOn(const Setting& setting) {
  VirtualJob job(Options(setting));
  job.RunUntil(300);
  return job.planner().Learned();
}

double SecondsTo(double loss, const VirtualJobOptions& options) {
  VirtualJob job(options);
  do job.Run(1);
  while (job.loss() > loss && job.seconds() < 3000);
  return job.seconds();
}

// The logarithm of its time over that without a prior, to 1.02 of the loss that one without has
// after so many seconds.
double LogRatio(const Setting& setting, const std::optional<Prior>& prior, double seconds) {
  VirtualJobOptions options = Options(setting);
  VirtualJob cold(options);
  cold.RunUntil(seconds);
  const double loss = 1.02 * cold.loss();
  const double without = SecondsTo(loss, options);
  options.prior = prior;
  return std::log(SecondsTo(loss, options) / without);
}

std::string FirstSynchronization(const VirtualJob& job) {
  return ValueOf(job.plans().front(), Axis::kSynchronization);
}

TEST(WarmStartTest, AJobBeginsWithThePeriodThatAFormerOneFound) {
  VirtualJobOptions options = Options({});
  options.prior = Prior{.period = 12, .transfer_seconds = 0.6};
  Planner planner(options.planner);

  const Revision first =
      planner.Start({.members = 4, .speeds = options.tried_speeds, .prior = options.prior});

  EXPECT_EQ(first.plan.synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(first.plan.period, 12u);
  const auto decision = std::ranges::find(first.decisions, Axis::kSynchronization, &Decision::axis);
  ASSERT_NE(decision, first.decisions.end());
  EXPECT_EQ(decision->reason, "periodic 12: as a former job of this kind found; tried out");
}

// sqrt(D / s (1 / d - 1)), where the gain of four members could be 4: 5.5 roots of the transfer
// over the step, 17 steps.
TEST(WarmStartTest, ItBeginsWithNoMoreThanTheGuessAndNoLessThanAQuarterOfIt) {
  VirtualJobOptions options = Options({});
  options.prior = Prior{.period = 4'000'000'000, .transfer_seconds = 0.6};
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "periodic 17");
  options.prior->period = 2;
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "periodic 4");
}

TEST(WarmStartTest, WhatIsOfNoUseIsNotBegunWith) {
  VirtualJobOptions options = Options({});
  options.prior = Prior{.period = 1, .transfer_seconds = 0.6};
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
  options.prior = Prior{.period = 48, .transfer_seconds = 0};
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
  options.prior = Prior{.period = 48, .transfer_seconds = 0.6};
  options.tried_speeds = {780, 810, 0, 195};
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
  options.tried_speeds.clear();
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
}

TEST(WarmStartTest, AFrozenSynchronizationIsLeftAloneAndHandsNothingOn) {
  VirtualJobOptions options = Options({});
  options.prior = Prior{.period = 48, .transfer_seconds = 0.6};
  options.planner.frozen = {Axis::kSynchronization};
  VirtualJob job(options);

  job.Run(50);

  EXPECT_EQ(FirstSynchronization(job), "every_step");
  EXPECT_FALSE(job.planner().Learned().has_value());
}

TEST(WarmStartTest, OneMemberAlonePaysNoHeed) {
  VirtualJobOptions options = Options({});
  options.workers.resize(1);
  options.tried_speeds.resize(1);
  options.prior = Prior{.period = 48, .transfer_seconds = 0.6};

  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
}

TEST(WarmStartTest, AGroupThatMeetsAnewPaysNoHeed) {
  VirtualJobOptions options = Options({});
  options.prior = Prior{.period = 48, .transfer_seconds = 0.6};
  VirtualJob job(options);
  job.Run(1);

  job.Regroup();

  EXPECT_EQ(job.plan().synchronization, Synchronization::kEveryStep);
}

TEST(WarmStartTest, ProvedItIsHandedOnAndOtherPeriodsAreTried) {
  VirtualJobOptions options = Options({});
  options.planner.base_batch = 128;  // no gain for which steps of all would be preferred
  options.prior = Prior{.period = 20, .transfer_seconds = 0.6};
  VirtualJob job(options);

  job.Run(2);
  EXPECT_FALSE(job.planner().Learned().has_value());
  job.Run(1);
  ASSERT_TRUE(job.planner().Learned().has_value());
  EXPECT_EQ(job.planner().Learned()->period, 20u);
  EXPECT_NEAR(job.planner().Learned()->transfer_seconds, 0.6, 0.1);

  job.Run(40);
  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kSynchronization);
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions[0].from, "periodic 20");
  EXPECT_EQ(decisions[0].to, "periodic 5");
  EXPECT_EQ(decisions[0].reason,
            "tried out for 5.00 % of the training time: whether fewer local steps lead lower");
}

// From there on as a job without, by rounds of every step.
TEST(WarmStartTest, AFasterNetworkEndsItWithTheFirstRound) {
  VirtualJobOptions options = Options({.transfer_seconds = 0.2});
  options.prior = Prior{.period = 48, .transfer_seconds = 2};
  VirtualJob job(options);

  job.Run(40);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kSynchronization);
  ASSERT_GE(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].round, 0u);
  EXPECT_EQ(decisions[0].to, "every_step");
  EXPECT_TRUE(decisions[0].reason.starts_with(
      "what a former job of this kind found does not hold: a transfer takes 0."))
      << decisions[0].reason;
  EXPECT_EQ(decisions[1].from, "every_step");
  // Its plan travels two rounds; the first window, of seconds, told speeds and transfer.
  EXPECT_EQ(decisions[1].round, 2u);
  EXPECT_TRUE(decisions[1].reason.starts_with("a transfer of 0.")) << decisions[1].reason;
}

// ---- Without a prior, by what an exchange should take

// With an encoding that is chosen, too.
VirtualJobOptions AutoByLinks(double exchange_seconds) {
  VirtualJobOptions options = Options({});
  options.planner.encoding_policy = "auto";
  options.exchange_seconds = exchange_seconds;
  return options;
}

std::string ReasonOf(const Revision& revision, Axis axis) {
  const auto decision = std::ranges::find(revision.decisions, axis, &Decision::axis);
  return decision == revision.decisions.end() ? "" : decision->reason;
}

// 5.5 roots of the transfer over the step, as above.
TEST(WarmStartTest, AJobWhoseLinksAreKnownBeginsWithTheGuess) {
  const VirtualJobOptions options = Options({});
  Planner planner(options.planner);
  StartingGroup group{.members = 4, .speeds = options.tried_speeds};
  group.exchange_seconds = 6;

  const Revision first = planner.Start(group);

  EXPECT_EQ(ValueOf(first.plan, Axis::kSynchronization), "periodic 55");
  const char* const reason =
      "periodic 55: an exchange should take 6.00 s, by what the links brought before; until it is "
      "measured";
  EXPECT_EQ(ReasonOf(first, Axis::kSynchronization), reason);
}

TEST(WarmStartTest, LinksThatAreFastOrNotKnownLeaveEveryStep) {
  VirtualJobOptions options = Options({});
  options.exchange_seconds = 2.9;  // soon measured
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
  options.exchange_seconds = 6;
  options.tried_speeds.clear();
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
}

TEST(WarmStartTest, WhatAFormerJobFoundIsOfMoreWorthThanLinks) {
  VirtualJobOptions options = Options({});
  options.prior = Prior{.period = 12, .transfer_seconds = 0.6};
  options.exchange_seconds = 6;
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "periodic 12");
}

TEST(WarmStartTest, WhereTheEncodingIsAutoAJobBeginsWithHalfTheBytesAndTheGuessForThem) {
  VirtualJobOptions options = Options({});
  options.planner.encoding_policy = "auto";
  Planner planner(options.planner);
  StartingGroup group{.members = 4, .speeds = options.tried_speeds};
  group.exchange_seconds = 12;

  const Revision first = planner.Start(group);

  EXPECT_EQ(first.plan.encoding, Encoding::kFloat16);
  EXPECT_EQ(ValueOf(first.plan, Axis::kSynchronization), "periodic 55");
  const char* const reason =
      "periodic 55: an exchange should take 6.00 s, by what the links brought before; until it is "
      "measured";
  EXPECT_EQ(ReasonOf(first, Axis::kSynchronization), reason);
  const char* const of_encoding =
      "float16: a dense exchange should take 12.0 s, by what the links brought before";
  EXPECT_EQ(ReasonOf(first, Axis::kEncoding), of_encoding);
}

// 3 s of an exchange are half of 6, and encoding 5 ns a value.
TEST(WarmStartTest, WhereEncodingMayTakeLongAJobBeginsDense) {
  StartingGroup group{.members = 4};
  group.exchange_seconds = 6;

  group.exchange_values = 3 / 5e-9 / 4 * 0.99;
  EXPECT_EQ(group.EncodingByLinks(), Encoding::kFloat16);
  group.exchange_values = 3 / 5e-9 / 4 * 1.01;
  EXPECT_EQ(group.EncodingByLinks(), Encoding::kDense);
}

TEST(WarmStartTest, AnExchangeIsLongFromThreeSecondsOn) {
  StartingGroup group{.members = 4};
  group.exchange_seconds = kLongExchangeSeconds;
  EXPECT_EQ(group.EncodingByLinks(), Encoding::kFloat16);
  group.exchange_seconds = 2.99;
  EXPECT_EQ(group.EncodingByLinks(), Encoding::kDense);
}

// Its operator takes whole vectors: neither the exchange nor the guess is of half the bytes.
TEST(WarmStartTest, AdasumBeginsDense) {
  VirtualJobOptions options = AutoByLinks(12);
  options.planner.aggregation_policy = "adasum";
  const VirtualJob job(options);

  EXPECT_EQ(job.plan().encoding, Encoding::kDense);
  EXPECT_EQ(FirstSynchronization(job), "periodic 78");
}

TEST(WarmStartTest, WithoutSpeedsHalfTheBytesGoWithEveryStep) {
  VirtualJobOptions options = AutoByLinks(12);
  options.tried_speeds.clear();
  const VirtualJob job(options);

  EXPECT_EQ(job.plan().encoding, Encoding::kFloat16);
  EXPECT_EQ(FirstSynchronization(job), "every_step");
}

TEST(WarmStartTest, AFormerJobsEncodingGoesBeforeTheLinks) {
  VirtualJobOptions options = AutoByLinks(12);
  options.prior = Prior{.period = 12, .transfer_seconds = 0.6};

  EXPECT_EQ(VirtualJob(options).plan().encoding, Encoding::kDense);
}

TEST(WarmStartTest, LinksDoNotMoveAFrozenEncoding) {
  VirtualJobOptions options = AutoByLinks(12);
  options.planner.frozen = {Axis::kEncoding};

  EXPECT_EQ(VirtualJob(options).plan().encoding, Encoding::kDense);
}

// Nothing was measured, but the group before ran it.
TEST(WarmStartTest, AGroupThatFormsAgainBeforeARoundHasTheEncodingOfTheFormer) {
  VirtualJobOptions options = Options({});
  options.planner.encoding_policy = "auto";
  Planner planner(options.planner);
  StartingGroup group{.members = 4, .speeds = options.tried_speeds};
  group.exchange_seconds = 12;
  const Revision first = planner.Start(group);
  group.exchange_seconds = 0;
  group.before = first.plan;

  const Revision again = planner.Start(group);

  EXPECT_EQ(again.plan.encoding, Encoding::kFloat16);
  EXPECT_EQ(ReasonOf(again, Axis::kEncoding), "float16: as in the group before");
}

TEST(WarmStartTest, WhoKnowsNoOtherEncodingBeginsDense) {
  VirtualJobOptions options = AutoByLinks(12);
  options.encodings.emplace();
  const VirtualJob job(options);

  EXPECT_EQ(job.plan().encoding, Encoding::kDense);
  EXPECT_EQ(FirstSynchronization(job), "periodic 78");
}

TEST(WarmStartTest, LinksThatAreFastLeaveTheEncodingDense) {
  VirtualJobOptions options = AutoByLinks(2.9);

  EXPECT_EQ(VirtualJob(options).plan().encoding, Encoding::kDense);
}

// Its transfer measured, dense values are as good, and what encoding takes is saved.
TEST(WarmStartTest, LinksThatAreMuchFasterThanTheyWereLeadBackToDense) {
  VirtualJobOptions options = Options({.transfer_seconds = 0.02});
  options.planner.encoding_policy = "auto";
  options.encode_seconds = 0.05;
  options.update_seconds = 0.05 / RowOf(Encoding::kFloat16).updates;
  options.exchange_seconds = 6;
  VirtualJob job(options);
  ASSERT_EQ(job.plan().encoding, Encoding::kFloat16);

  job.Run(3000);

  EXPECT_EQ(job.plan().encoding, Encoding::kDense);
}

TEST(WarmStartTest, WhatIsLostInTheFirstEncodedWindowsLeadsToDense) {
  VirtualJobOptions options = AutoByLinks(12);
  options.loss.floor = std::numeric_limits<double>::infinity();
  VirtualJob job(options);

  job.Run(4);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kEncoding);
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions[0].to, "dense");
}

TEST(WarmStartTest, LinksThatAreKnownSayNothingOfOtherEncodings) {
  VirtualJobOptions options = Options({});
  options.exchange_seconds = 6;
  options.planner.encoding_policy = "float16";
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
}

TEST(WarmStartTest, LinksDoNotMoveAFrozenSynchronization) {
  VirtualJobOptions options = Options({});
  options.exchange_seconds = 6;
  options.planner.frozen = {Axis::kSynchronization};
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "every_step");
}

// As soon as its transfer is measured: 0.2 s are known after three rounds.
TEST(WarmStartTest, LinksThatAreFasterThanTheyWereShortenIt) {
  VirtualJobOptions options = Options({.transfer_seconds = 0.2});
  options.exchange_seconds = 20;
  VirtualJob job(options);
  const std::uint32_t first = job.plan().period;

  job.Run(8);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kSynchronization);
  ASSERT_FALSE(decisions.empty());
  EXPECT_LE(decisions[0].round, 3u);
  EXPECT_TRUE(decisions[0].reason.starts_with("a transfer of 0.")) << decisions[0].reason;
  EXPECT_LT(job.plan().period, first / 2);
}

// The gain of four members could be 4, and is found to be 1.
TEST(WarmStartTest, TheGuessIsLongerOnceTheGainIsKnown) {
  VirtualJobOptions options = Options({.transfer_seconds = 6});
  options.exchange_seconds = 6;
  VirtualJob job(options);
  const std::uint32_t first = job.plan().period;

  job.Run(6);

  EXPECT_GT(job.plan().period, first);
}

// 22 roots of the transfer over the step are 226, and no period is longer than 128.
TEST(WarmStartTest, OptimizersThatBeginWithTheRateAsGivenHaveNoGain) {
  VirtualJobOptions options = Options({});
  options.exchange_seconds = 6;
  options.planner.optimizer = "adamw";
  EXPECT_EQ(FirstSynchronization(VirtualJob(options)), "periodic 128");
}

TEST(WarmStartTest, AGuessIsLeftWhereNumbersAreNotFinite) {
  VirtualJobOptions options = Options({});
  options.exchange_seconds = 6;
  options.loss.floor = std::numeric_limits<double>::infinity();
  VirtualJob job(options);

  job.Run(4);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kSynchronization);
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions[0].to, "every_step");
  EXPECT_EQ(decisions[0].reason, "numbers were not finite in the first windows");
}

// Once another period was tried.
TEST(WarmStartTest, WhatBeganByLinksIsHandedOnOnceTheLossHasJudged) {
  VirtualJobOptions options = Options({.transfer_seconds = 6});
  options.planner.base_batch = 128;
  options.exchange_seconds = 6;
  VirtualJob job(options);

  job.Run(4);
  EXPECT_FALSE(job.planner().Learned().has_value());
  job.RunUntil(2000);

  EXPECT_TRUE(job.planner().Learned().has_value());
}

TEST(WarmStartTest, NothingIsHandedOnBeforeAnythingIsJudged) {
  VirtualJob job(Options({}));
  job.Run(5);

  EXPECT_FALSE(job.planner().Learned().has_value());
}

TEST(WarmStartTest, ARunThatLostRoundsHandsNothingOn) {
  VirtualJobOptions options = Options({});
  VirtualJob job(options);
  job.RunUntil(100);
  ASSERT_TRUE(job.planner().Learned().has_value());

  job.options().loss.floor = std::numeric_limits<double>::infinity();
  job.Run(1);

  EXPECT_FALSE(job.planner().Learned().has_value());
}

struct Ratios {
  double mean = 0;   // geometric, of 24 settings
  double worst = 0;  // setting
};

// Of four draws each.
template <typename PriorOf>
Ratios RatiosAt(double seconds, const PriorOf& prior_of) {
  constexpr int kDraws = 4;
  constexpr int kSettings = 24;
  double sum = 0;
  double worst = 0;
  for (int index = 0; index < kSettings; ++index) {
    Setting setting{.transfer_seconds = std::array{0.06, 0.2, 0.6, 2.0}[index % 4],
                    .variance = std::array{1.0, 30.0, 300.0}[index / 4 % 3],
                    .drift = std::array{0.02, 0.2}[index / 12]};
    double log_ratio = 0;
    for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
      setting.seed = seed;
      const std::optional<Prior> prior = prior_of(setting);
      setting.seed = seed + 100;
      log_ratio += LogRatio(setting, prior, seconds) / kDraws;
    }
    sum += log_ratio / kSettings;
    worst = std::max(worst, std::exp(log_ratio));
  }
  return {.mean = std::exp(sum), .worst = worst};
}

TEST(WarmStartRegretTest, WhatAFormerJobFoundLeadsToTheSameLossSooner) {
  for (const double seconds : {100.0, 300.0}) {
    const Ratios ratios = RatiosAt(seconds, HandedOn);
    EXPECT_LT(ratios.mean, 0.9) << seconds;
    EXPECT_LT(ratios.worst, 1.8) << seconds;  // of four draws, which differ by a factor of two
  }
}

// Of the right network, so that nothing but the loss can tell.
TEST(WarmStartRegretTest, AnAbsurdPeriodCostsNothingOnAverage) {
  for (const std::uint32_t period : {2u, 65536u}) {
    const Ratios ratios = RatiosAt(100, [&](const Setting& setting) {
      return std::optional(Prior{.period = period, .transfer_seconds = setting.transfer_seconds});
    });
    EXPECT_LT(ratios.mean, 1.05) << period;
  }
}

// A first window of 128 steps is 7 s, as are the two in which the way back travels; and of a rate
// that gains each of its steps drifts further, from which the cold start keeps away.
TEST(WarmStartRegretTest, ThePeriodOfAnotherNetworkCostsAFewRounds) {
  for (const double transfer : {0.001, 100.0}) {
    const Ratios ratios = RatiosAt(100, [&](const Setting&) {
      return std::optional(Prior{.period = 65536, .transfer_seconds = transfer});
    });
    EXPECT_LT(ratios.mean, transfer < 1 ? 1.35 : 1.75) << transfer;
  }
}

}  // namespace
}  // namespace tactus::policies
