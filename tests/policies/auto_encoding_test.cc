// The encoding that `auto` chooses, in closed loops: what it tries, keeps and takes back, and when.

#include "policies/auto_encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/catalogue.h"
#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

using testing::HasSubstr;

// Four equal workers whose step takes 0.32 s.
VirtualJobOptions FourWorkers(double transfer_seconds) {
  VirtualJobOptions options;
  options.workers.assign(4, {.speed = 100});
  options.transfer_seconds = transfer_seconds;
  options.planner.batch_policy = "fixed";
  options.planner.encoding_policy = "auto";
  options.noise = 0.02;
  return options;
}

// Of the rounds' plans, in order, without those that changed something else.
std::vector<Encoding> EncodingsOf(const VirtualJob& job) {
  std::vector<Encoding> encodings;
  for (const Plan& plan : job.plans()) encodings.push_back(plan.encoding);
  encodings.erase(std::unique(encodings.begin(), encodings.end()), encodings.end());
  return encodings;
}

using Encodings = std::vector<Encoding>;
constexpr Encoding kDense = Encoding::kDense;
constexpr Encoding kFloat16 = Encoding::kFloat16;
constexpr Encoding kDq = Encoding::kDq;
constexpr Encoding kAdacomp = Encoding::kAdacomp;

TEST(AutoEncodingTest, ATransferThatIsMuchOfARoundIsHalvedWithinTheFirstRounds) {
  VirtualJob job(FourWorkers(0.4));

  job.Run(6);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16}));
  const Decision decision = job.DecisionsOf(Axis::kEncoding).front();
  EXPECT_LE(decision.round, 3u);
  EXPECT_EQ(decision.from, "dense");
  EXPECT_EQ(decision.to, "float16");
  EXPECT_EQ(decision.metric, "useful samples/s");
  EXPECT_NEAR(decision.predicted_gain, 0.72 / 0.52 - 1, 0.05);
}

TEST(AutoEncodingTest, WhatPaysStaysAndIsMeasured) {
  VirtualJob job(FourWorkers(0.4));

  job.Run(3000);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16}));
  ASSERT_EQ(job.measured().size(), 1u);
  EXPECT_NEAR(job.measured()[0].measured_gain.value_or(0), 0.72 / 0.52 - 1, 0.1);
}

TEST(AutoEncodingTest, AFastLinkIsLeftAlone) {
  VirtualJob job(FourWorkers(0.01));

  job.Run(1000);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense}));
}

// What the transfer is made of only the trial tells; it comes again ever less often.
TEST(AutoEncodingTest, OfLatencyFewerBytesSaveNothingAndAreTakenBack) {
  VirtualJobOptions options = FourWorkers(0.4);
  options.latency_seconds = 0.4;
  VirtualJob job(options);

  job.RunUntil(3600);

  ASSERT_GE(EncodingsOf(job).size(), 3u);
  EXPECT_EQ(job.plan().encoding, kDense);
  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kEncoding);
  // 3, 9, 27 ... times the seconds of the first, there and back.
  EXPECT_LE(decisions.size(), 2u * 7);
  EXPECT_NE(decisions[1].reason.find("did not pay"), std::string::npos) << decisions[1].reason;
  // A promise of a third that brings nothing is seen at once.
  EXPECT_LE(decisions[1].round - decisions[0].round, 8u);
}

TEST(AutoEncodingTest, WhereEncodingTakesLongerThanItSavesItIsNotTried) {
  VirtualJobOptions options = FourWorkers(0.1);
  options.update_seconds = 0.1 / RowOf(kFloat16).updates;
  VirtualJob job(options);

  job.Run(1000);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense}));
}

TEST(AutoEncodingTest, AnUpdateThatTakesLongSaysLittleOfWhatFewValuesTakeToEncode) {
  VirtualJobOptions options = FourWorkers(0.4);
  options.update_seconds = 1;
  options.parameters = 1e6;
  VirtualJob job(options);

  job.Run(6);

  EXPECT_EQ(job.plan().encoding, kFloat16);
  EXPECT_NEAR(job.DecisionsOf(Axis::kEncoding)[0].inputs[3].value, 0.005, 1e-9);
}

