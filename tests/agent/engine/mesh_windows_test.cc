// Windows of local steps of replicas that are meshes: each member has a part of the model, and a
// replica does what a worker does that holds all of it.

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/engine/mesh_task.h"

namespace tactus::engine::mesh_task {
namespace {

// ---- As workers that hold all of the model

class MeshWindowsTest : public testing::TestWithParam<std::tuple<Way, MeshShape>> {};

// A step's gradient is a sum of 8 samples at most, of 24 products each, in another order: some 40
// roundings from what the other has, of its longest term, which is some 5 times as long as what is
// left of them. There are 3 x 14 steps, of which momentum repeats each twice, and Adam goes by the
// quotient of two such.
constexpr double kBound = 2 * 2 * 2 * 5 * 40 * 42 * 0x1p-24;

TEST_P(MeshWindowsTest, TrainAsWorkersDoThatHoldAll) {
  const auto& [way, shape] = GetParam();
  const std::vector<std::uint32_t> sizes = {8, 4};
  const MeshShape whole{1, 1};
  Replicas workers(way.options, whole, 2);
  workers.Train({.plan = PlanOf(whole, sizes)});
  Replicas meshes(way.options, shape, 2);
  meshes.Train({.plan = PlanOf(shape, sizes)});
  const auto devices = static_cast<std::size_t>(shape.devices());
  Replicas steps(way.options, shape, 2);
  steps.Train({.plan = PlanOfSteps(shape, sizes)});

  const std::vector<float> expected = workers.Parameters();
  const double length = Length(expected);
  EXPECT_LT(Distance(meshes.Parameters(), expected), kBound * length);
  EXPECT_GT(Distance(steps.Parameters(), expected), 2 * kBound * length)
      << "windows have no effect";
  for (std::size_t replica = 0; replica < 2; ++replica) {
    const std::vector<policies::Report>& of_worker = workers[replica].reports();
    for (std::size_t round = 0; round < of_worker.size(); ++round) {
      std::uint64_t samples = 0;
      double loss_sum = 0;
      for (std::size_t i = 0; i < devices; ++i) {
        const PartHolder& member = meshes[replica * devices + i];
        ASSERT_EQ(member.reports().size(), of_worker.size());
        EXPECT_EQ(member.reports()[round].steps, of_worker[round].steps);
        EXPECT_EQ(member.reports()[round].samples_global, of_worker[round].samples_global);
        EXPECT_EQ(member.reports()[round].gradient_samples, of_worker[round].gradient_samples);
        EXPECT_EQ(member.reports()[round].contributors, of_worker[round].contributors);
        samples += member.reports()[round].samples;
        loss_sum += member.reports()[round].loss_sum;
      }
      EXPECT_EQ(samples, of_worker[round].samples);
      EXPECT_NEAR(loss_sum, of_worker[round].loss_sum, 1e-3 * (1 + of_worker[round].loss_sum));
    }
  }
}

// All begin at the same parameters, so that the first window's changes are as near as gradients.
TEST_P(MeshWindowsTest, TellAsMuchOfTheNoise) {
  const auto& [way, shape] = GetParam();
  Way once = way;
  once.options.stop = {.rounds = 1};
  const MeshShape whole{1, 1};
  Replicas workers(once.options, whole, 3);
  workers.Train({.plan = PlanOf(whole, {8, 4, 4})});
  Replicas meshes(once.options, shape, 3);
  meshes.Train({.plan = PlanOf(shape, {8, 4, 4})});

  const policies::Report& expected = workers[0].reports()[0];
  EXPECT_GT(expected.gradient_samples, 0);
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    const policies::Report& found = meshes[rank].reports()[0];
    EXPECT_NEAR(found.samples_gradient_norm2, expected.samples_gradient_norm2,
                kBound * expected.samples_gradient_norm2);
    EXPECT_NEAR(found.gradient_norm2_global, expected.gradient_norm2_global,
                kBound * expected.gradient_norm2_global);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, MeshWindowsTest,
                         testing::Combine(testing::ValuesIn(AllWays()),
                                          testing::Values(MeshShape{1, 2}, MeshShape{2, 2})),
                         [](const auto& each) {
                           return NameOf(std::get<0>(each.param), std::get<1>(each.param));
                         });

TEST(MeshWindowSamplesTest, AStepsSamplesAreThoseOfAWorkerThatHoldsAll) {
  const Way way = OfSgd();
  Replicas workers(way.options, {1, 1}, 2);
  workers.Train({.plan = PlanOf({1, 1}, {8, 4})});
  Replicas meshes(way.options, {2, 2}, 2);
  meshes.Train({.plan = PlanOf({2, 2}, {8, 4})});

  for (std::size_t replica = 0; replica < 2; ++replica) {
    std::multiset<std::uint64_t> passed;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& own = meshes[4 * replica + i].passed();
      passed.insert(own.begin(), own.end());
    }
    const auto& expected = workers[replica].passed();
    EXPECT_EQ(passed, std::multiset<std::uint64_t>(expected.begin(), expected.end()));
    // Of the first step, the first member has the first samples.
    const auto& first = meshes[4 * replica].passed();
    const std::size_t own = replica == 0 ? 2 : 1;
    EXPECT_TRUE(std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(own),
                           expected.begin()));
    // And of the second those behind all members' of the first.
    EXPECT_EQ(first[own], expected[4 * own]);
  }
}

