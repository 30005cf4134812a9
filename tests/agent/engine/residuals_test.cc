// What encodings have left with members outlives pauses, and goes on in groups of other sizes.

#include "agent/engine/combine/residuals.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/engine/residual_talks.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encoded_group.h"
#include "tests/agent/engine/encodings.h"
#include "tests/agent/engine/linear_task.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using policies::Synchronization;

// ---- The rule

std::vector<Residuals> SharesOf(const std::vector<Residuals>& parts, std::size_t size) {
  std::vector<Residuals> shares;
  for (std::size_t rank = 0; rank < size; ++rank) {
    shares.push_back(
        ShareOf({.members = parts.size(), .of = [&](std::size_t part) { return parts[part]; }},
                rank, size));
  }
  return shares;
}

// Each has as much of a vector's every value as its rank, counted from 1.
std::vector<Residuals> Ranks(std::size_t members) {
  std::vector<Residuals> parts;
  for (std::size_t rank = 0; rank < members; ++rank) {
    parts.push_back(
        {{"v", std::vector<float>(16, static_cast<float>(rank + 1))}, {"v_of", {8, 1}}});
  }
  return parts;
}

std::vector<float> FirstOfEach(const std::vector<Residuals>& shares) {
  std::vector<float> values;
  for (const Residuals& share : shares) {
    values.push_back(share.empty() ? 0 : share.at("v").front());
  }
  return values;
}

// S6's vector, before it is scaled: there the fourth of four leaves its own to the first.
TEST(ResidualShareTest, GoesByTheSpecification) {
  EXPECT_THAT(FirstOfEach(SharesOf(Ranks(4), 4)), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(FirstOfEach(SharesOf(Ranks(4), 3)), ElementsAre(5, 2, 3));
  EXPECT_THAT(FirstOfEach(SharesOf(Ranks(2), 5)), ElementsAre(1, 2, 0, 0, 0));
  EXPECT_THAT(FirstOfEach(SharesOf(Ranks(5), 2)), ElementsAre(1 + 3 + 5, 2 + 4));
  EXPECT_THAT(FirstOfEach(SharesOf(Ranks(3), 1)), ElementsAre(6));
  EXPECT_THAT(FirstOfEach(SharesOf({}, 2)), ElementsAre(0, 0));
}

TEST(ResidualShareTest, WhatItIsOfIsWhatItWas) {
  for (const Residuals& share : SharesOf(Ranks(5), 2)) {
    EXPECT_THAT(share.at("v_of"), ElementsAre(8, 1));
  }
}

// One with whom nothing was left yet does not say of what.
TEST(ResidualShareTest, WhoHasNothingYetTakesWhatItIsOf) {
  std::vector<Residuals> parts = Ranks(3);
  parts[0] = {{"v", std::vector<float>(16)}, {"v_of", {0, 0}}};

  EXPECT_THAT(SharesOf(parts, 1)[0].at("v_of"), ElementsAre(8, 1));
}

// ---- Encodings

// From a minimum of its own in each dimension, which members see with noise of their own.
Task Quadratic() {
  constexpr std::size_t kDimensions = 2048;  // fewer travel as float32
  return {.segments = {{.name = "w", .length = kDimensions, .shape = {32, 64}},
                       {.name = "b", .length = 3, .shape = {3}}},
          .start = std::vector<float>(kDimensions + 3, 1),
          .add_gradient = [](int, std::uint64_t index, std::span<const float> parameters,
                             std::span<float> gradients) {
            Rng rng(index);
            double loss = 0;
            for (std::size_t i = 0; i < parameters.size(); ++i) {
              const float slope = parameters[i] + static_cast<float>(rng.Normal());
              gradients[i] += i < kDimensions + 3 ? slope : 0;
              loss += 0.5 * slope * slope;
            }
            return loss;
          }};
}

struct Method {
  std::string name;
  policies::Plan plan{};
  OptimizerOptions optimizer = SgdOptions{.learning_rate = 0.01, .momentum = 0.5};
};

GroupRun RunOf(const Method& method, std::vector<std::uint32_t> batch_sizes) {
  GroupRun run{.options = {.train_samples = 500,
                           .micro_batch = 4,
                           .optimizer = method.optimizer,
                           .keep_local_momentum = false,
                           .stop = {.rounds = 12},
                           .encoding = {.one_bit = {.warm_up = 2}}},
               .plan = method.plan,
               .task = Quadratic()};
  run.plan.version = 1;
  run.plan.batch_sizes = std::move(batch_sizes);
  return run;
}

GroupRun SuspendedAfter(std::uint64_t rounds, GroupRun run) {
  run.before_step = [rounds](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 0 && engine.rounds() + 1 >= rounds) {
      engine.RequestStop("paused", StopKind::kSuspend);
    }
  };
  return run;
}

