// Single steps of replicas that are meshes: each member has a part of the model, and what goes by
// norms goes by those of all of it.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/engine/mesh_task.h"

namespace tactus::engine::mesh_task {
namespace {

const std::vector<std::uint32_t> kSizes = {8, 4};

class MeshStepsTest : public testing::TestWithParam<std::tuple<Way, MeshShape>> {};

// As that of windows, whose gradients these are; LAMB's rate, too, has the difference of its sums.
constexpr double kBound = 2 * 2 * 2 * 2 * 5 * 40 * 42 * 0x1p-24;

TEST_P(MeshStepsTest, TrainAsWorkersDoThatHoldAll) {
  const auto& [way, shape] = GetParam();
  const MeshShape whole{1, 1};
  Replicas workers(way.options, whole, 2);
  workers.Train({.plan = PlanOfSteps(whole, kSizes)});
  Replicas meshes(way.options, shape, 2);

  meshes.Train({.plan = PlanOfSteps(shape, kSizes)});

  const std::vector<float> expected = workers.Parameters();
  EXPECT_GT(Length(expected), 0.5);
  EXPECT_LT(Distance(meshes.Parameters(), expected), kBound * Length(expected));
}

INSTANTIATE_TEST_SUITE_P(
    Ways, MeshStepsTest,
    testing::Combine(testing::Values(OfSgd(), OfAdam(), OfLamb(), Clipped(OfLamb())),
                     testing::Values(MeshShape{1, 2}, MeshShape{2, 2}, MeshShape{1, 4})),
    [](const auto& each) { return NameOf(std::get<0>(each.param), std::get<1>(each.param)); });

// ---- AdaScale: how far replicas' gradients differ

// Of a norm's square, a step's gradient being some 40 roundings of five times its length off.
constexpr double kNormBound = 2 * 5 * 40 * 0x1p-24;

class MeshNoiseTest : public testing::TestWithParam<MeshShape> {};

Way OfAdascale() {
  Way way = OfSgd("Adascale");
  way.options.learning_rate.base_batch = 4;
  return way;
}

Plan AdascalePlan(const MeshShape& shape, const std::vector<std::uint32_t>& sizes) {
  Plan plan = PlanOfSteps(shape, sizes);
  plan.learning_rate_rule = policies::LearningRateRule::kAdascale;
  return plan;
}

// A replica's gradient counts as one, and each number of it once.
TEST_P(MeshNoiseTest, IsThatOfWorkersThatHoldAll) {
  const MeshShape& shape = GetParam();
  const MeshShape whole{1, 1};
  Replicas workers(OfAdascale().options, whole, 3);
  workers.Train({.plan = AdascalePlan(whole, {8, 4, 4})});
  Replicas meshes(OfAdascale().options, shape, 3);

  meshes.Train({.plan = AdascalePlan(shape, {8, 4, 4})});

  const std::vector<policies::Report>& expected = workers[0].reports();
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    const std::vector<policies::Report>& found = meshes[rank].reports();
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(found[0].contributors, 3u);
    EXPECT_NEAR(found[0].samples_gradient_norm2, expected[0].samples_gradient_norm2,
                kNormBound * expected[0].samples_gradient_norm2);
    EXPECT_NEAR(found[0].gradient_norm2_global, expected[0].gradient_norm2_global,
                kNormBound * expected[0].gradient_norm2_global);
    EXPECT_NEAR(found[0].orthogonality, expected[0].orthogonality, 4 * kNormBound);
    for (std::size_t round = 0; round < found.size(); ++round) {
      EXPECT_EQ(found[round].contributors, expected[round].contributors) << "round " << round;
    }
  }
  EXPECT_GT(expected[1].gain, 1.1);
  EXPECT_LT(expected[1].gain, 3.9) << "of 4 base batches";
  EXPECT_NEAR(meshes[0].reports()[1].gain, expected[1].gain, 10 * kNormBound * expected[1].gain)
      << "moments are differences of norms";
  EXPECT_LT(Distance(meshes.Parameters(), workers.Parameters()),
            kBound * Length(workers.Parameters()));
}

// What a member counts of its replica's gradient, over all members, is that of the replica.
TEST_P(MeshNoiseTest, MembersReportWhatTheyCount) {
  const MeshShape& shape = GetParam();
  const MeshShape whole{1, 1};
  Replicas workers(OfSgd().options, whole, 2);
  workers.Train({.plan = PlanOfSteps(whole, kSizes)});
  Replicas meshes(OfSgd().options, shape, 2);

  meshes.Train({.plan = PlanOfSteps(shape, kSizes)});

  const auto devices = static_cast<std::size_t>(shape.devices());
  for (std::size_t replica = 0; replica < 2; ++replica) {
    double norm2 = 0;
    for (std::size_t i = 0; i < devices; ++i) {
      norm2 += meshes[replica * devices + i].reports()[0].gradient_norm2_local;
    }
    const double expected = workers[replica].reports()[0].gradient_norm2_local;
    EXPECT_NEAR(norm2, expected, kNormBound * expected);
  }
}

// Nothing to compare its gradient with, as of one worker's that is one pass.
TEST_P(MeshNoiseTest, OneReplicaAloneHasNoGain) {
  const MeshShape& shape = GetParam();
  Replicas meshes(OfAdascale().options, shape, 1);

  meshes.Train({.plan = AdascalePlan(shape, {16})});

  for (const policies::Report& report : meshes[0].reports()) EXPECT_EQ(report.gain, 1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, MeshNoiseTest,
                         testing::Values(MeshShape{1, 2}, MeshShape{2, 2}, MeshShape{1, 4}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.rows) + "x" +
                                  std::to_string(shape.param.columns);
                         });

// ---- LAMB: the norms of layers

// Of a step of LAMB: the combined gradient's norm, then those of all layers together.
constexpr int kSumsOfStep = 2;

TEST(MeshLambTest, AStepTakesOneSumForAllLayers) {
  Way way = OfLamb();
  way.options.stop = {.rounds = 5};
  Replicas meshes(way.options, {2, 2}, 2);

  meshes.Train({.plan = PlanOfSteps({2, 2}, kSizes)});

  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    EXPECT_EQ(meshes[rank].sums(), 5 * kSumsOfStep) << "rank " << rank;
  }
}