TEST(AutoEncodingTest, WhereItWasNotForeseenThatItTakesLongerItIsTakenBack) {
  VirtualJobOptions options = FourWorkers(0.1);
  options.encode_seconds = 0.06;
  VirtualJob job(options);

  job.Run(300);

  EXPECT_EQ(EncodingsOf(job).at(1), kFloat16);
  EXPECT_EQ(job.plan().encoding, kDense);
}

TEST(AutoEncodingTest, ALinkThatBecomesFastLeavesNothingToEncodeFor) {
  VirtualJobOptions options = FourWorkers(0.4);
  options.encode_seconds = 0.08;
  options.update_seconds = 0.08 / RowOf(kFloat16).updates;
  VirtualJob job(options);
  job.Run(100);
  ASSERT_EQ(job.plan().encoding, kFloat16);

  job.options().transfer_seconds = 0.01;
  job.Run(300);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16, kDense}));
}

// The period is that of the transfer that there is then.
// Rounds of every step would be of the longest kind until the new transfer is measured.
TEST(AutoEncodingTest, AVerySlowLinkHasFewerBytesAndAPeriodForThemInOnePlan) {
  VirtualJobOptions options = FourWorkers(10);
  options.planner.synchronization.policy = "auto";
  VirtualJob job(options);

  job.Run(10);

  const std::vector<Plan>& plans = job.plans();
  ASSERT_GE(plans.size(), 2u);
  EXPECT_EQ(plans[1].version, plans[0].version + 1);
  EXPECT_EQ(plans[1].encoding, kFloat16);
  EXPECT_EQ(plans[1].synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(plans[1].trial, Trial::kBegins);
  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16}));
  const Decision encoding = job.DecisionsOf(Axis::kEncoding).front();
  const Decision period = job.DecisionsOf(Axis::kSynchronization).front();
  EXPECT_EQ(encoding.plan_version, plans[1].version);
  EXPECT_EQ(period.plan_version, plans[1].version);
  EXPECT_NEAR(period.inputs[0].value, 5, 0.5) << period.inputs[0].name;
  EXPECT_EQ(encoding.metric, "") << "the gain of both is told of the period";
  EXPECT_GT(period.predicted_gain, encoding.predicted_gain);
}

TEST(AutoEncodingTest, OfLatencyWhatCameWithAPeriodIsTakenBackAndThePeriodStays) {
  VirtualJobOptions options = FourWorkers(10);
  options.planner.synchronization.policy = "auto";
  options.latency_seconds = 10;
  VirtualJob job(options);

  job.Run(8);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16, kDense}));
  EXPECT_THAT(job.DecisionsOf(Axis::kEncoding).back().reason,
              HasSubstr("float16 did not pay: a transfer was to take 5"));
  EXPECT_EQ(job.plans().back().synchronization, Synchronization::kPeriodic);
}

TEST(AutoEncodingTest, TheSameLossComesSooner) {
  VirtualJobOptions options = FourWorkers(0.4);
  VirtualJob halves(options);
  options.planner.encoding_policy = "dense";
  VirtualJob dense(options);
  dense.RunUntil(300);

  do halves.Run(1);
  while (halves.loss() > dense.loss() && halves.seconds() < 300);

  EXPECT_LT(halves.seconds(), 300 / 1.25);
}

TEST(AutoEncodingTest, OneMemberHasNothingToEncode) {
  VirtualJobOptions options = FourWorkers(0.4);
  options.workers.resize(1);
  VirtualJob job(options);

  job.Run(100);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense}));
}

TEST(AutoEncodingTest, AGroupThatMeetsAnewBeginsWithWhatWasFound) {
  VirtualJob job(FourWorkers(0.4));
  job.Run(100);

  job.Regroup();

  EXPECT_EQ(job.plan().encoding, kFloat16);
  job.Run(100);
  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16}));
}