// A checkpoint is rank 0's.
GroupRun From(const Continued& checkpoint, GroupRun run) {
  run.from = checkpoint;
  run.from->state.residuals.clear();
  return run;
}

Continued CheckpointOf(const MemberRun& member) {
  return {.state = *member.state, .parameters = member.parameters, .residuals = member.residuals};
}

std::vector<Residuals> ResidualsOf(const std::vector<MemberRun>& members) {
  std::vector<Residuals> residuals;
  for (const MemberRun& member : members) residuals.push_back(member.state->residuals);
  return residuals;
}

class KeptResidualsTest : public ::testing::TestWithParam<Method> {};

TEST_P(KeptResidualsTest, AGroupOfTheSameSizeGoesOnBitForBit) {
  const GroupRun run = RunOf(GetParam(), {5, 3, 4});
  const std::vector<MemberRun> whole = Train(run);

  const std::vector<MemberRun> first = Train(SuspendedAfter(7, run));
  EXPECT_EQ(first[0].outcome, Outcome::kSuspended);
  EXPECT_EQ(first[0].residuals, ResidualsOf(first));
  EXPECT_NE(first[0].residuals[0], first[0].residuals[1]);
  EXPECT_THAT(first[1].residuals, IsEmpty());
  const std::vector<MemberRun> second = Train(From(CheckpointOf(first[0]), run));

  for (std::size_t rank = 0; rank < whole.size(); ++rank) {
    EXPECT_EQ(second[rank].parameters, whole[rank].parameters);
    EXPECT_EQ(second[rank].state->residuals, whole[rank].state->residuals);
  }
  Continued without = CheckpointOf(first[0]);
  without.residuals.clear();
  EXPECT_NE(Train(From(without, run))[0].parameters, whole[0].parameters);
}

// What is asked for changes nothing of training.
TEST_P(KeptResidualsTest, AGroupGoesOnBitForBitFromWhatWasTakenAtAnEdge) {
  GroupRun run = RunOf(GetParam(), {5, 3, 4});
  const std::vector<MemberRun> whole = Train(run);
  GroupRun watched = run;
  watched.keep_edges = true;
  watched.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 0 && engine.rounds() == 5) engine.RequestResiduals();
  };

  const std::vector<MemberRun> taken = Train(watched);

  EXPECT_EQ(taken[0].parameters, whole[0].parameters);
  EXPECT_THAT(taken[0].edges[4].residuals, IsEmpty());
  EXPECT_THAT(taken[0].edges[6].residuals, IsEmpty());
  ASSERT_EQ(taken[0].edges[5].state.rounds, 6u);
  ASSERT_EQ(taken[0].edges[5].residuals.size(), 3u);
  const std::vector<MemberRun> on = Train(From(taken[0].edges[5], run));
  for (std::size_t rank = 0; rank < whole.size(); ++rank) {
    EXPECT_EQ(on[rank].parameters, whole[rank].parameters);
    EXPECT_EQ(on[rank].state->residuals, whole[rank].state->residuals);
  }
}

