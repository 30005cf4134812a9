// Training that is suspended and goes on in another group.

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/engine/round_engine.h"
#include "base/rng.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::LearningRateRule;
using policies::Synchronization;

constexpr std::uint64_t kSamples = 157;

EngineOptions Options(OptimizerOptions optimizer, std::uint64_t rounds) {
  return {.train_samples = kSamples,
          .micro_batch = 3,
          .optimizer = optimizer,
          .stop = {.rounds = rounds}};
}

// The group is asked to suspend so that it does after `rounds` rounds; by one member alone.
GroupRun SuspendedAfter(std::uint64_t rounds, GroupRun run) {
  run.before_step = [rounds](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 0 && engine.rounds() + 1 >= rounds) {
      engine.RequestStop("paused", StopKind::kSuspend);
    }
  };
  return run;
}

// The same run in another group, from where `before` ended.
GroupRun GoingOn(GroupRun run, const MemberRun& before) {
  run.from = {.state = *before.state, .parameters = before.parameters};
  return run;
}

struct Method {
  std::string name;
  EngineOptions options{};
  policies::Plan plan{};
};

class ResumeTest : public testing::TestWithParam<Method> {};

// Parameters, reports and the state at the end; not the times, which each member's clock makes.
TEST_P(ResumeTest, AGroupOfTheSameSizeGoesOnBitForBit) {
  const GroupRun whole{.options = GetParam().options, .plan = GetParam().plan};
  const std::vector<MemberRun> uninterrupted = Train(whole);

  for (const std::uint64_t rounds : {1, 7, 16, 29}) {
    SCOPED_TRACE(rounds);
    const std::vector<MemberRun> first = Train(SuspendedAfter(rounds, whole));
    for (const MemberRun& member : first) {
      ASSERT_EQ(member.outcome, Outcome::kSuspended);
      EXPECT_TRUE(member.asked_to_stop);
      EXPECT_EQ(member.state->rounds, rounds);
    }
    const std::vector<MemberRun> second = Train(GoingOn(whole, first[0]));

    for (std::size_t rank = 0; rank < second.size(); ++rank) {
      const MemberRun& member = second[rank];
      EXPECT_EQ(member.outcome, Outcome::kFinished);
      EXPECT_FALSE(member.asked_to_stop);
      EXPECT_EQ(member.parameters, uninterrupted[rank].parameters);
      EXPECT_EQ(member.reason, uninterrupted[rank].reason);
      ASSERT_EQ(member.reports.size() + rounds, uninterrupted[rank].reports.size());
      for (std::size_t i = 0; i < member.reports.size(); ++i) {
        const policies::Report& is = member.reports[i];
        const policies::Report& was = uninterrupted[rank].reports[i + rounds];
        EXPECT_EQ(is.round, was.round);
        EXPECT_EQ(is.loss_mean_global, was.loss_mean_global);
        EXPECT_EQ(is.learning_rate, was.learning_rate);
        EXPECT_EQ(is.gain, was.gain);
        EXPECT_EQ(is.progress, was.progress);
        EXPECT_EQ(is.epoch_consumed, was.epoch_consumed);
      }
      EngineState state = *member.state;
      state.train_time = uninterrupted[rank].state->train_time;
      EXPECT_TRUE(state == *uninterrupted[rank].state);
    }
  }
}

EngineOptions Scheduled(EngineOptions options) {
  options.learning_rate = {.schedule = {.warmup_steps = 10,
                                        .shape = policies::Schedule::Shape::kCosine,
                                        .steps = 60,
                                        .final_rate = 0.001},
                           .base_batch = 7};
  return options;
}

EngineOptions WithBlockMomentum(EngineOptions options) {
  options.block_momentum = 0.3;
  options.keep_local_momentum = false;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Methods, ResumeTest,
    testing::Values(
        Method{"Momentum",
               Scheduled(Options(SgdOptions{.learning_rate = 0.02, .momentum = 0.9}, 40)),
               {.batch_sizes = {5, 3, 4}}},
        Method{"Adam", Options(AdamOptions{.learning_rate = 0.01}, 40), {.batch_sizes = {5, 3, 4}}},
        Method{"Lamb", Options(LambOptions{.learning_rate = 0.01}, 40), {.batch_sizes = {5, 8}}},
        Method{
            "PeriodicWithBlockMomentum",
            WithBlockMomentum(Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}, 40)),
            {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {2, 3, 1}}},
        Method{"Adascale",
               Scheduled(Options(SgdOptions{.learning_rate = 0.02, .momentum = 0.9}, 40)),
               {.learning_rate_rule = LearningRateRule::kAdascale, .batch_sizes = {5, 3, 4}}},
        Method{"AdasumOfOneStep",
               Options(SgdOptions{.learning_rate = 0.02}, 40),
               {.aggregation = Aggregation::kAdasum, .batch_sizes = {4, 4}}}),
    [](const auto& method) { return method.param.name; });

