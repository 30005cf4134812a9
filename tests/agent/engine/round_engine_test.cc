#include "agent/engine/round_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

EngineOptions Options(OptimizerOptions optimizer, std::uint64_t rounds) {
  return {
      .train_samples = 160, .micro_batch = 3, .optimizer = optimizer, .stop = {.rounds = rounds}};
}

// Largest difference over the largest element.
double RelativeDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    scale = std::max(scale, std::abs(static_cast<double>(b[i])));
  }
  return difference / scale;
}

struct Rule {
  std::string name;
  OptimizerOptions optimizer;
  std::optional<double> clip_norm{};
};

class OneRoundTest : public testing::TestWithParam<Rule> {};

// Sums of the same 16 gradients in another order: each of 24 bits, so some 1e-6 after a few rounds.
TEST_P(OneRoundTest, UnequalBatchesGiveWhatOneProcessGives) {
  for (const std::uint64_t rounds : {1, 8}) {
    EngineOptions options = Options(GetParam().optimizer, rounds);
    options.clip_norm = GetParam().clip_norm;

    const auto four = Train({.options = options, .plan = {.batch_sizes = {7, 5, 3, 1}}});
    const auto one = Train({.options = options, .plan = {.batch_sizes = {16}}});

    for (const MemberRun& member : four) {
      EXPECT_LT(RelativeDifference(member.parameters, one[0].parameters), 1e-5);
      EXPECT_EQ(member.parameters, four[0].parameters);
    }
    EXPECT_NEAR(four[0].reports.back().loss_mean_global, one[0].reports.back().loss_mean_global,
                1e-5 * one[0].reports.back().loss_mean_global);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, OneRoundTest,
    testing::Values(
        Rule{"Sgd", SgdOptions{.learning_rate = 0.05}},
        Rule{"SgdClipped", SgdOptions{.learning_rate = 0.05}, 0.5},
        Rule{"Momentum", SgdOptions{.learning_rate = 0.02, .momentum = 0.9}},
        Rule{"MomentumClipped",
             SgdOptions{.learning_rate = 0.02, .momentum = 0.9, .weight_decay = 0.01}, 0.5},
        Rule{"Adam", AdamOptions{.learning_rate = 0.01}},
        Rule{"AdamClipped", AdamOptions{.learning_rate = 0.01}, 0.5},
        Rule{"AdamW", AdamOptions{.weight_decay = 0.01, .decoupled = true}},
        Rule{"AdamWClipped", AdamOptions{.weight_decay = 0.01, .decoupled = true}, 0.5}),
    [](const auto& rule) { return rule.param.name; });

TEST(RoundEngineTest, ClippingBoundsTheStep) {
  EngineOptions options = Options(SgdOptions{.learning_rate = 1.0}, 1);
  options.clip_norm = 0.25;

  const auto group = Train({.options = options, .plan = {.batch_sizes = {4, 4}}});

  double norm2 = 0;
  for (const float p : group[0].parameters) norm2 += static_cast<double>(p) * p;
  EXPECT_NEAR(std::sqrt(norm2), 0.25, 1e-6);
}

TEST(RoundEngineTest, TheSameRunGivesTheSameBytes) {
  const GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.02, .momentum = 0.9}, 40),
                     .plan = {.batch_sizes = {5, 6, 7}}};

  EXPECT_EQ(Train(run)[1].parameters, Train(run)[2].parameters);
}

TEST(RoundEngineTest, AnnouncedSegmentsGiveTheSameBytes) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.05}, 12),
               .plan = {.batch_sizes = {5, 6}}};
  const auto plain = Train(run);
  run.options.bucket_bytes = 4;
  for (const auto announce :
       {GroupRun::Announce::kByOwnThread, GroupRun::Announce::kByAnotherThread}) {
    run.announce = announce;
    EXPECT_EQ(Train(run)[0].parameters, plain[0].parameters);
  }
}

// From whatever thread segments are announced: votes leave with the step.
TEST(RoundEngineTest, WhatIsAskedForBeforeTheStepIsVotedForInItsRound) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.05}, 12),
               .plan = {.version = 1, .batch_sizes = {5, 6}}};
  run.options.micro_batch = 16;
  run.announce = GroupRun::Announce::kByAnotherThread;
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 3) engine.OfferPlan({.version = 2, .batch_sizes = {2, 9}});
    if (rank == 1 && engine.rounds() == 7) engine.RequestStop("enough", StopKind::kFinish);
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.plan_versions, (std::vector<std::uint64_t>{1, 1, 1, 1, 2, 2, 2, 2}));
    EXPECT_EQ(member.outcome, Outcome::kFinished);
  }
}

