// Adasum between replicas that are meshes: each member has a part of the model, and the products
// that it goes by are those of all of it.

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/engine/mesh_task.h"

namespace tactus::engine::mesh_task {
namespace {

Plan ByAdasum(Plan plan) {
  plan.aggregation = policies::Aggregation::kAdasum;
  return plan;
}

// Its steps are linear in the gradient, so that gradients are what is combined.
Way OfPlainSgd() { return WayOf("PlainSgd", SgdOptions{.learning_rate = 0.01}); }

// A step's gradient is some 5 x 40 roundings of its length off, as mesh_windows_test.cc has it. The
// coefficients are of quotients of products of two such, so that what is combined is 4 times as far
// off. There are 3 x 14 steps at most, which momentum repeats twice; Adam and LAMB go by quotients
// once more.
constexpr double kBound = 2 * 2 * 2 * 4 * 5 * 40 * 42 * 0x1p-24;

// Of a norm's square, of one step.
constexpr double kNormBound = 2 * 4 * 5 * 40 * 0x1p-24;

const std::vector<std::uint32_t> kSizes = {8, 4, 4, 8};

std::vector<std::uint32_t> SizesOf(int replicas) {
  return {kSizes.begin(), kSizes.begin() + replicas};
}

// ---- As workers that hold all of the model

class MeshAdasumTest : public testing::TestWithParam<std::tuple<Way, MeshShape, int>> {};

TEST_P(MeshAdasumTest, StepsAreThoseOfWorkersThatHoldAll) {
  const auto& [way, shape, replicas] = GetParam();
  const MeshShape whole{1, 1};
  Replicas workers(way.options, whole, replicas);
  workers.Train({.plan = ByAdasum(PlanOfSteps(whole, SizesOf(replicas)))});
  Replicas averaged(way.options, whole, replicas);
  averaged.Train({.plan = PlanOfSteps(whole, SizesOf(replicas))});
  Replicas meshes(way.options, shape, replicas);

  meshes.Train({.plan = ByAdasum(PlanOfSteps(shape, SizesOf(replicas)))});

  const std::vector<float> expected = workers.Parameters();
  const double length = Length(expected);
  EXPECT_GT(Distance(averaged.Parameters(), expected), 2 * kBound * length) << "it has an effect";
  EXPECT_LT(Distance(meshes.Parameters(), expected), kBound * length);
  const policies::Report& of_worker = workers[0].reports()[0];
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    const policies::Report& found = meshes[rank].reports()[0];
    EXPECT_EQ(meshes[rank].reports().size(), workers[0].reports().size());
    EXPECT_EQ(found.samples_global, of_worker.samples_global);
    EXPECT_NEAR(found.gradient_norm2_global, of_worker.gradient_norm2_global,
                kNormBound * of_worker.gradient_norm2_global);
    EXPECT_NEAR(found.orthogonality, of_worker.orthogonality, 4 * kNormBound);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, MeshAdasumTest,
                         testing::Combine(testing::Values(OfPlainSgd(), Clipped(OfPlainSgd())),
                                          testing::Values(MeshShape{1, 2}, MeshShape{2, 2}),
                                          testing::Values(2, 3, 4)),
                         [](const auto& each) {
                           return NameOf(std::get<0>(each.param), std::get<1>(each.param)) + "By" +
                                  std::to_string(std::get<2>(each.param));
                         });

class MeshAdasumWindowsTest : public testing::TestWithParam<std::tuple<Way, MeshShape>> {};

TEST_P(MeshAdasumWindowsTest, ChangesAreCombinedAsThoseOfWorkersThatHoldAll) {
  const auto& [way, shape] = GetParam();
  const MeshShape whole{1, 1};
  Replicas workers(way.options, whole, 3);
  workers.Train({.plan = ByAdasum(PlanOf(whole, SizesOf(3)))});
  Replicas averaged(way.options, whole, 3);
  averaged.Train({.plan = PlanOf(whole, SizesOf(3))});
  Replicas meshes(way.options, shape, 3);

  meshes.Train({.plan = ByAdasum(PlanOf(shape, SizesOf(3)))});

  const std::vector<float> expected = workers.Parameters();
  const double length = Length(expected);
  EXPECT_GT(Distance(averaged.Parameters(), expected), 2 * kBound * length) << "it has an effect";
  EXPECT_LT(Distance(meshes.Parameters(), expected), kBound * length);
}

INSTANTIATE_TEST_SUITE_P(Ways, MeshAdasumWindowsTest,
                         testing::Combine(testing::ValuesIn(AllWays()),
                                          testing::Values(MeshShape{1, 2}, MeshShape{2, 2})),
                         [](const auto& each) {
                           return NameOf(std::get<0>(each.param), std::get<1>(each.param));
                         });

// What is combined with nobody stays, and its lanes are of all members.
TEST(MeshAdasumAloneTest, OneReplicaTrainsAsByAverages) {
  const MeshShape shape{2, 2};
  Replicas averaged(OfPlainSgd().options, shape, 1);
  averaged.Train({.plan = PlanOfSteps(shape, {8})});
  Replicas meshes(OfPlainSgd().options, shape, 1);

  meshes.Train({.plan = ByAdasum(PlanOfSteps(shape, {8}))});

  const std::vector<float> expected = averaged.Parameters();
  EXPECT_LT(Distance(meshes.Parameters(), expected), kBound * Length(expected));
  EXPECT_EQ(meshes[0].reports()[0].samples_global, 8u);
}

TEST(MeshAdasumNotFiniteTest, NobodyTakesAStepWhereOneMembersGradientIsNotFinite) {
  Way way = OfPlainSgd();
  way.options.stop = {.rounds = 1};
  Replicas meshes(way.options, {2, 2}, 2);

  meshes.Train({.plan = ByAdasum(PlanOfSteps({2, 2}, {8, 4})),
                .before_step = [](int rank, RoundEngine&, std::span<float> gradients) {
                  if (rank == 6) gradients[0] = std::numeric_limits<float>::infinity();
                  return true;
                }});

  EXPECT_EQ(meshes.Parameters(), std::vector<float>(kUnknowns));
  EXPECT_EQ(meshes[0].reports()[0].nonfinite_members, 1u);
}

// ---- Losses

// Of a step of two replicas: the products of the level, the lanes, and the norm of what came out.
constexpr int kSumsOfStep = 3;

// Whose members have all applied as many rounds; others are ended.
bool IsWhole(const Replicas& meshes, std::size_t replica) {
  for (std::size_t rank = 4 * replica; rank < 4 * replica + 4; ++rank) {
    if (meshes[rank].member().rounds != meshes[4 * replica].member().rounds) return false;
  }
  return true;
}

class LostMeshAdasumTest : public testing::TestWithParam<std::tuple<int, int>> {};

// One does not hear of a sum that others of its replica have heard of. Before its replica's norm
// nobody there has taken the step, and the replica does it anew or takes over what the other has.
TEST_P(LostMeshAdasumTest, AStepWhoseSumsWereLostIsDoneAnewOrTakenOver) {
  const auto& [loser, lost] = GetParam();
  const MeshShape shape{2, 2};
  const Plan plan = ByAdasum(PlanOfSteps(shape, {8, 4}));
  Replicas undisturbed(OfPlainSgd().options, shape, 2);
  undisturbed.Train({.plan = plan});
  Replicas meshes(OfPlainSgd().options, shape, 2);

  const auto outcomes =
      meshes.Train({.plan = plan, .loses_sum = [&, who = loser, which = lost](int rank, int sum) {
                      return rank == who && sum == kSumsOfStep + which;
                    }});
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, Outcome::kGroupLost);
  ASSERT_TRUE(IsWhole(meshes, 0) && IsWhole(meshes, 1));
  EXPECT_EQ(meshes[static_cast<std::size_t>(loser)].member().rounds, 1u);
  meshes.Train({.plan = plan}, true);