TEST(AutoEncodingTest, WhatWasNotJudgedWhenTheGroupEndedIsNotWhatTheNextBeginsWith) {
  VirtualJobOptions options = FourWorkers(0.4);
  options.latency_seconds = 0.3;  // brings less than half of what it promises
  VirtualJob job(options);
  job.Run(7);
  ASSERT_EQ(job.plan().encoding, kFloat16);

  job.Regroup();

  EXPECT_EQ(job.plan().encoding, kDense);
}

TEST(AutoEncodingTest, AJobBeginsWithWhatAFormerOneOfItsKindFound) {
  VirtualJobOptions options = FourWorkers(0.4);
  options.planner.synchronization.policy = "auto";
  options.prior = Prior{.period = 1, .transfer_seconds = 0.2, .encoding = kFloat16};
  VirtualJob job(options);

  job.Run(200);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kFloat16}));
}

TEST(AutoEncodingTest, APriorTellsTheEncodingThatItsTransferWasMeasuredWith) {
  VirtualJobOptions options = FourWorkers(4);
  options.planner.synchronization.policy = "auto";
  VirtualJob job(options);
  job.RunUntil(600);

  const std::optional<Prior> prior = job.planner().Learned();

  ASSERT_TRUE(prior.has_value());
  EXPECT_EQ(prior->encoding, kFloat16);
  EXPECT_NEAR(prior->transfer_seconds, 2, 0.2);
}

TEST(AutoEncodingTest, ATrialOutlivesItsCoordinator) {
  for (const double transfer_seconds : {0.4, 10.0}) {  // alone, and with a period
    VirtualJobOptions options = FourWorkers(transfer_seconds);
    options.planner.synchronization.policy = "auto";
    VirtualJob whole(options);
    VirtualJob restarted(options);
    for (int round = 0; round < 60; ++round) {
      whole.Run(1);
      restarted.Run(1);
      EXPECT_EQ(restarted.RestartPlanner(), "");
    }

    EXPECT_GE(whole.plans().size(), 2u);
    EXPECT_EQ(restarted.plans(), whole.plans());
  }
}

// ---- What is judged by the loss

// Of 4 s, 2 s in half of the bytes: a step is but a seventh of a round.
VirtualJobOptions SlowLinkOfAll() {
  VirtualJobOptions options = FourWorkers(4);
  options.loss.sample_noise = 0.1;
  return options;
}

// Of members that know none that leaves a rest.
VirtualJobOptions SlowLink(double noise) {
  VirtualJobOptions options = SlowLinkOfAll();
  options.encoding_noise = noise;
  options.encodings = {{kFloat16, kDq}};
  return options;
}

TEST(AutoEncodingTest, WhereFloat16IsNotEnoughAndTheLossBearsItBitsAreFew) {
  VirtualJob job(SlowLink(0));

  job.RunUntil(7200);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16, kDq}));
  const Decision decision = job.DecisionsOf(Axis::kEncoding)[1];
  // (0.32 + 2) / (0.32 + 4 * 10 / 64) of a round in a second.
  EXPECT_NEAR(decision.predicted_gain, 2.32 / 0.947 - 1, 0.1);
  EXPECT_NE(decision.reason.find("whether its noise"), std::string::npos) << decision.reason;
}

TEST(AutoEncodingTest, WhoGoesOnAfterALossKeepsOfBitsWhatTheLossHasJudged) {
  VirtualJob judged(SlowLink(0));
  judged.RunUntil(7200);
  ASSERT_EQ(judged.plan().encoding, kDq);
  judged.Regroup(true);
  EXPECT_EQ(judged.plan().encoding, kDq);

  VirtualJob on_trial(SlowLink(0));
  while (on_trial.plan().encoding != kDq) on_trial.Run(1);
  on_trial.Regroup(true);
  EXPECT_EQ(on_trial.plan().encoding, kFloat16);
}