// Rank 0 asks for them at the edge at which a validation ends training, and with it a trial.
TEST_P(KeptResidualsTest, WhatATrialsEndPutsBackIsNotWhatWasGathered) {
  GroupRun run = RunOf(GetParam(), {5, 3, 4});
  run.options.stop = {.patience = 1};
  run.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 1, .samples = 10};
  run.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.rounds() == 6 ? 5.0 : 1.0 / static_cast<double>(engine.rounds());
  };
  run.on_loss = [](int, const RoundEngine& engine, double& loss) {
    if (engine.plan().version > 1) loss += 1e6;
  };
  run.before_step = [plan = run.plan](int rank, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 2) {
      policies::Plan trial = plan;
      trial.version = 2;
      trial.trial = policies::Trial::kBegins;
      engine.OfferPlan(std::move(trial));
    }
    if (rank == 0 && engine.rounds() == 5) engine.RequestResiduals();
  };

  const std::vector<MemberRun> group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kFinished);
  EXPECT_EQ(group[0].reports.size(), 6u);
  EXPECT_THAT(group[0].residuals, IsEmpty());
}

// A share is a sum of up to four parts, each addition of which rounds by 2^-24 of the magnitudes.
TEST_P(KeptResidualsTest, NothingIsLostInAGroupOfAnotherSize) {
  const GroupRun run = RunOf(GetParam(), {5, 3, 4, 2});
  const MemberRun first = Train(SuspendedAfter(7, run))[0];
  ASSERT_EQ(first.residuals.size(), 4u);

  for (const std::size_t size : {1, 2, 3, 5}) {
    const std::vector<Residuals> shares = SharesOf(first.residuals, size);
    for (const auto& [name, values] : first.residuals[0]) {
      for (std::size_t i = 0; i < values.size() && OfVector(values); ++i) {
        double owed = 0;
        double magnitude = 0;
        for (const Residuals& part : first.residuals) {
          owed += part.at(name)[i];
          magnitude += std::abs(part.at(name)[i]);
        }
        for (const Residuals& share : shares) owed -= share.empty() ? 0 : share.at(name)[i];
        ASSERT_LE(std::abs(owed), 3 * 0x1p-24 * magnitude) << name << " " << i;
      }
    }
    GroupRun other = From(CheckpointOf(first), run);
    other.plan.batch_sizes.assign(size, 3);
    const std::vector<MemberRun> on = Train(other);
    for (const MemberRun& member : on) EXPECT_EQ(member.parameters, on[0].parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Every, KeptResidualsTest,
    ::testing::Values(Method{"Adacomp", {.encoding = policies::Encoding::kAdacomp}},
                      Method{"Sketch", {.encoding = policies::Encoding::kSketch}},
                      Method{"OneBit",
                             {.encoding = policies::Encoding::kOneBit},
                             AdamOptions{.learning_rate = 0.01}},
                      Method{"OfChanges",
                             {.synchronization = Synchronization::kPeriodic,
                              .period = 2,
                              .encoding = policies::Encoding::kAdacomp}}),
    [](const auto& method) { return method.param.name; });

// The fourth of four is gone, and the round's samples are three quarters: S6's vector, for sums.
TEST(ResidualScaleTest, IsTheSpecifications) {
  EncodedGroup group({.members = 3,
                      .kind = policies::Encoding::kAdacomp,
                      .segments = {{.name = "a", .length = 2048, .shape = {32, 64}}}});
  const std::vector<std::vector<float>> zeros(3, std::vector<float>(group.length()));
  group.Sum(zeros, {.samples = 3});
  std::vector<Residuals> parts(4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    parts[rank] = {{"adacomp", std::vector<float>(2048, static_cast<float>(rank + 1))},
                   {"adacomp_of", {4, 0}}};
  }
  const std::vector<Residuals> shares = SharesOf(parts, 3);
  for (const int rank : {0, 1, 2}) {
    group.encodings(rank).Restore(shares[static_cast<std::size_t>(rank)]);
  }

  group.Sum(zeros, {.samples = 3});
  group.Settle(false);

  EXPECT_THAT(group.LeftOver(0), Each(3.75f));
  EXPECT_THAT(group.LeftOver(1), Each(1.5f));
  EXPECT_THAT(group.LeftOver(2), Each(2.25f));
}

// A pause and another synchronization: what was left of gradients is no change of parameters.
TEST(ResidualScaleTest, WhatIsOfAnotherKindIsForgottenBehindAPause) {
  EncodedGroup group({.members = 2,
                      .kind = policies::Encoding::kAdacomp,
                      .segments = {{.name = "a", .length = 2048, .shape = {32, 64}}}});
  const std::vector<std::vector<float>> zeros(2, std::vector<float>(group.length()));
  const Residuals of_gradients = {{"adacomp", std::vector<float>(2048, 1)}, {"adacomp_of", {1, 0}}};
  for (const int rank : {0, 1}) group.encodings(rank).Restore(of_gradients);

  EXPECT_THAT(group.Sum(zeros, {.changes = true})[0], Each(0));
}

// Before a round has been, it is what a pause or a trial finds all the same.
TEST(ResidualScaleTest, WhatNoEncodingHasTakenUpYetIsNotLost) {
  const auto device = cuda::MakeHostDevice("cpu:0");
  Encodings encodings({}, *device, {{.name = "a", .length = 16, .shape = {16}}});
  const Residuals kept = {{"adacomp", std::vector<float>(16, 1)}, {"adacomp_of", {4, 0}}};
  encodings.Restore(kept);

  Residuals copy = {{"another", {1}}};
  encodings.CopyResiduals(copy);

  EXPECT_EQ(copy, kept);
}

// ---- Rounds that overlap

TEST(OverlappingRoundsTest, AreWaitedForWhereResidualsAreWanted) {
  const Method method{.name = "Delayed",
                      .plan = {.synchronization = Synchronization::kDelayed,
                               .period = 2,
                               .encoding = policies::Encoding::kAdacomp}};
  GroupRun run = RunOf(method, {3, 2});
  run.keep_edges = true;
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 0) engine.RequestResiduals();
  };

  const std::vector<MemberRun> members = Train(run);

  EXPECT_EQ(members[0].parameters, members[1].parameters);
  std::size_t gathered = 0;
  for (const Continued& edge : members[0].edges) {
    if (edge.residuals.empty()) continue;
    ++gathered;
    // Its samples would be free in the state otherwise: see EdgeStateTest.
    EXPECT_EQ(edge.residuals.size(), 2u);
    EXPECT_EQ(edge.residuals[0], edge.state.residuals);
  }
  EXPECT_GT(gathered, 3u);
}