// Rank 0 votes to end when it knows how long the round was, whoever announces segments.
TEST(RoundEngineTest, TimeIsUpInTheSameRoundWhereSegmentsAreAnnounced) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.05}, 100),
               .plan = {.batch_sizes = {5, 6}}};
  run.options.stop.time = std::chrono::milliseconds(25);
  const auto plain = Train(run);
  run.announce = GroupRun::Announce::kByOwnThread;

  const auto announced = Train(run);

  EXPECT_LT(plain[0].reports.size(), 100u);
  EXPECT_EQ(announced[0].reports.size(), plain[0].reports.size());
  EXPECT_EQ(announced[0].reason, plain[0].reason);
}

TEST(RoundEngineTest, EverySampleIsUsedOncePerEpochWhileBatchSizesChangeEveryRound) {
  GroupRun run{.options = {.train_samples = 157,
                           .micro_batch = 4,
                           .optimizer = SgdOptions{.learning_rate = 0.01},
                           .stop = {.epochs = 3}},
               .plan = {.version = 1, .batch_sizes = {5, 3, 4}}};
  run.before_step = [](int, RoundEngine& engine, StepResult&) {
    const auto next = static_cast<std::uint32_t>(engine.plan().version % 7);
    EXPECT_TRUE(engine.OfferPlan(
        {.version = engine.plan().version + 1, .batch_sizes = {next, 8 - next, next + 1}}));
  };

  const auto group = Train(run);

  std::map<std::uint64_t, std::vector<std::uint64_t>> used;
  for (const MemberRun& member : group) {
    for (const auto& [epoch, samples] : member.used) {
      used[epoch].insert(used[epoch].end(), samples.begin(), samples.end());
    }
    EXPECT_EQ(member.plan_versions, group[0].plan_versions);
  }
  EXPECT_GT(group[0].plan_versions.back(), 20u);
  ASSERT_EQ(used.size(), 3u);
  std::vector<std::uint64_t> all(157);
  std::iota(all.begin(), all.end(), 0);
  for (auto& [epoch, samples] : used) {
    std::ranges::sort(samples);
    EXPECT_EQ(samples, all) << "epoch " << epoch;
  }
}

TEST(RoundEngineTest, APlanIsAdoptedWhenAllMembersHoldIt) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.01}, 12),
               .plan = {.version = 1, .batch_sizes = {2, 2, 2}}};
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    // The plan reaches member 0 in round 1, member 1 in round 3, member 2 in round 6.
    const std::uint64_t arrival[] = {1, 3, 6};
    if (engine.rounds() == arrival[rank]) {
      EXPECT_TRUE(engine.OfferPlan({.version = 2, .batch_sizes = {1, 1, 4}}));
    }
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    for (std::size_t round = 0; round < 12; ++round) {
      EXPECT_EQ(member.reports[round].plan_version, round <= 6 ? 1u : 2u) << round;
    }
  }
  EXPECT_EQ(group[2].reports.back().samples, 4u);
}

TEST(RoundEngineTest, PlansThatDoNotFitAreRefused) {
  GroupRun run{.options = Options(SgdOptions{}, 1), .plan = {.version = 4, .batch_sizes = {2, 2}}};
  run.before_step = [](int, RoundEngine& engine, StepResult&) {
    EXPECT_TRUE(engine.OfferPlan({.version = 4, .batch_sizes = {9, 9}}));   // known: nothing
    EXPECT_FALSE(engine.OfferPlan({.version = 6, .batch_sizes = {2, 2}}));  // a gap
    EXPECT_FALSE(engine.OfferPlan({.version = 5, .batch_sizes = {2}}));     // another group's
    EXPECT_FALSE(engine.OfferPlan({.version = 5, .batch_sizes = {0, 0}}));  // nothing to do
    EXPECT_FALSE(engine.OfferPlan({.version = 5, .batch_sizes = {1u << 24, 1}}));
    for (std::uint64_t version = 5; version < 21; ++version) {
      EXPECT_TRUE(engine.OfferPlan({.version = version, .batch_sizes = {2, 2}}));
    }
    EXPECT_FALSE(engine.OfferPlan({.version = 21, .batch_sizes = {2, 2}}));  // too many waiting
  };

  EXPECT_EQ(Train(run)[0].outcome, Outcome::kFinished);
}

TEST(RoundEngineTest, AMemberWithoutSamplesTakesPartAllTheSame) {
  const auto group = Train(
      {.options = Options(SgdOptions{.learning_rate = 0.05}, 9), .plan = {.batch_sizes = {6, 0}}});

  EXPECT_EQ(group[1].reports.size(), 9u);
  EXPECT_EQ(group[1].reports[3].samples, 0u);
  EXPECT_EQ(group[1].reports[3].compute_seconds, 0.001);
  EXPECT_EQ(group[1].reports[3].samples_global, 6u);
  EXPECT_EQ(group[1].parameters, group[0].parameters);
}

TEST(RoundEngineTest, OneVoteStopsAllInTheSameRound) {
  GroupRun run{.options = Options(SgdOptions{}, 100), .plan = {.batch_sizes = {2, 2, 2}}};
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 1 && engine.rounds() == 4) engine.RequestStop("cancelled", StopKind::kFinish);
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.reports.size(), 5u);
    EXPECT_EQ(member.outcome, Outcome::kFinished);
  }
  EXPECT_EQ(group[1].reason, "cancelled");
  EXPECT_EQ(group[0].reason, "another member asked to stop");
}