// What was not applied leaves nothing behind: neither in moments nor in their count.
TEST(MeshLambTest, ARoundWhoseLayersWereNotSummedIsDoneAnew) {
  const Way way = OfLamb();
  const MeshShape shape{2, 2};
  Replicas undisturbed(way.options, shape, 2);
  undisturbed.Train({.plan = PlanOfSteps(shape, kSizes)});
  Way one_round = way;
  one_round.options.stop = {.rounds = 1};
  Replicas once(one_round.options, shape, 2);
  once.Train({.plan = PlanOfSteps(shape, kSizes)});
  Replicas meshes(way.options, shape, 2);

  const auto outcomes =
      meshes.Train({.plan = PlanOfSteps(shape, kSizes),
                    .loses_sum = [](int, int sum) { return sum == 2 * kSumsOfStep - 1; }});

  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, Outcome::kGroupLost);
  EXPECT_EQ(meshes.Parameters(), once.Parameters());
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    EXPECT_EQ(meshes[rank].member().rounds, 1u);
    EXPECT_EQ(meshes[rank].member().optimizer.steps(), 1u);
    EXPECT_EQ(meshes[rank].State().optimizer, once[rank].State().optimizer) << "rank " << rank;
  }
  meshes.Train({.plan = PlanOfSteps(shape, kSizes)}, true);
  EXPECT_EQ(meshes.Parameters(), undisturbed.Parameters());
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    EXPECT_EQ(meshes[rank].State(), undisturbed[rank].State()) << "rank " << rank;
  }
}

TEST(MeshLambTest, NobodyTakesAStepOrAsksForItsSumsWhereAGradientIsNotFinite) {
  Way way = OfLamb();
  way.options.stop = {.rounds = 1};
  Replicas meshes(way.options, {2, 2}, 2);

  meshes.Train({.plan = PlanOfSteps({2, 2}, kSizes),
                .before_step = [](int rank, RoundEngine&, std::span<float> gradients) {
                  if (rank == 1) gradients[0] = std::numeric_limits<float>::quiet_NaN();
                  return true;
                }});

  EXPECT_EQ(meshes.Parameters(), std::vector<float>(kUnknowns));
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    EXPECT_EQ(meshes[rank].sums(), 1) << "rank " << rank;
    EXPECT_EQ(meshes[rank].member().optimizer.steps(), 0u) << "rank " << rank;
  }
}

// All of a replica have a step of a window still to take whose layers they have not heard of: they
// take it, and what they measured of it before does not count.
TEST(MeshLambTest, AStepOfAWindowWhoseLayersWereNotSummedIsTakenAnew) {
  const Way way = OfLamb();
  const MeshShape shape{2, 2};
  Replicas undisturbed(way.options, shape, 2);
  undisturbed.Train({.plan = PlanOf(shape, kSizes)});
  Replicas meshes(way.options, shape, 2);

  meshes.Train({.plan = PlanOf(shape, kSizes), .loses_sum = [](int rank, int sum) {
                  return rank < 4 && sum == 2 * kSumsOfStep - 1;
                }});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(meshes[rank].member().window.has_value());
    ASSERT_EQ(meshes[rank].member().window->taken.steps, 1u);
  }
  meshes.Train({.plan = PlanOf(shape, kSizes)}, true);

  EXPECT_EQ(meshes.Parameters(), undisturbed.Parameters());
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    EXPECT_EQ(meshes[rank].State(), undisturbed[rank].State()) << "rank " << rank;
    EXPECT_EQ(meshes[rank].reports()[0].gradient_norm2_local,
              undisturbed[rank].reports()[0].gradient_norm2_local)
        << "rank " << rank;
  }
}

}  // namespace
}  // namespace tactus::engine::mesh_task