  EXPECT_EQ(meshes.Parameters(), undisturbed.Parameters());
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    EXPECT_EQ(meshes[rank].State().ledger, undisturbed[rank].State().ledger) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Sums, LostMeshAdasumTest,
                         testing::Combine(testing::Values(0, 3, 5),
                                          testing::Range(0, kSumsOfStep - 1)),
                         [](const auto& each) {
                           return "Rank" + std::to_string(std::get<0>(each.param)) + "Sum" +
                                  std::to_string(std::get<1>(each.param));
                         });

// The others of its replica have taken the step by then: it is torn, and ended. The other one has
// all of the step, and goes on.
TEST(MeshAdasumLossTest, AReplicaThatWasTornByItsNormIsEndedAndTheOtherGoesOn) {
  const MeshShape shape{2, 2};
  Replicas meshes(OfPlainSgd().options, shape, 2);

  meshes.Train({.plan = ByAdasum(PlanOfSteps(shape, {8, 4})), .loses_sum = [](int rank, int sum) {
                  return rank == 5 && sum == 2 * kSumsOfStep - 1;
                }});
  EXPECT_FALSE(IsWhole(meshes, 1));
  ASSERT_TRUE(IsWhole(meshes, 0));
  EXPECT_EQ(meshes[0].member().rounds, 2u);
  meshes.EndLast();
  const auto outcomes = meshes.Train({.plan = ByAdasum(PlanOfSteps(shape, {8}))}, true);

  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, Outcome::kFinished);
  meshes.Parameters();  // copies are equal
}