TEST(RoundEngineTest, OneVoteDiscardsOnAll) {
  GroupRun run{.options = Options(SgdOptions{}, 100), .plan = {.batch_sizes = {2, 2}}};
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    engine.RequestStop("cancelled", rank == 1 ? StopKind::kDiscard : StopKind::kFinish);
  };

  for (const MemberRun& member : Train(run)) EXPECT_EQ(member.outcome, Outcome::kDiscarded);
}

TEST(RoundEngineTest, TimeOfTheFirstMemberEndsTheRun) {
  EngineOptions options = Options(SgdOptions{}, 100);
  options.micro_batch = 64;
  // A batch takes one tick and there is one tick between batches: round k ends at 2 k + 3 ms.
  options.stop.time = std::chrono::milliseconds(20);

  const auto group = Train({.options = options, .plan = {.batch_sizes = {2, 2}}});

  EXPECT_EQ(group[0].reason, "0.02 s are over");
  EXPECT_EQ(group[0].reports.size(), 10u);
  EXPECT_EQ(group[1].reports.size(), 10u);
}

TEST(RoundEngineTest, ANonFiniteGradientIsSkippedByAllAndCounted) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.05, .momentum = 0.9}, 6),
               .plan = {.batch_sizes = {2, 2}}};
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round >= 2) gradients[3] = std::numeric_limits<float>::infinity();
  };
  const auto spoilt = Train(run);
  run.options.stop.rounds = 2;
  run.after_gradient = nullptr;

  const auto stopped_before = Train(run);

  EXPECT_EQ(spoilt[0].parameters, stopped_before[0].parameters);
  EXPECT_EQ(spoilt[0].reports[1].nonfinite_members, 0u);
  EXPECT_EQ(spoilt[0].reports[2].nonfinite_members, 1u);
  EXPECT_EQ(spoilt[0].reports.size(), 6u);
}

TEST(RoundEngineTest, TooManyNonFiniteRoundsEndTheRun) {
  GroupRun run{.options = Options(SgdOptions{}, 100), .plan = {.batch_sizes = {2, 2}}};
  run.options.nonfinite_rounds_max = 3;
  run.on_loss = [](int rank, const RoundEngine&, double& loss) {
    if (rank == 0) loss = std::numeric_limits<double>::quiet_NaN();
  };

  for (const MemberRun& member : Train(run)) {
    EXPECT_EQ(member.outcome, Outcome::kDiverged);
    EXPECT_EQ(member.reports.size(), 3u);
    EXPECT_EQ(member.reason, "the gradient was not finite in 3 rounds in a row");
  }
}

TEST(RoundEngineTest, ReportsSayWhatHappened) {
  const auto group = Train({.options = {.train_samples = 50,
                                        .micro_batch = 3,
                                        .optimizer = SgdOptions{.learning_rate = 0.0},
                                        .stop = {.epochs = 1}},
                            .plan = {.version = 9, .batch_sizes = {7, 5}}});

  const policies::Report& first = group[0].reports.front();
  EXPECT_EQ(first.round, 0u);
  EXPECT_EQ(first.plan_version, 9u);
  EXPECT_EQ(first.samples, 7u);
  EXPECT_DOUBLE_EQ(first.compute_seconds, 0.003);  // 7 samples in 3 batches of one tick each
  EXPECT_EQ(first.samples_global, 12u);
  EXPECT_EQ(first.epoch_consumed, 12u);
  EXPECT_GT(first.gradient_norm2_local, 0);
  EXPECT_GT(first.gradient_norm2_global, 0);
  EXPECT_NEAR(first.loss_mean_global, (first.loss_sum + group[1].reports.front().loss_sum) / 12,
              1e-6);
  const policies::Report& last = group[1].reports.back();
  EXPECT_EQ(last.round, 4u);
  EXPECT_EQ(last.samples_global, 2u);  // 50 = 4 * 12 + 2
  EXPECT_EQ(last.epoch_consumed, 50u);
  EXPECT_EQ(group[0].reason, "1 epoch completed");
}

TEST(RoundEngineTest, AMemberThatVanishesEndsTheRoundOfTheOthers) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.05}, 100),
               .plan = {.batch_sizes = {2, 2, 2}}};
  run.options.stop.rounds = 7;
  const auto whole = Train(run);
  run.options.stop.rounds = 100;
  run.vanish = [](int rank, std::uint64_t round) { return rank == 2 && round == 7; };

  const auto group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kGroupLost);
  EXPECT_FALSE(group[0].reason.empty());
  EXPECT_EQ(group[0].parameters, whole[0].parameters);  // of the last applied round
  EXPECT_EQ(group[1].parameters, whole[1].parameters);
}

}  // namespace
}  // namespace tactus::engine