// Every sample of an epoch, over the generations of a job.
class UsedSamples {
 public:
  void Add(const std::vector<MemberRun>& group) {
    for (const MemberRun& member : group) {
      for (const auto& [epoch, samples] : member.used) {
        used_[epoch].insert(used_[epoch].end(), samples.begin(), samples.end());
      }
    }
  }
  void ExpectOnceEach(std::uint64_t epochs, std::uint64_t samples) {
    ASSERT_EQ(used_.size(), epochs);
    std::vector<std::uint64_t> all(samples);
    std::iota(all.begin(), all.end(), 0);
    for (auto& [epoch, indices] : used_) {
      std::ranges::sort(indices);
      EXPECT_EQ(indices, all) << "epoch " << epoch;
    }
  }

 private:
  std::map<std::uint64_t, std::vector<std::uint64_t>> used_;
};

policies::Plan RandomPlan(Rng& rng) {
  constexpr Synchronization kAll[] = {Synchronization::kEveryStep, Synchronization::kPeriodic,
                                      Synchronization::kDelayed};
  policies::Plan plan{.version = 1 + rng.Below(5), .synchronization = kAll[rng.Below(3)]};
  if (plan.synchronization != Synchronization::kEveryStep) {
    plan.period = static_cast<std::uint32_t>(1 + rng.Below(4));
  }
  const std::uint64_t members = 1 + rng.Below(4);
  for (std::uint64_t i = 0; i < members; ++i) {
    plan.batch_sizes.push_back(static_cast<std::uint32_t>(1 + rng.Below(6)));
  }
  return plan;
}

// Generations of random sizes and methods, each of which leaves after some rounds.
TEST(SuspensionPropertyTest, EverySampleIsUsedOnceAnEpochWhateverTheGroups) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    GroupRun run{.options = {.seed = seed,
                             .train_samples = 40 + rng.Below(200),
                             .micro_batch = 4,
                             .optimizer = SgdOptions{.learning_rate = 0.01, .momentum = 0.5},
                             .block_momentum = rng.Below(2) == 0 ? 0.3 : 0,
                             .keep_local_momentum = rng.Below(2) == 0,
                             .stop = {.epochs = 3}},
                 .plan = {}};
    UsedSamples used;
    std::uint64_t rounds = 0;
    std::uint64_t samples = 0;
    bool over = false;
    for (int generation = 0; !over; ++generation) {
      ASSERT_LT(generation, 1000);
      run.plan = RandomPlan(rng);
      const std::vector<MemberRun> group = Train(SuspendedAfter(rounds + 1 + rng.Below(9), run));
      used.Add(group);
      for (const MemberRun& member : group) {
        EXPECT_EQ(member.outcome, group[0].outcome);
        EXPECT_EQ(member.parameters, group[0].parameters);
        EXPECT_EQ(member.state->ledger, group[0].state->ledger);
        EXPECT_EQ(member.state->learning_rate, group[0].state->learning_rate);
        for (const policies::Report& report : member.reports) EXPECT_GE(report.round, rounds);
      }
      over = group[0].outcome == Outcome::kFinished;
      if (!over) {
        // Local steps leave each member momentum of its own, which is made one.
        for (const MemberRun& member : group) {
          EXPECT_EQ(member.state->optimizer, group[0].state->optimizer);
        }
      }
      for (const policies::Report& report : group[0].reports) samples += report.samples_global;
      rounds = group[0].state->rounds;
      EXPECT_EQ(group[0].state->samples_global, samples);
      run = GoingOn(run, group[0]);
    }
    used.ExpectOnceEach(3, run.options.train_samples);
  }
}

TEST(SuspensionTest, MomentumKeptByLocalStepsBecomesTheMembersMean) {
  GroupRun run{
      .options = Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}, 40),
      .plan = {.synchronization = Synchronization::kPeriodic, .period = 2, .batch_sizes = {3, 3}}};
  run.options.keep_local_momentum = true;

  const auto group = Train(SuspendedAfter(5, run));

  const auto& momentum = group[0].state->optimizer.at(0);
  EXPECT_EQ(momentum, group[1].state->optimizer.at(0));
  EXPECT_TRUE(std::ranges::any_of(momentum, [](float value) { return value != 0; }));
  EXPECT_EQ(group[0].state->steps, 10u);
}