// ---- Groups that change

class LeavingTest : public ::testing::Test {
 protected:
  LeavingTest() {
    options_.encoding.dense = [](cuda::Device&, std::size_t length) {
      return std::make_unique<RoundingEncoding>(4.0f, length);
    };
  }

  static std::vector<double> OwedTo(const std::vector<Survivor*>& members) {
    std::vector<double> owed(Survivor::kLength);
    for (Survivor* const member : members) {
      for (std::size_t i = 0; i < owed.size(); ++i) owed[i] += Owed(*member)[i];
    }
    return owed;
  }

  static std::vector<float> Owed(Survivor& member) {
    EngineState state;
    member.member().CopyState(state);
    return state.residuals.at("left");
  }

  // All leave after so many rounds, and rank 0 alone has heard of who will not be back.
  static Survivor::BeforeStep RegroupAfter(std::uint64_t rounds,
                                           std::vector<std::uint32_t> leaving) {
    return [=](RoundEngine& engine, collective::Transport& transport) {
      if (transport.rank() == 0 && engine.rounds() + 1 == rounds) {
        engine.NoteLeaving(leaving);
        engine.RequestStop("told to", StopKind::kRegroup);
      }
      return true;
    };
  }

  EngineOptions options_{
      .train_samples = 200, .optimizer = SgdOptions{.learning_rate = 0.01}, .stop = {.rounds = 20}};
};

// What each owes is below 2 a value, as half of a quantum is, and three sums of these round.
constexpr double kRounding = 3 * 6 * 0x1p-24;