TEST(AutoEncodingTest, ANoiseThatCostsMoreThanThePaceBringsIsTakenBack) {
  VirtualJobOptions options = SlowLink(100);
  options.loss.variance = 100;
  VirtualJob job(options);

  job.RunUntil(7200);

  ASSERT_GE(EncodingsOf(job).size(), 4u);
  EXPECT_EQ(EncodingsOf(job)[2], kDq);
  EXPECT_EQ(job.plan().encoding, kFloat16);
  const Decision back = job.DecisionsOf(Axis::kEncoding)[2];
  EXPECT_EQ(back.to, "float16");
  EXPECT_NE(back.reason.find("dq did not pay"), std::string::npos) << back.reason;
  EXPECT_NE(back.reason.find("not tried again"), std::string::npos) << back.reason;
}

TEST(AutoEncodingTest, WhereARoundIsNotForTheLargerPartATransferNoNoiseIsTried) {
  VirtualJob job(FourWorkers(0.4));

  job.RunUntil(7200);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16}));
}

// What a rate that follows the noise would lose is part of the price.
TEST(AutoEncodingTest, ARateThatFollowsTheNoiseIsGivenUpForIt) {
  VirtualJobOptions options = SlowLink(0);
  options.planner.learning_rate_policy = "auto";
  options.planner.base_batch = 128;
  VirtualJob job(options);

  job.RunUntil(7200);

  for (const Plan& plan : job.plans()) {
    EXPECT_EQ(plan.learning_rate_rule == LearningRateRule::kConstant, plan.encoding == kDq)
        << plan.version;
  }
  EXPECT_EQ(job.plan().encoding, kDq);
}

TEST(AutoEncodingTest, ARateThatTheJobAsksForIsKept) {
  VirtualJobOptions options = SlowLink(0);
  options.planner.learning_rate_policy = "adascale";
  VirtualJob job(options);

  job.RunUntil(7200);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16}));
}

TEST(AutoEncodingTest, ACanaryOutlivesItsCoordinator) {
  VirtualJob whole(SlowLink(0));
  VirtualJob restarted(SlowLink(0));
  while (whole.plan().encoding != kDq && whole.seconds() < 7200) {
    whole.Run(1);
    restarted.Run(1);
  }
  ASSERT_EQ(whole.plan().encoding, kDq);

  EXPECT_EQ(restarted.RestartPlanner(), "");

  whole.Run(300);
  restarted.Run(300);
  EXPECT_EQ(restarted.plans(), whole.plans());
}

// Four members send 2/22 of the bytes: 0.36 s of the 4.
TEST(AutoEncodingTest, WhereEveryStepIsAskedForWhatLeavesARestIsTriedFirst) {
  VirtualJob job(SlowLinkOfAll());

  job.RunUntil(7200);

  EXPECT_EQ(EncodingsOf(job), (Encodings{kDense, kFloat16, kAdacomp}));
  const Decision decision = job.DecisionsOf(Axis::kEncoding)[1];
  EXPECT_NEAR(decision.predicted_gain, 2.32 / 0.684 - 1, 0.2);
  EXPECT_THAT(decision.reason, HasSubstr("what it leaves for later rounds"));
}

// 40 rounds of 0.68 s, where those in force take 2.32 s, within 30 % of the time; and the latter
// half of the time before are 20 rounds.
TEST(AutoEncodingTest, ItsCanaryBeginsAsSoonAsRoundsOfItsOwnLengthAreFewEnough) {
  constexpr double kRound = 2.32;
  VirtualJobOptions options = SlowLinkOfAll();
  options.noise = 0;
  VirtualJob job(options);

  job.RunUntil(1000);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kEncoding);
  ASSERT_GE(decisions.size(), 2u);
  const double least = PeriodCanary::kStepsMin * (0.32 + 4 * ShareOf(kAdacomp, 4));
  const double by_length = least / PeriodCanary::kShareLarge;
  const double by_line = decisions[0].seconds + 2 * PeriodCanary::kRoundsOfLine * kRound;
  EXPECT_GE(decisions[1].seconds, by_length);
  EXPECT_LE(decisions[1].seconds, std::max(by_length, by_line) + 10 * kRound);
  EXPECT_LT(decisions[1].seconds, PeriodCanary::kStepsMin * kRound / PeriodCanary::kShareMost / 4);
}

