// Windows of local steps that last until all members have taken theirs.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Synchronization;

constexpr double kStart = 3;
constexpr double kRate = 0.1;

GroupRun Elastic(std::vector<std::uint32_t> sizes, std::uint32_t period) {
  return {.options = {.train_samples = 100'000,
                      .optimizer = SgdOptions{.learning_rate = kRate},
                      .elastic = true,
                      .stop = {.rounds = 3}},
          .plan = {.synchronization = Synchronization::kPeriodic,
                   .period = period,
                   .batch_sizes = std::move(sizes)},
          .task = TwoQuadratics()};
}

// Rank 1 begins the last step of its period when rank 0 has begun so many in the first round.
class Held {
 public:
  Held(GroupRun& run, int steps) : steps_(steps) {
    run.on_batch = [this, period = run.plan.period](int rank, const RoundEngine&,
                                                    const Batch& batch, std::span<const float>) {
      if (batch.round != 0) return;
      if (rank == 0) {
        if (++begun_ >= steps_) begun_.notify_all();
      } else if (++own_ == static_cast<int>(period)) {
        for (int seen = begun_; seen < steps_; seen = begun_) begun_.wait(seen);
      }
    };
  }

 private:
  const int steps_;
  std::atomic<int> begun_ = 0;
  int own_ = 0;  // of rank 1's thread
};

// A member whose thread gets no processor meanwhile would find the windows of others full.
void LetOthersGoOn() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

double After(int rank, std::uint32_t steps) {
  return rank == 0 ? 1 + (kStart - 1) * std::pow(1 - kRate, steps)
                   : -1 + (kStart + 1) * std::pow(1 - 2 * kRate, steps);
}

TEST(ElasticWindowTest, WhoIsDoneGoesOnAndHasTheSayOfItsSamples) {
  GroupRun run = Elastic({3, 1}, 3);
  const Held held(run, 5);

  const auto group = Train(run);

  const std::uint32_t first = group[0].reports[0].steps;
  const std::uint32_t second = group[1].reports[0].steps;
  EXPECT_GE(first, 5u);
  EXPECT_EQ(second, 3u);
  EXPECT_EQ(group[0].reports[0].samples, 3 * first);
  const double samples = 3.0 * first + second;
  const double mean = (3.0 * first * (After(0, first) - kStart) / first +
                       second * (After(1, second) - kStart) / second) /
                      samples;
  const double weight = (3.0 * first * first + 1.0 * second * second) / samples;
  EXPECT_NEAR(group[0].trace[0][0], kStart + weight * mean, 1e-5);
  EXPECT_EQ(group[1].trace, group[0].trace);
}

TEST(ElasticWindowTest, NobodyTakesMoreThanTwiceThePeriod) {
  GroupRun run = Elastic({2, 1}, 3);
  const Held held(run, 6);  // its last: it waits then

  const auto group = Train(run);

  EXPECT_EQ(group[0].reports[0].steps, 6u);
  EXPECT_EQ(group[0].outcome, Outcome::kFinished);
}

// The last window of a long period would end long after all else.
TEST(ElasticWindowTest, WhereTrainingEndsNobodyTakesTheRestOfThePeriod) {
  GroupRun run = Elastic({2, 1}, 10'000);
  run.before_step = [steps = std::vector<int>(2)](int rank, RoundEngine& engine,
                                                  StepResult&) mutable {
    if (++steps[static_cast<std::size_t>(rank)] == 3) {
      engine.RequestStop("enough", StopKind::kFinish);
    }
    LetOthersGoOn();
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    ASSERT_EQ(member.reports.size(), 1u);
    EXPECT_GE(member.reports[0].steps, 3u);
    EXPECT_LT(member.reports[0].steps, 10'000u);
    EXPECT_EQ(member.reason, "enough");
    EXPECT_EQ(member.trace, group[0].trace);
  }
}

TEST(ElasticWindowTest, OneMembersWishDoesNotEndTheOthersPeriod) {
  GroupRun run = Elastic({2, 1}, 20);
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 0) engine.RequestStop("enough", StopKind::kFinish);
  };

  const auto group = Train(run);

  EXPECT_GE(group[1].reports[0].steps, 20u);
  EXPECT_EQ(group[1].reports.size(), 1u);
}