// ---- What is not finite

class NotFiniteMeshTest : public testing::TestWithParam<bool> {};

// The others of its replica hear of it in the step, so that none has taken one: what their
// optimizers hold is of one step.
TEST_P(NotFiniteMeshTest, NobodyOfTheReplicaTakesAStepThatIsNotFiniteOnOne) {
  const bool loss = GetParam();
  Way way = OfAdam();
  way.options.stop = {.rounds = 1};
  Replicas meshes(way.options, {2, 2}, 2);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();

  meshes.Train(
      {.plan = PlanOf({2, 2}, {8, 4}),
       .before_step =
           [&](int rank, RoundEngine&, std::span<float> gradients) {
             if (!loss && rank == 1) gradients[0] = kInfinity;
             return true;
           },
       .added_loss = [&](int rank,
                         std::uint64_t) { return loss && rank == 1 ? double{kInfinity} : 0.0; }});

  EXPECT_EQ(meshes.Parameters(), std::vector<float>(kUnknowns));
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    ASSERT_EQ(meshes[rank].reports().size(), 1u);
    EXPECT_EQ(meshes[rank].reports()[0].nonfinite_members, 4u);
    bool stepped = false;
    for (const std::vector<float>& moment : meshes[rank].State().optimizer) {
      stepped = stepped || std::ranges::any_of(moment, [](float value) { return value != 0; });
    }
    EXPECT_EQ(stepped, rank >= 4) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, NotFiniteMeshTest, testing::Bool(),
                         [](const auto& loss) { return loss.param ? "Loss" : "Gradient"; });

// ---- Losses within a window

class LostMeshTest : public testing::TestWithParam<Way> {};

// The last of three replicas dies in a window, and all of another give the group up behind the
// window's first step: they go on with it, and so does who has taken all of its steps.
TEST_P(LostMeshTest, TheShareOfTheDeadReplicaAloneIsLost) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas without(way.options, shape, 2);
  without.Train({.plan = PlanOf(shape, {8, 4})});
  Replicas meshes(way.options, shape, 3);
  std::barrier together(4);

  meshes.Train({.plan = PlanOf(shape, {8, 4, 8}),
                .before_step = [](int rank, RoundEngine&, std::span<float>) { return rank != 9; },
                .after_step =
                    [&](int rank, RoundEngine&) {
                      if (rank >= 4) return true;
                      together.arrive_and_wait();
                      return false;
                    }});
  meshes.EndLast();
  meshes.Train({.plan = PlanOf(shape, {8, 4})}, true);

  EXPECT_EQ(meshes.Parameters(), without.Parameters());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(meshes[rank].State(), without[rank].State()) << "rank " << rank;
    EXPECT_EQ(meshes[rank].passed(), without[rank].passed()) << "none twice, rank " << rank;
    const std::size_t of_step = rank < 4 ? 2 : 1;
    const std::size_t steps = rank < 4 ? 1 : kPeriod;
    const auto& passed = meshes[rank].passed();
    EXPECT_EQ(
        meshes[rank].before(),
        std::vector(passed.begin(), passed.begin() + static_cast<std::ptrdiff_t>(steps * of_step)));
  }
}