// A pace of 3.4 times, of samples that teach a tenth: a tenth of a third is lost. Noise is not.
TEST(AutoEncodingTest, WhatTeachesTooLittleOfASampleIsTakenBackAndTheOtherTriedNext) {
  VirtualJobOptions options = SlowLinkOfAll();
  options.residual_worth = 0.1;
  VirtualJob job(options);

  job.RunUntil(2000);

  const Encodings encodings = EncodingsOf(job);
  ASSERT_GE(encodings.size(), 5u);
  EXPECT_EQ((Encodings{encodings.begin(), encodings.begin() + 5}),
            (Encodings{kDense, kFloat16, kAdacomp, kFloat16, kDq}));
  EXPECT_EQ(job.plan().encoding, kDq);
  const Decision back = job.DecisionsOf(Axis::kEncoding)[2];
  EXPECT_THAT(back.reason, HasSubstr("adacomp did not pay"));
  EXPECT_THAT(back.reason, HasSubstr("adacomp did not pay: the loss "));
  EXPECT_THAT(back.reason, HasSubstr("not tried again for "));
}

// What it sends hangs on the values: here it sends as much as all values would be.
TEST(AutoEncodingTest, WhatSendsMoreThanWasThoughtIsTakenBackWithinItsFirstRounds) {
  VirtualJobOptions options = SlowLinkOfAll();
  options.residual_share = 1;
  VirtualJob job(options);

  job.RunUntil(2000);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kEncoding);
  ASSERT_GE(decisions.size(), 4u);
  EXPECT_EQ(decisions[1].to, "adacomp");
  EXPECT_EQ(decisions[2].to, "float16");
  EXPECT_LE(decisions[2].round - decisions[1].round, 8u);
  EXPECT_THAT(decisions[2].reason, HasSubstr("more in a second were promised, and -"));
  // Once that is known it promises nothing.
  const auto tries = std::ranges::count(decisions, "adacomp", &Decision::to);
  EXPECT_EQ(tries, 1);
}

