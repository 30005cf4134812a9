// When members validate, and what their losses end.

#include "agent/engine/validations.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ValidationOptions Auto() { return {.policy = ValidationPolicy::kAuto, .samples = 300}; }

Validation Loss(double loss) { return {.loss = loss, .accuracy = 0.5, .samples = 300}; }

TEST(ValidationsTest, ByRoundsOrEpochsTheyAreDueAtEachMultiple) {
  ValidationOptions options = Auto();
  options.rounds = 10;
  Validations by_rounds(options);

  EXPECT_FALSE(by_rounds.DueByCount({.rounds = 9}));
  EXPECT_TRUE(by_rounds.DueByCount({.rounds = 10}));
  by_rounds.Take(Loss(1), {.rounds = 13}, Seconds(1));  // it came a little late
  EXPECT_FALSE(by_rounds.DueByCount({.rounds = 19}));
  EXPECT_TRUE(by_rounds.DueByCount({.rounds = 20}));

  options.rounds.reset();
  options.epochs = 2;
  Validations by_epochs(options);
  EXPECT_FALSE(by_epochs.DueByCount({.rounds = 1000, .epochs = 1}));
  EXPECT_TRUE(by_epochs.DueByCount({.rounds = 1000, .epochs = 2}));
  EXPECT_FALSE(by_epochs.DueByTime({.epochs = 2, .trained = Seconds(1e6)}));
}

TEST(ValidationsTest, ByTimeTheyAreDueSoLongAfterTheEndOfTheLast) {
  ValidationOptions options = Auto();
  options.every = Seconds(60);
  Validations validations(options);

  EXPECT_FALSE(validations.DueByTime({.trained = Seconds(59)}));
  EXPECT_TRUE(validations.DueByTime({.trained = Seconds(60)}));
  validations.Take(Loss(1), {.trained = Seconds(100)}, Seconds(40));
  EXPECT_FALSE(validations.DueByTime({.trained = Seconds(159)}));
  EXPECT_TRUE(validations.DueByTime({.trained = Seconds(160)}));
  EXPECT_FALSE(validations.DueByCount({.rounds = 1000, .epochs = 1000}));
}

TEST(ValidationsTest, OfThemselvesAllTogetherTakeTheirShareOfTheTimeAndNoMore) {
  Validations validations(Auto());
  validations.Take(Loss(1), {.trained = Seconds(100)}, Seconds(2));

  // The next one is taken to cost as much: 4 s of 200.
  EXPECT_FALSE(validations.DueByTime({.trained = Seconds(199)}));
  EXPECT_TRUE(validations.DueByTime({.trained = Seconds(200)}));
  validations.Take(Loss(1), {.trained = Seconds(210)}, Seconds(1));
  // 4 s again, which it has paid for long ago.
  EXPECT_TRUE(validations.DueByTime({.trained = Seconds(216)}));
  EXPECT_FALSE(validations.DueByTime({.trained = Seconds(214)}));
}

TEST(ValidationsTest, OfThemselvesTheyAreApartHoweverCheap) {
  Validations validations(Auto());
  validations.Take(Loss(1), {.trained = Seconds(100)}, Seconds(1e-6));
  const Instant end = Instant(Seconds(100)) + Validations::kLeastBetween;

  EXPECT_FALSE(validations.DueByTime({.trained = end.time_since_epoch() - Duration(1)}));
  EXPECT_TRUE(validations.DueByTime({.trained = end.time_since_epoch()}));
}

// Of 300 samples, each of which costs a third of one that is trained on.
TEST(ValidationsTest, TheFirstComesWhenTrainingHasPaidForItBySamples) {
  const Validations validations(Auto());
  const auto after = [](std::uint64_t samples) {
    return ValidationMark{.samples = samples, .trained = Seconds(1000)};
  };

  EXPECT_FALSE(validations.DueByTime(after(4999)));
  EXPECT_TRUE(validations.DueByTime(after(5001)));
}

TEST(ValidationsTest, WithoutSamplesOrWishThereAreNone) {
  ValidationOptions options = Auto();
  options.rounds = 1;
  options.samples = 0;
  EXPECT_FALSE(Validations(options).DueByCount({.rounds = 5}));
  options = Auto();
  options.policy = ValidationPolicy::kNone;
  EXPECT_FALSE(Validations(options).DueByTime({.samples = 1u << 30, .trained = Seconds(1e6)}));
}