// Whom it leaves alone has a plan of single steps next, and goes on with the window all the same.
TEST_P(LostMeshTest, OneReplicaGoesOnWithItsWindow) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas meshes(way.options, shape, 2);
  std::barrier together(4);
  meshes.Train({.plan = PlanOf(shape, {8, 4}),
                .before_step = [](int rank, RoundEngine&, std::span<float>) { return rank < 4; },
                .after_step =
                    [&](int, RoundEngine&) {
                      together.arrive_and_wait();
                      return false;
                    }});
  meshes.EndLast();
  ASSERT_TRUE(meshes[0].member().window.has_value());

  meshes.Train({.plan = PlanOfSteps(shape, {8})}, true);

  for (std::size_t rank = 0; rank < 4; ++rank) {
    const policies::Report& first = meshes[rank].reports().front();
    EXPECT_EQ(first.steps, kPeriod) << "rank " << rank;
    EXPECT_EQ(first.samples_global, 8 * kPeriod) << "rank " << rank;
  }
}

// One has not heard of the last sums that the second step goes by, and the others of its replica
// have taken it: all is as if the window had not begun, in the moments of optimizers, too.
TEST_P(LostMeshTest, AReplicaOfUnequalStepsHasTheWindowBegunAnew) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas undisturbed(way.options, shape, 2);
  undisturbed.Train({.plan = PlanOf(shape, {8, 4})});
  Replicas meshes(way.options, shape, 2);

  const auto outcomes =
      meshes.Train({.plan = PlanOf(shape, {8, 4}), .loses_sum = [&](int rank, int sum) {
                      return rank == 1 && sum == 2 * SumsOfStep(way) - 1;
                    }});
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, Outcome::kGroupLost);
  ASSERT_TRUE(meshes[0].member().window && meshes[1].member().window);
  ASSERT_NE(meshes[0].member().window->taken.steps, meshes[1].member().window->taken.steps);
  meshes.Train({.plan = PlanOf(shape, {8, 4})}, true);

  EXPECT_EQ(meshes.Parameters(), undisturbed.Parameters());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_TRUE(meshes[rank].before().empty());
    EXPECT_EQ(meshes[rank].State(), undisturbed[rank].State()) << "rank " << rank;
  }
}

// One gives the group up between two windows, when the others of its replica have begun the next:
// the replica has no part in it, and the other one goes on.
TEST_P(LostMeshTest, AReplicaOfWhichSomeHaveBegunHasNoPartInTheWindow) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas meshes(way.options, shape, 2);
  std::barrier together(8);

  meshes.Train({.plan = PlanOf(shape, {8, 4}), .after_step = [&](int rank, RoundEngine& engine) {
                  if (engine.rounds() != 2 || !engine.at_edge()) return true;
                  together.arrive_and_wait();
                  return rank != 4;
                }});
  for (std::size_t rank = 0; rank < 8; ++rank) {
    ASSERT_EQ(meshes[rank].member().rounds, 2u);
    EXPECT_EQ(meshes[rank].member().window.has_value(), rank < 4) << "rank " << rank;
  }
  meshes.Train({.plan = PlanOf(shape, {8, 4})}, true);

  meshes.Parameters();  // the same on all
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(meshes[rank].State().ledger, meshes[0].State().ledger);
    const std::uint64_t samples = rank < 4 ? 2 * kPeriod : 0;
    EXPECT_EQ(meshes[rank].reports()[2].samples, samples) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, LostMeshTest, testing::ValuesIn(AllWays()),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace tactus::engine::mesh_task