// A member of the last replica dies before a step that all others have come to, i.e. none of them
// is still at the round before: the others go on, with equal parameters.
class DeadMeshAdasumTest : public testing::TestWithParam<std::tuple<int, std::uint64_t>> {};

TEST_P(DeadMeshAdasumTest, SurvivorsHaveEqualParameters) {
  const auto& [replicas, round] = GetParam();
  const MeshShape shape{2, 2};
  Replicas meshes(OfPlainSgd().options, shape, replicas);
  const int dead = 4 * replicas - 2;
  std::latch others_came(4 * replicas - 1);

  const auto lost = meshes.Train(
      {.plan = ByAdasum(PlanOfSteps(shape, SizesOf(replicas))),
       .before_step = [&, at = round](int rank, RoundEngine& engine, std::span<float>) {
         if (engine.rounds() != at) return true;
         if (rank != dead) {
           others_came.count_down();
           return true;
         }
         others_came.wait();
         return false;
       }});
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    EXPECT_EQ(lost[rank].has_value(), rank != static_cast<std::size_t>(dead));
  }
  meshes.EndLast();
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(replicas); ++i) {
    ASSERT_TRUE(IsWhole(meshes, i));
    EXPECT_EQ(meshes[4 * i].member().rounds, round);
  }
  const auto outcomes =
      meshes.Train({.plan = ByAdasum(PlanOfSteps(shape, SizesOf(replicas - 1)))}, true);

  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, Outcome::kFinished);
  EXPECT_GT(Length(meshes.Parameters()), 0.1);
}

INSTANTIATE_TEST_SUITE_P(Rounds, DeadMeshAdasumTest,
                         testing::Combine(testing::Values(2, 3, 4),
                                          testing::Values<std::uint64_t>(0, 2)),
                         [](const auto& each) {
                           return "Of" + std::to_string(std::get<0>(each.param)) + "InRound" +
                                  std::to_string(std::get<1>(each.param));
                         });

class LostMeshAdasumWindowTest : public testing::TestWithParam<Way> {};

// As LostMeshTest has it of averages: the window goes on with whole replicas.
TEST_P(LostMeshAdasumWindowTest, TheShareOfTheDeadReplicaAloneIsLost) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas without(way.options, shape, 2);
  without.Train({.plan = ByAdasum(PlanOf(shape, {8, 4}))});
  Replicas meshes(way.options, shape, 3);
  std::barrier together(4);

  meshes.Train({.plan = ByAdasum(PlanOf(shape, {8, 4, 8})),
                .before_step = [](int rank, RoundEngine&, std::span<float>) { return rank != 9; },
                .after_step =
                    [&](int rank, RoundEngine&) {
                      if (rank >= 4) return true;
                      together.arrive_and_wait();
                      return false;
                    }});
  meshes.EndLast();
  meshes.Train({.plan = ByAdasum(PlanOf(shape, {8, 4}))}, true);

  EXPECT_EQ(meshes.Parameters(), without.Parameters());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(meshes[rank].State(), without[rank].State()) << "rank " << rank;
  }
}

// Behind the window's steps, in the sums by which it is combined: all have them still.
TEST_P(LostMeshAdasumWindowTest, AWindowWhoseProductsWereLostIsCombinedAnew) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  const Plan plan = ByAdasum(PlanOf(shape, {8, 4}));
  Replicas undisturbed(way.options, shape, 2);
  undisturbed.Train({.plan = plan});
  Replicas meshes(way.options, shape, 2);
  const int steps = static_cast<int>(kPeriod) * SumsOfStep(way);

  meshes.Train(
      {.plan = plan, .loses_sum = [&](int rank, int sum) { return rank == 2 && sum == steps; }});
  for (std::size_t rank = 0; rank < 8; ++rank) {
    ASSERT_EQ(meshes[rank].member().rounds, 0u);
    ASSERT_TRUE(meshes[rank].member().window.has_value());
  }
  meshes.Train({.plan = plan}, true);

  EXPECT_EQ(meshes.Parameters(), undisturbed.Parameters());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(meshes[rank].State(), undisturbed[rank].State()) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, LostMeshAdasumWindowTest,
                         testing::Values(OfSgd(), OfAdam(), OfLamb()),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace tactus::engine::mesh_task