// The price of the next try is what its rounds have sent.
TEST(AutoEncodingTest, WhatItSendsIsMeasuredWhereItRan) {
  VirtualJobOptions options = SlowLinkOfAll();
  options.residual_share = 0.05;
  options.residual_worth = 0.1;
  options.encodings = {{kFloat16, kAdacomp}};
  options.noise = 0;
  VirtualJob job(options);

  job.RunUntil(20'000);

  std::vector<Decision> tries = job.DecisionsOf(Axis::kEncoding);
  std::erase_if(tries, [](const Decision& decision) { return decision.to != "adacomp"; });
  ASSERT_GE(tries.size(), 2u);
  EXPECT_EQ(tries[0].inputs[1].name, "transfer of a round then");
  EXPECT_NEAR(tries[0].inputs[1].value, 4 * ShareOf(kAdacomp, 4), 0.01);
  EXPECT_NEAR(tries[1].inputs[1].value, 4 * 0.05, 0.01);
  EXPECT_THAT(tries[1].reason, HasSubstr("adacomp, in 5.00 % of float32's bytes"));
}

// With local steps a rest is not tried, whatever it promises.
TEST(AutoEncodingTest, WhereTheSynchronizationIsChosenNoRestIsTried) {
  for (const std::string policy : {"auto", "periodic"}) {
    VirtualJobOptions options = SlowLinkOfAll();
    options.planner.synchronization.policy = policy;
    options.planner.synchronization.period = 1;
    VirtualJob job(options);

    job.RunUntil(3600);

    EXPECT_EQ(std::ranges::count(EncodingsOf(job), kAdacomp), 0) << policy;
  }
}

TEST(AutoEncodingTest, ACanaryOfARestOutlivesItsCoordinator) {
  VirtualJobOptions options = SlowLinkOfAll();
  options.residual_worth = 0.1;
  VirtualJob whole(options);
  VirtualJob restarted(options);
  for (int round = 0; round < 900; ++round) {
    whole.Run(1);
    restarted.Run(1);
    EXPECT_EQ(restarted.RestartPlanner(), "");
  }

  EXPECT_GE(whole.plans().size(), 4u);
  EXPECT_EQ(restarted.plans(), whole.plans());
}

// ---- By hand

class AutoEncodingByHandTest : public testing::Test {
 protected:
  void Begin(const PlannerOptions& options) {
    planner_.emplace(options);
    plan_ = planner_->Start({.members = 4}).plan;
    plan_.version = 1;
  }

  // Plans come into force at once.
  void Run(int rounds, RoundFacts facts = {}) {
    for (int i = 0; i < rounds; ++i) {
      facts.speeds = {100, 100, 100, 100};
      facts.transfer_seconds = 0.4 * ShareOf(plan_.encoding, 4);
      for (const Report& report : ReportsOf(plan_, round_, facts)) planner_->Observe(report);
      ++round_;
      if (const std::optional<Revision> revision = planner_->Decide(plan_, {})) {
        plan_ = revision->plan;
        last_ = revision->decisions[0];
      }
    }
  }

  std::optional<Planner> planner_;
  Plan plan_;
  Decision last_;
  std::uint64_t round_ = 0;
};

TEST_F(AutoEncodingByHandTest, ARoundThatIsLostAsNoneWasThatWasDenseEndsIt) {
  Begin({.encoding_policy = "auto"});
  Run(30);
  ASSERT_EQ(plan_.encoding, kFloat16);

  Run(1, {.nonfinite_members = 1});

  EXPECT_EQ(plan_.encoding, kDense);
  EXPECT_NE(last_.reason.find("not finite"), std::string::npos) << last_.reason;
}

TEST_F(AutoEncodingByHandTest, RoundsThatAreLostWhateverTravelsEndNothing) {
  Begin({.encoding_policy = "auto"});
  Run(1, {.nonfinite_members = 1});
  Run(30);
  ASSERT_EQ(plan_.encoding, kFloat16);

  Run(1, {.nonfinite_members = 1});

  EXPECT_EQ(plan_.encoding, kFloat16);
}

TEST_F(AutoEncodingByHandTest, WithAdasumVectorsAreDenseAndAveragesThenAsBefore) {
  Begin({.aggregation_policy = "auto", .encoding_policy = "auto"});
  const RoundFacts differ{.noise_scale = 5000, .orthogonality = 0.95};
  Run(30, differ);
  ASSERT_EQ(plan_.encoding, kFloat16);

  Run(40, differ);
  EXPECT_EQ(plan_.aggregation, Aggregation::kAdasum);
  EXPECT_EQ(plan_.encoding, kDense);

  Run(200, {.noise_scale = 5000, .orthogonality = 0.3});
  EXPECT_EQ(plan_.aggregation, Aggregation::kAverage);
  EXPECT_EQ(plan_.encoding, kFloat16);
}

TEST_F(AutoEncodingByHandTest, WhatNotAllMembersKnowIsNotTried) {
  Begin({.encoding_policy = "auto"});
  plan_ = planner_->Start({.members = 4, .encodings = {{}}}).plan;
  plan_.version = 1;

  Run(100);

  EXPECT_EQ(plan_.encoding, kDense);
}

TEST_F(AutoEncodingByHandTest, AFrozenEncodingStays) {
  Begin({.encoding_policy = "auto", .frozen = {Axis::kEncoding}});

  Run(100);

  EXPECT_EQ(plan_.encoding, kDense);
}

TEST_F(AutoEncodingByHandTest, WhatTheJobAsksForIsKept) {
  Begin({.encoding_policy = "bfloat16"});
  EXPECT_EQ(plan_.encoding, Encoding::kBfloat16);

  Run(100);

  EXPECT_EQ(plan_.encoding, Encoding::kBfloat16);
  EXPECT_EQ(planner_->Start({.members = 1}).plan.encoding, kDense);
}

}  // namespace
}  // namespace tactus::policies