TEST(ValidationsTest, TheBestIsTheFirstOfTheLeastLossAndFinite) {
  Validations validations(Auto());
  for (std::uint64_t i = 0; const double loss : {kNan, 2.0, 1.0, 1.0, kNan, 1.5}) {
    validations.Take(Loss(loss), {.rounds = ++i}, Seconds(1));
  }

  EXPECT_EQ(validations.state().count, 6u);
  EXPECT_EQ(validations.state().best_loss, 1.0);
  EXPECT_EQ(validations.state().best_rounds, 3u);
  EXPECT_EQ(validations.state().since_best, 3u);
  EXPECT_FALSE(validations.IsBest(-std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(validations.IsBest(0.5));
}

TEST(ValidationsTest, ABestOneThatIsForgottenIsComparedWithNoMore) {
  ValidationState state{.best_loss = 0.1, .best_samples = 5, .since_best = 7};
  ForgetBest(state);
  Validations validations(Auto());
  validations.Restore(state);

  EXPECT_TRUE(validations.IsBest(9));
  EXPECT_EQ(validations.state().since_best, 0u);
}

TEST(ValidationsTest, LossesOverOtherSamplesAreNotComparedWith) {
  Validations few(Auto());
  few.Take(Loss(0.1), {.rounds = 1}, Seconds(2));
  few.Take(Loss(0.2), {.rounds = 2}, Seconds(2));
  ValidationOptions options = Auto();
  options.samples = 500;
  Validations more(options);
  more.Restore(few.state());
  Validations as_many(Auto());
  as_many.Restore(few.state());

  EXPECT_EQ(as_many.state(), few.state());
  EXPECT_TRUE(more.IsBest(9));
  EXPECT_EQ(more.state().since_best, 0u);
  EXPECT_FALSE(more.state().loss <= 1e9);
  EXPECT_EQ(more.state().count, 2u);
  EXPECT_EQ(more.state().total_cost, Seconds(4));
}

// ---- In a group

// The loss that the member with this rank finds: equal on all, as their sum is.
double MeanWeight(std::span<const float> parameters) {
  double sum = 0;
  for (const float p : parameters) sum += std::abs(static_cast<double>(p));
  return sum;
}

GroupRun Validated(ValidationOptions validation) {
  GroupRun run{.options = {.train_samples = 160,
                           .micro_batch = 3,
                           .optimizer = SgdOptions{.learning_rate = 0.02, .momentum = 0.9},
                           .stop = {.rounds = 24},
                           .validation = validation},
               .plan = {.version = 1, .batch_sizes = {5, 3}}};
  run.validate = [](int, const RoundEngine&, std::span<const float> parameters) {
    return MeanWeight(parameters);
  };
  return run;
}

policies::Plan PlanOf(policies::Synchronization synchronization) {
  policies::Plan plan{.version = 1, .batch_sizes = {5, 3}};
  plan.synchronization = synchronization;
  plan.period = synchronization == policies::Synchronization::kPeriodic ? 3 : 1;
  return plan;
}

ValidationOptions EveryRounds(std::uint64_t rounds) {
  ValidationOptions options = Auto();
  options.rounds = rounds;
  return options;
}

class ValidatingGroupTest : public testing::TestWithParam<policies::Synchronization> {};

// Also where rounds overlap: the one before a validation is applied before the next begins.
TEST_P(ValidatingGroupTest, AllMembersValidateEqualParametersAfterTheSameRounds) {
  GroupRun run = Validated(EveryRounds(5));
  run.plan = PlanOf(GetParam());
  std::vector<std::vector<double>> losses(2);
  run.validate = [&](int rank, const RoundEngine& engine, std::span<const float> parameters) {
    EXPECT_TRUE(engine.at_edge());
    losses[static_cast<std::size_t>(rank)].push_back(MeanWeight(parameters));
    return losses[static_cast<std::size_t>(rank)].back();
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    EXPECT_THAT(member.validated, ElementsAre(5, 10, 15, 20));
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_EQ(member.reports.size(), 24u);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

INSTANTIATE_TEST_SUITE_P(Methods, ValidatingGroupTest,
                         testing::Values(policies::Synchronization::kEveryStep,
                                         policies::Synchronization::kPeriodic,
                                         policies::Synchronization::kDelayed),
                         [](const auto& method) {
                           return std::string("Method") +
                                  std::to_string(static_cast<int>(method.param));
                         });

TEST(ValidatingEngineTest, TrainingIsTheSameBitForBit) {
  const auto plain = Train(Validated({}));
  const auto validated = Train(Validated(EveryRounds(1)));

  EXPECT_EQ(validated[0].validated.size(), 23u);  // the end is not the engine's
  EXPECT_EQ(validated[0].parameters, plain[0].parameters);
}

TEST(ValidatingEngineTest, ItsTimeIsTrainingTimeAndOfNoRound) {
  GroupRun run = Validated(EveryRounds(4));
  const auto plain = Train(Validated({}));
  const auto validated = Train(run);

  const auto rounds_of = [](const MemberRun& member) {
    double seconds = 0;
    for (const policies::Report& report : member.reports) seconds += report.round_seconds;
    return seconds;
  };
  const MemberRun& member = validated[0];
  const double between = ToSeconds(member.state->train_time) - rounds_of(member);
  EXPECT_NEAR(ToSeconds(plain[0].state->train_time), rounds_of(plain[0]), 1e-9);
  // A tick each, of which the world tells the end.
  EXPECT_NEAR(between, 0.001 * static_cast<double>(member.validated.size()), 1e-9);
}

TEST(ValidatingEngineTest, WhereTimeSaysWhenTheFirstMembersClockDoes) {
  ValidationOptions options = Auto();
  options.every = Seconds(0.02);
  GroupRun run = Validated(options);
  // The other one thinks that ages have passed, which nobody asks it.
  run.before_step = [](int rank, RoundEngine&, StepResult& result) {
    if (rank == 1) result.finished += Seconds(50);
  };

  const auto group = Train(run);

  EXPECT_GE(group[0].validated.size(), 2u);
  EXPECT_LT(group[0].validated.size(), 12u);
  EXPECT_EQ(group[1].validated, group[0].validated);
}

TEST(ValidatingEngineTest, ALossThatIsLowEnoughEndsTrainingOfAllThere) {
  GroupRun run = Validated(EveryRounds(3));
  run.options.stop.validation_loss = 0.5;
  run.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.rounds() < 9 ? 1.0 : 0.5;
  };

  for (const MemberRun& member : Train(run)) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_EQ(member.reason, "validation_loss 0.5 reached 0.5");
    EXPECT_EQ(member.reports.size(), 9u);
    EXPECT_FALSE(member.asked_to_stop);
  }
}

TEST(ValidatingEngineTest, PatienceEndsItAfterSoManyWithoutANewBest) {
  GroupRun run = Validated(EveryRounds(2));
  run.options.stop.patience = 3;
  run.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.rounds() == 6 ? 0.25 : 1.0;
  };

  for (const MemberRun& member : Train(run)) {
    EXPECT_THAT(member.validated, ElementsAre(2, 4, 6, 8, 10, 12));
    EXPECT_EQ(member.reason,
              "patience: 3 validations in a row without a new best; 0.25 after 6 rounds is the "
              "best");
  }
}

TEST(ValidatingEngineTest, PatienceAndTheBestGoOnInAnotherGroup) {
  GroupRun run = Validated(EveryRounds(2));
  run.options.stop.patience = 4;
  run.keep_edges = true;
  run.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.rounds() == 4 ? 0.25 : 1.0;
  };
  const auto whole = Train(run);
  ASSERT_THAT(whole[0].validated, ElementsAre(2, 4, 6, 8, 10, 12));

  GroupRun second = run;
  second.from = whole[0].edges.at(7);  // after 8 rounds
  second.plan.batch_sizes = {2, 3, 3};
  const auto later = Train(second);

  for (const MemberRun& member : later) {
    EXPECT_THAT(member.validated, ElementsAre(10, 12));
    EXPECT_EQ(member.reason, whole[0].reason);
  }
}