// The window is undone, but not what it left in each member's moments.
TEST(SuspensionTest, CommonStepsAfterASkippedWindowStartWithEqualStates) {
  GroupRun run{.options = Options(AdamOptions{.learning_rate = 0.01}, 6),
               .plan = {.version = 1,
                        .synchronization = Synchronization::kPeriodic,
                        .period = 2,
                        .batch_sizes = {3, 3}}};
  run.before_step = [](int, RoundEngine& engine, StepResult&) {
    EXPECT_TRUE(engine.OfferPlan({.version = 2, .batch_sizes = {3, 3}}));
  };
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round == 0) gradients[3] = std::numeric_limits<float>::infinity();
  };

  const auto group = Train(run);

  EXPECT_EQ(group[0].reports.front().nonfinite_members, 1u);
  EXPECT_EQ(group[0].plan_versions[1], 2u);
  EXPECT_EQ(group[0].parameters, group[1].parameters);
}

// As the votes of two members, or of one of two.
Outcome OutcomeOf(std::optional<StopKind> first, std::optional<StopKind> second,
                  std::uint64_t rounds_max = 40) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.01}, rounds_max),
               .plan = {.batch_sizes = {3, 3}}};
  run.before_step = [=](int rank, RoundEngine& engine, StepResult&) {
    const auto kind = rank == 0 ? first : second;
    if (engine.rounds() == 4 && kind) engine.RequestStop("asked", *kind);
  };
  const auto group = Train(run);
  EXPECT_EQ(group[0].outcome, group[1].outcome);
  EXPECT_EQ(group[0].reports.size(), 5u);
  return group[0].outcome;
}

TEST(SuspensionTest, VotesOfSeveralKindsHaveOneOutcome) {
  constexpr StopKind kFinish = StopKind::kFinish;
  constexpr StopKind kDiscard = StopKind::kDiscard;
  constexpr StopKind kSuspend = StopKind::kSuspend;

  EXPECT_EQ(OutcomeOf(kSuspend, {}), Outcome::kSuspended);
  EXPECT_EQ(OutcomeOf({}, kSuspend), Outcome::kSuspended);
  EXPECT_EQ(OutcomeOf(kSuspend, kSuspend), Outcome::kSuspended);
  EXPECT_EQ(OutcomeOf(kSuspend, kFinish), Outcome::kFinished);
  EXPECT_EQ(OutcomeOf(kDiscard, kSuspend), Outcome::kDiscarded);
  EXPECT_EQ(OutcomeOf(kFinish, kDiscard), Outcome::kDiscarded);
}

TEST(SuspensionTest, AStopConditionInTheSameRoundFinishes) {
  EXPECT_EQ(OutcomeOf(StopKind::kSuspend, StopKind::kSuspend, 5), Outcome::kFinished);
}

TEST(SuspensionTest, ALaterRequestTakesThePlaceOfTheFormerButASuspensionThatOfNothing) {
  const auto ended = [](std::vector<StopKind> kinds) {
    GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.01}, 40),
                 .plan = {.batch_sizes = {6}}};
    run.before_step = [kinds](int, RoundEngine& engine, StepResult&) {
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        engine.RequestStop("request " + std::to_string(i), kinds[i]);
      }
    };
    const MemberRun member = Train(run)[0];
    return std::pair(member.outcome, member.reason);
  };

  EXPECT_EQ(ended({StopKind::kSuspend, StopKind::kFinish}),
            std::pair(Outcome::kFinished, std::string("request 1")));
  EXPECT_EQ(ended({StopKind::kSuspend, StopKind::kDiscard}),
            std::pair(Outcome::kDiscarded, std::string("request 1")));
  EXPECT_EQ(ended({StopKind::kFinish, StopKind::kSuspend}),
            std::pair(Outcome::kFinished, std::string("request 0")));
}

TEST(SuspensionTest, TimeThatIsUpFinishesAndCountsOverGroups) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.01}, 1000),
               .plan = {.batch_sizes = {6}}};
  const auto first = Train(SuspendedAfter(10, run));
  ASSERT_EQ(first[0].outcome, Outcome::kSuspended);
  const Duration trained = first[0].state->train_time;
  ASSERT_GT(trained, Duration{});
  run.options.stop.time = 2 * trained;

  const auto second = Train(GoingOn(run, first[0]));

  EXPECT_EQ(second[0].outcome, Outcome::kFinished);
  EXPECT_FALSE(second[0].asked_to_stop);
  EXPECT_NEAR(static_cast<double>(second[0].reports.size()), 10, 1);
}

TEST(SuspensionTest, WhoGoesOnWhereAStopConditionHoldsEndsAtOnce) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.01}, 40),
               .plan = {.batch_sizes = {6, 2}}};
  const auto first = Train(SuspendedAfter(10, run));
  run.options.stop.rounds = 10;

  const auto second = Train(GoingOn(run, first[0]));

  for (const MemberRun& member : second) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_EQ(member.reason, "10 rounds completed");
    EXPECT_TRUE(member.reports.empty());
    EXPECT_EQ(member.parameters, first[0].parameters);
  }
}