TEST(ElasticWindowTest, TheJobsTimeEndsAWindow) {
  GroupRun run = Elastic({2, 1}, 10'000);
  run.options.stop = {.time = std::chrono::milliseconds(60)};
  run.before_step = [](int, RoundEngine&, StepResult&) { LetOthersGoOn(); };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    ASSERT_EQ(member.reports.size(), 1u);
    EXPECT_LT(member.reports[0].steps, 10'000u);
    EXPECT_EQ(member.outcome, Outcome::kFinished);
  }
  EXPECT_EQ(group[0].reason, "0.06 s are over");
}

TEST(ElasticWindowTest, OfOneMemberItIsAWindowLikeAnyOther) {
  for (const bool keep : {true, false}) {
    GroupRun run = Elastic({4}, 5);
    run.options.optimizer = SgdOptions{.learning_rate = kRate, .momentum = 0.9};
    run.options.block_momentum = 0.3;
    run.options.keep_local_momentum = keep;
    const auto elastic = Train(run);
    run.options.elastic = false;
    const auto fixed = Train(run);

    ASSERT_EQ(elastic[0].trace.size(), fixed[0].trace.size());
    for (std::size_t round = 0; round < fixed[0].trace.size(); ++round) {
      EXPECT_NEAR(elastic[0].trace[round][0], fixed[0].trace[round][0], 1e-5);
    }
    const policies::Report& report = elastic[0].reports[1];
    EXPECT_EQ(report.steps, 5u);
    EXPECT_NEAR(report.gradient_norm2_global, fixed[0].reports[1].gradient_norm2_global,
                1e-4 * report.gradient_norm2_global)
        << "what a window tells of its gradients is the same";
  }
}

// ---- Momentum between rounds

constexpr double kBeta = 0.4;

// How many of a window's steps its members took on average, by their samples, and what that makes
// of the group's parameters without momentum.
struct Window {
  double steps = 0;
  double change = 0;
};

Window WindowFrom(double at, const std::vector<MemberRun>& group, std::size_t round) {
  Window window;
  double samples = 0;
  double change_of_step = 0;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    const policies::Report& report = group[rank].reports[round];
    const auto own = static_cast<double>(report.samples);
    if (report.steps == 0) continue;
    const double bottom = rank == 0 ? 1 : -1;
    const double rate = rank == 0 ? kRate : 2 * kRate;
    const double change = (at - bottom) * (std::pow(1 - rate, report.steps) - 1);
    samples += own;
    window.steps += own * report.steps;
    change_of_step += own * change / report.steps;
  }
  window.steps /= samples;
  window.change = window.steps * change_of_step / samples;
  return window;
}

// Whose windows are moved by their share of the momentum, and leave it what it would have been;
// the last window's share.
double ExpectSharesOfMomentum(const std::vector<MemberRun>& group, std::uint32_t period) {
  double at = kStart;
  double momentum = 0;  // what it moves a whole window by, over beta
  double share = 0;
  for (std::size_t round = 0; round < group[0].reports.size(); ++round) {
    const Window window = WindowFrom(at, group, round);
    share = std::min(1.0, window.steps / period);
    at += window.change + share * kBeta * momentum;
    momentum = window.change + (1 - share * (1 - kBeta)) * momentum;
    EXPECT_NEAR(group[0].trace[round][0], at, 1e-5) << "round " << round << ", share " << share;
  }
  for (const MemberRun& member : group) {
    EXPECT_EQ(member.trace, group[0].trace);
    EXPECT_NEAR(-kRate * member.state->block_momentum[0], momentum, 1e-5);
  }
  return share;
}

TEST(ElasticWindowTest, AShortWindowIsMovedByItsShareOfTheMomentum) {
  GroupRun run = Elastic({4}, 5);
  run.options.train_samples = 32;
  run.options.block_momentum = kBeta;
  run.options.stop = {.epochs = 2};

  EXPECT_EQ(ExpectSharesOfMomentum(Train(run), 5), 0.2) << "of 16 steps one is left";
}