// The job's user changed it.
TEST(ValidatingEngineTest, WithOtherSamplesPatienceAndTheLossBeginAnew) {
  GroupRun run = Validated(EveryRounds(2));
  run.options.stop.patience = 3;
  run.keep_edges = true;
  run.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.rounds() == 2 ? 0.1 : 1.0;
  };
  const auto first = Train(run);
  ASSERT_THAT(first[0].validated, ElementsAre(2, 4, 6, 8));

  GroupRun second = run;
  second.from = first[0].edges.at(5);  // after 6 rounds
  second.options.validation.samples = 7;
  second.options.stop.validation_loss = 0.5;
  const auto later = Train(second);

  for (const MemberRun& member : later) {
    EXPECT_THAT(member.validated, ElementsAre(8, 10, 12, 14));
    EXPECT_EQ(member.reason,
              "patience: 3 validations in a row without a new best; 1 after 8 rounds is the best");
  }
}

// One that was suspended at the edge where it would have validated.
TEST(ValidatingEngineTest, WhatAFormerGroupDidNotComeToIsMadeFirst) {
  GroupRun run = Validated(EveryRounds(6));
  run.before_step = [](int, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 5) engine.RequestStop("later", StopKind::kSuspend);
  };
  const auto first = Train(run);
  ASSERT_EQ(first[0].outcome, Outcome::kSuspended);
  ASSERT_EQ(first[0].state->rounds, 6u);
  ASSERT_THAT(first[0].validated, IsEmpty());

  GroupRun second = Validated(EveryRounds(6));
  second.from = Continued{.state = *first[0].state, .parameters = first[0].parameters};

  EXPECT_THAT(Train(second)[1].validated, ElementsAre(6, 12, 18));
}

TEST(ValidatingEngineTest, WhereItHoldsAlreadyAGroupDoesNotBegin) {
  GroupRun run = Validated(EveryRounds(2));
  run.options.stop.patience = 1;
  run.validate = [](int, const RoundEngine&, std::span<const float>) { return 1.0; };
  const auto whole = Train(run);

  GroupRun second = run;
  second.from = Continued{.state = *whole[0].state, .parameters = whole[0].parameters};
  const auto later = Train(second);

  EXPECT_EQ(later[0].outcome, Outcome::kFinished);
  EXPECT_THAT(later[0].reports, IsEmpty());
  EXPECT_EQ(later[0].reason, whole[0].reason);
}

}  // namespace
}  // namespace tactus::engine