TEST(SuspensionTest, WhoGoesOnWhenTheTimeIsUpEndsAtOnce) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.01}, 40),
               .plan = {.batch_sizes = {6, 2}}};
  const auto first = Train(SuspendedAfter(10, run));
  run.options.stop.time = first[0].state->train_time;

  const auto second = Train(GoingOn(run, first[0]));

  for (const MemberRun& member : second) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_FALSE(member.asked_to_stop);
    EXPECT_TRUE(member.reason.ends_with("s are over")) << member.reason;
    EXPECT_TRUE(member.reports.empty());
  }
}

// ---- States of any origin

EngineState Whole() {
  return {.rounds = 9,
          .ledger = {.epoch_size = 10, .fresh = 8, .returned = {{0, 2}, {4, 5}}},
          .losses = {{.common = {.sum = 1, .samples = 2}, .steps = 1}},
          .optimizer = {{1, 2}}};
}

const StateFit kFit{.length = 2, .optimizer_buffers = 1, .train_samples = 10};

template <typename Spoil>
std::string ReasonAgainstSpoilt(const Spoil& spoil) {
  EngineState state = Whole();
  spoil(state);
  return ReasonAgainst(state, kFit);
}

TEST(EngineStateTest, AStateThatFitsIsTaken) { EXPECT_EQ(ReasonAgainst(Whole(), kFit), ""); }

// Losses of members that are finite, and whose sum is beyond a lane's float32.
TEST(EngineStateTest, TheStateOfAJobThatDivergesIsTaken) {
  GroupRun run{.options = Options(SgdOptions{.learning_rate = 0.01}, 40),
               .plan = {.batch_sizes = {3, 3}}};
  const GroupRun suspended = SuspendedAfter(5, run);
  run.before_step = suspended.before_step;
  run.on_loss = [](int, const RoundEngine&, double& loss) { loss = 1e300; };
  const auto first = Train(run);
  ASSERT_EQ(first[0].outcome, Outcome::kSuspended);
  EXPECT_EQ(first[0].state->losses.front().common.sum, std::numeric_limits<double>::infinity());

  EXPECT_EQ(Train(GoingOn({.options = run.options, .plan = run.plan}, first[0]))[0].outcome,
            Outcome::kFinished);
}

TEST(EngineStateTest, AStateThatDoesNotFitIsRefusedWithTheReason) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(ReasonAgainst(Whole(), {.length = 2, .optimizer_buffers = 2, .train_samples = 10}),
            "its optimizer has 1 buffers of state, the job's has 2");
  EXPECT_EQ(ReasonAgainst(Whole(), {.length = 3, .optimizer_buffers = 1, .train_samples = 10}),
            "its optimizer's state has 2 elements, the model 3");
  EXPECT_EQ(
      ReasonAgainst(Whole(), {.length = 2, .optimizer_buffers = 1, .train_samples = 11}),
      "its epochs have 10 samples, the job's have 11: of other data, or of another part of it "
      "(data.subset)");
  EXPECT_EQ(ReasonAgainstSpoilt([](EngineState& s) { s.block_momentum = {1}; }),
            "its block momentum has 1 elements, the model 2");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.train_time = Seconds(-1); }), "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.learning_rate.progress = -1; }), "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.learning_rate.progress = kInfinity; }), "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.learning_rate.adascale.base_batch = 0; }),
            "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) {
              s.learning_rate.adascale.average.moments.sigma2 = kInfinity;
            }),
            "");
  EXPECT_NE(
      ReasonAgainstSpoilt([](EngineState& s) { s.learning_rate.windows.average.moments.mu2 = -1; }),
      "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.losses[0].steps = 0; }), "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.losses[0].common.samples = kInfinity; }),
            "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.losses[0].local.samples = -1; }), "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.losses[0].steps = ~std::uint64_t{0}; }), "");
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.losses.resize(21, s.losses[0]); }), "");
}

TEST(EngineStateTest, ALedgerWithPositionsOutOfOrderIsRefused) {
  using Returned = std::vector<Stretch>;
  for (const Returned& returned :
       {Returned{{2, 2}}, Returned{{3, 2}}, Returned{{2, 8}}, Returned{{2, 9}},
        Returned{{4, 5}, {0, 2}}, Returned{{0, 2}, {2, 3}}, Returned{{0, 3}, {2, 4}}}) {
    EXPECT_NE(ReasonAgainstSpoilt([&](EngineState& s) { s.ledger.returned = returned; }), "")
        << returned[0].begin << " " << returned[0].end;
  }
  EXPECT_NE(ReasonAgainstSpoilt([](EngineState& s) { s.ledger.fresh = ~std::uint64_t{0}; }), "");
}

}  // namespace
}  // namespace tactus::engine