TEST(ElasticWindowTest, TheShareIsThatOfAllMembersSteps) {
  GroupRun run = Elastic({3, 1}, 20);
  run.options.block_momentum = kBeta;
  run.before_step = [steps = std::vector<int>(2)](int rank, RoundEngine& engine,
                                                  StepResult&) mutable {
    int& own = steps[static_cast<std::size_t>(rank)];
    if (engine.rounds() == 2 && ++own == 3) engine.RequestStop("enough", StopKind::kFinish);
  };

  const auto group = Train(run);

  EXPECT_EQ(group[0].reports.size(), 3u);
  EXPECT_GT(ExpectSharesOfMomentum(group, 20), 0);
}

// ---- Samples

TEST(ElasticWindowTest, EverySampleIsUsedOncePerEpoch) {
  GroupRun run = Elastic({4, 2, 3}, 3);
  run.options.train_samples = 157;
  run.options.micro_batch = 3;
  run.options.stop = {.epochs = 3};

  const auto group = Train(run);

  ExpectEverySampleOncePerEpoch(group, 157, 3);
  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_EQ(member.trace, group[0].trace);
  }
}

// Steps of micro-batches: a window ends with a step, not within one.
TEST(ElasticWindowTest, AWindowIsMadeOfWholeSteps) {
  GroupRun run = Elastic({7, 5}, 2);
  run.options.micro_batch = 2;
  run.options.stop = {.rounds = 20};

  const auto group = Train(run);

  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    for (const policies::Report& report : group[rank].reports) {
      EXPECT_EQ(report.samples, std::uint64_t{run.plan.batch_sizes[rank]} * report.steps);
    }
  }
}

TEST(ElasticWindowTest, AWindowThatIsNotFiniteIsUndoneEverywhere) {
  GroupRun run = Elastic({1, 1}, 3);
  run.options.stop.rounds = 2;
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round == 0) gradients[0] = std::numeric_limits<float>::quiet_NaN();
  };

  const auto group = Train(run);

  EXPECT_EQ(group[0].trace[0][0], 3.0f);
  EXPECT_EQ(group[0].reports[0].nonfinite_members, 1u);
  EXPECT_LT(group[0].trace[1][0], 3.0f);
  EXPECT_EQ(group[1].trace, group[0].trace);
}

TEST(ElasticWindowTest, AGroupThatIsLostWithinAWindowGoesBackToTheLastRound) {
  GroupRun run = Elastic({1, 1}, 4);
  run.options.stop.rounds = 100;
  run.vanish = [](int rank, std::uint64_t round) { return rank == 1 && round == 2; };

  const auto group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kGroupLost);
  EXPECT_EQ(group[0].parameters[0], group[0].trace[1][0]);
}

TEST(ElasticWindowTest, PlansOfOtherRoundsComeAndGo) {
  GroupRun run = Elastic({2, 2}, 3);
  run.options.stop.rounds = 40;
  policies::Plan every_step = run.plan;
  every_step.synchronization = Synchronization::kEveryStep;
  every_step.period = 1;
  run.before_step = [&](int, RoundEngine& engine, StepResult&) {
    for (const std::uint64_t version : {1, 2, 3}) {
      policies::Plan next = version == 2 ? run.plan : every_step;
      if (version == 3) next.synchronization = Synchronization::kDelayed;
      if (version == 3) next.period = 4;
      next.version = version;
      if (engine.rounds() >= 5 * version) engine.OfferPlan(next);
    }
  };

  const auto group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kFinished) << group[0].reason;
  EXPECT_EQ(group[0].plan_versions.back(), 3u);
  EXPECT_EQ(group[1].parameters, group[0].parameters);
  const auto of_version = [&](std::uint64_t version) {
    const auto found = std::ranges::find(group[0].plan_versions, version);
    return group[0].reports[static_cast<std::size_t>(found - group[0].plan_versions.begin())];
  };
  EXPECT_EQ(of_version(1).samples_global, 4u);
  EXPECT_GE(of_version(2).steps, 3u);
}

}  // namespace
}  // namespace tactus::engine