TEST_F(LeavingTest, WhoLeavesByThePlanLeavesItsOwnToThoseWhoStay) {
  const policies::Plan plan{.batch_sizes = {2, 2, 2, 2}};
  const Members whole(options_, 4);
  std::vector<Survivor*> all_stay = whole.Everybody();
  Train(all_stay, {.plan = plan, .before_step = RegroupAfter(5, {})});
  const Members torn(options_, 4);
  std::vector<Survivor*> members = torn.Everybody();

  Train(members, {.plan = plan, .before_step = RegroupAfter(5, {3, 9, 2})});

  EXPECT_THAT(Owed(torn[2]), Each(0));
  EXPECT_THAT(Owed(torn[3]), Each(0));
  const std::vector<double> owed = OwedTo(members);
  EXPECT_THAT(owed, ::testing::Pointwise(::testing::DoubleNear(kRounding), OwedTo(all_stay)));
  EXPECT_THAT(owed, ::testing::Not(Each(0)));
  members.resize(2);
  Train(members, {.plan = {.batch_sizes = {4, 4}}});
  EXPECT_EQ(members[0]->parameters(), members[1]->parameters());
  EXPECT_EQ(members[0]->member().rounds, 20u);
}

TEST_F(LeavingTest, TheSumIsKept) {
  const auto device = cuda::MakeHostDevice("cpu:0");
  const cuda::SegmentTable segments = {{.name = "x", .length = 32, .shape = {32}}};
  for (const std::vector<std::uint32_t>& leaving :
       std::vector<std::vector<std::uint32_t>>{{}, {3}, {0}, {0, 1, 3}, {1, 2}, {0, 1, 2, 3}}) {
    std::vector<std::unique_ptr<Encodings>> all;
    std::vector<double> owed(32);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      all.push_back(std::make_unique<Encodings>(options_.encoding, *device, segments));
      all.back()->For(policies::Encoding::kDense);
      Rng rng(rank);
      for (std::size_t i = 0; i < owed.size(); ++i) {
        float& value = all.back()->Residuals()[0].values[i];
        value = static_cast<float>(rng.Normal());
        owed[i] += value;
      }
    }
    const auto transports = NewGroup(4);
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < 4; ++rank) {
        threads.emplace_back([&, rank] {
          const std::vector<std::uint32_t> heard =
              rank == 1 ? leaving : std::vector<std::uint32_t>();
          const auto completion = HandOverResiduals(*all[rank], *device, *transports[rank], heard, 1);
          EXPECT_EQ(completion.progress, collective::Progress::kDone);
        });
      }
    }
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const std::span<const float> values = all[rank]->Residuals()[0].values;
      const bool left = std::ranges::find(leaving, rank) != leaving.end() && leaving.size() < 4;
      if (left) {
        EXPECT_THAT(values, Each(0));
      }
      for (std::size_t i = 0; i < owed.size(); ++i) owed[i] -= values[i];
    }
    for (const double still : owed) EXPECT_NEAR(still, 0, kRounding);
  }
}

// What travels is of the last applied round, and stays with each where it does not come to anybody.
TEST_F(LeavingTest, WhereTheGroupIsLostOnTheWayItStays) {
  const auto device = cuda::MakeHostDevice("cpu:0");
  Encodings encodings(options_.encoding, *device, {{.name = "x", .length = 32, .shape = {32}}});
  encodings.For(policies::Encoding::kDense);
  std::ranges::fill(encodings.Residuals()[0].values, 1.0f);
  const auto transports = NewGroup(2);
  transports[0]->Abort("told to");
  std::vector<Residuals> parts;

  EXPECT_EQ(GatherResiduals(encodings, *device, *transports[0], parts).progress,
            collective::Progress::kFailed);
  EXPECT_THAT(parts, IsEmpty());
  EXPECT_EQ(HandOverResiduals(encodings, *device, *transports[0], {0}, 1).progress,
            collective::Progress::kFailed);
  EXPECT_THAT(encodings.Residuals()[0].values, Each(1));
}

}  // namespace
}  // namespace tactus::engine
