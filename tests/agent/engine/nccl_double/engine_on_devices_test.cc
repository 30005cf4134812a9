// The engine on devices, over the doubles of the CUDA runtime and of NCCL: it trains as it does on
// the host. The double's memory is shut to the host, so that whoever forgot to copy crashes.

#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "agent/engine/round_engine.h"
#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encodings.h"
#include "tests/agent/engine/linear_task.h"
#include "tests/agent/engine/nccl_double/on_devices.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Synchronization;

struct Case {
  std::string name{};
  GroupRun run{};
};

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class EngineOnDevicesTest : public OnDevices, public testing::WithParamInterface<Case> {};

// Of numbers near 1: sums in another order move the last bits of norms, and these the clipping and
// Adasum's coefficients.
void ExpectAlike(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
  }
}

void ExpectAlike(const MemberRun& found, const MemberRun& expected) {
  EXPECT_EQ(found.outcome, expected.outcome);
  ExpectAlike(found.parameters, expected.parameters);
  ASSERT_EQ(found.reports.size(), expected.reports.size());
  for (std::size_t i = 0; i < found.reports.size(); ++i) {
    const policies::Report& a = found.reports[i];
    const policies::Report& b = expected.reports[i];
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.samples_global, b.samples_global);
    EXPECT_EQ(a.nonfinite_members, b.nonfinite_members);
    const auto near = [](double x, double y) { EXPECT_NEAR(x, y, 1e-4 * (1 + std::abs(y))); };
    near(a.loss_mean_global, b.loss_mean_global);
    near(a.gradient_norm2_local, b.gradient_norm2_local);
    near(a.gradient_norm2_global, b.gradient_norm2_global);
    near(a.samples_gradient_norm2, b.samples_gradient_norm2);
    near(a.orthogonality, b.orthogonality);
  }
  ASSERT_EQ(found.state.has_value(), expected.state.has_value());
  if (!found.state) return;
  EXPECT_EQ(found.state->steps, expected.state->steps);
  ExpectAlike(found.state->block_momentum, expected.state->block_momentum);
  ASSERT_EQ(found.state->optimizer.size(), expected.state->optimizer.size());
  for (std::size_t i = 0; i < found.state->optimizer.size(); ++i) {
    ExpectAlike(found.state->optimizer[i], expected.state->optimizer[i]);
  }
}

TEST_P(EngineOnDevicesTest, TrainsAsOnTheHost) {
  const std::vector<MemberRun> expected = Train(GetParam().run);

  const std::vector<MemberRun> found = TrainOnDevices(GetParam().run);

  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    ExpectAlike(found[rank], expected[rank]);
    EXPECT_EQ(found[rank].parameters, found[0].parameters);  // to the last bit
  }
}

// Zero-copy or not, the sums are the same; and no collective finds the memory of one member
// registered and that of another not, which NcclMembers would tell.
TEST_P(EngineOnDevicesTest, TrainsAlikeInRegisteredMemory) {
  const std::vector<MemberRun> expected = TrainOnDevices(GetParam().run);
  GroupRun run = GetParam().run;
  run.registers = true;

  const std::vector<MemberRun> found = TrainOnDevices(run);

  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_EQ(found[rank].parameters, expected[rank].parameters) << rank;
    EXPECT_EQ(found[rank].outcome, expected[rank].outcome) << rank;
  }
  EXPECT_EQ(nccl_double::Calls("ncclCommRegister"),
            run.plan.batch_sizes.size() > 1 ? static_cast<int>(run.plan.batch_sizes.size()) : 0);
}

GroupRun EveryStep(std::vector<std::uint32_t> batch_sizes, OptimizerOptions optimizer) {
  return {.options = {.train_samples = 500,
                      .micro_batch = 4,
                      .optimizer = optimizer,
                      .stop = {.rounds = 8},
                      .bucket_bytes = 64},
          .plan = {.batch_sizes = std::move(batch_sizes)}};
}

GroupRun Periodic(GroupRun run, std::uint32_t period) {
  run.plan.synchronization = Synchronization::kPeriodic;
  run.plan.period = period;
  return run;
}

GroupRun Adasum(GroupRun run) {
  run.plan.aggregation = Aggregation::kAdasum;
  return run;
}

GroupRun InFloat16(GroupRun run) {
  run.options.encoding.dense = SixteenBits(kFloat16Format);
  return run;
}

std::vector<Case> Cases() {
  const SgdOptions sgd{.learning_rate = 0.01};
  const SgdOptions momentum{.learning_rate = 0.01, .momentum = 0.9};
  const AdamOptions adam{.learning_rate = 0.01, .weight_decay = 0.01, .decoupled = true};
  std::vector<Case> cases = {
      {"Alone", EveryStep({8}, momentum)},
      {"EveryStep", EveryStep({8, 4, 6}, momentum)},
      {"EveryStepWithAdam", EveryStep({8, 4}, adam)},
      {"EveryStepWithLamb", EveryStep({8, 4}, LambOptions{.learning_rate = 0.01})},
      {"Periodic", Periodic(EveryStep({8, 4, 5}, momentum), 4)},
      {"PeriodicWithAdam", Periodic(EveryStep({8, 4}, adam), 3)},
      {"AdasumOfGradients", Adasum(EveryStep({8, 4, 6, 2}, sgd))},
      {"AdasumOfDeltas", Adasum(EveryStep({8, 4, 6}, momentum))},
      {"AdasumAlone", Adasum(EveryStep({8}, sgd))},
      {"AdasumOfFiveWindows", Adasum(Periodic(EveryStep({3, 4, 2, 5, 1}, momentum), 2))},
      {"AdasumBetweenNodes", Adasum(EveryStep({8, 4, 6, 2}, sgd))},
  };
  cases.back().run.options.nodes = {0, 0, 1, 1};
  Case overlapped{"Overlapped", EveryStep({8, 4, 6}, momentum)};
  overlapped.run.announce = GroupRun::Announce::kByOwnThread;
  Case by_another{"OverlappedByAnotherThread", overlapped.run};
  by_another.run.announce = GroupRun::Announce::kByAnotherThread;
  by_another.run.options.bucket_bytes = 4;
  Case clipped{"Clipped", Periodic(EveryStep({8, 4}, momentum), 3)};
  clipped.run.options.clip_norm = 0.5;
  Case block{"BlockMomentum", Periodic(EveryStep({8, 4}, sgd), 3)};
  block.run.options.block_momentum = 0.3;
  Case delayed{"Delayed", EveryStep({8}, sgd)};
  delayed.run.plan.synchronization = Synchronization::kDelayed;
  delayed.run.plan.period = 4;
  Case ahead{"DelayedLookingAhead", delayed.run};
  ahead.run.options.optimizer = momentum;
  ahead.run.options.look_ahead = true;
  Case adascale{"Adascale", EveryStep({8, 8, 8}, sgd)};
  adascale.run.options.learning_rate.base_batch = 8;
  adascale.run.plan.learning_rate_rule = policies::LearningRateRule::kAdascale;
  // Its passes are two sums, so that nothing may leave early.
  Case halves{"AdascaleAlone", adascale.run};
  halves.run.plan.batch_sizes = {18};
  halves.run.announce = GroupRun::Announce::kByOwnThread;
  const Case float16{"Float16", InFloat16(overlapped.run)};
  cases.insert(cases.end(),
               {overlapped, by_another, clipped, block, delayed, ahead, adascale, halves, float16});
  for (const bool periodic : {false, true}) {
    Case spoilt{periodic ? "ASpoiltLocalStep" : "ASpoiltGradient", EveryStep({8, 4, 6}, adam)};
    if (periodic) spoilt.run = Periodic(spoilt.run, 3);
    spoilt.run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
      if (rank == 1 && round == 3) gradients[2] = std::numeric_limits<float>::infinity();
    };
    cases.push_back(spoilt);
    Case bad_loss{periodic ? "ALocalLossThatIsNoNumber" : "ALossThatIsNoNumber", spoilt.run};
    bad_loss.run.after_gradient = nullptr;
    bad_loss.run.on_loss = [](int rank, const RoundEngine& engine, double& loss) {
      if (rank == 2 && engine.rounds() == 2) loss = std::nan("");
    };
    cases.push_back(bad_loss);
  }
  Case suspended{"Suspended", Periodic(EveryStep({8, 4}, momentum), 3)};
  suspended.run.options.block_momentum = 0.3;
  suspended.run.before_step = [](int, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 4) engine.RequestStop("enough", StopKind::kSuspend);
  };
  cases.push_back(suspended);
  Case resumed{"Resumed", Periodic(EveryStep({8, 4}, momentum), 3)};
  resumed.run.options.block_momentum = 0.3;
  const MemberRun before = Train(suspended.run)[0];
  resumed.run.from = Continued{.state = *before.state, .parameters = before.parameters};
  cases.push_back(resumed);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Every, EngineOnDevicesTest, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

using RegisteredGradientsTest = OnDevices;

// Adasum sends from the gradients and receives elsewhere: they are not registered while it is the
// plan, on any member.
TEST_F(RegisteredGradientsTest, ArePutAsideForPlansOfAdasum) {
  GroupRun run = EveryStep({8, 4, 6}, SgdOptions{.learning_rate = 0.01});
  run.registers = true;
  run.before_step = [](int, RoundEngine& engine, StepResult&) {
    if (engine.plan().version != engine.rounds() / 2) return;
    policies::Plan next = engine.plan();
    ++next.version;
    next.aggregation = next.version % 2 == 1 ? Aggregation::kAdasum : Aggregation::kAverage;
    EXPECT_TRUE(engine.OfferPlan(std::move(next)));
  };
  std::vector<MemberRun> expected = Train(run);

  const std::vector<MemberRun> found = TrainOnDevices(run);

  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_EQ(found[rank].outcome, Outcome::kFinished) << found[rank].reason;
    ExpectAlike(found[rank].parameters, expected[rank].parameters);
    EXPECT_GE(found[rank].plan_versions.back(), 3u);
  }
  EXPECT_GE(nccl_double::Calls("ncclCommRegister"), 6);
  EXPECT_GE(nccl_double::Calls("ncclCommDeregister"), 6);
}

TEST_F(RegisteredGradientsTest, ThatCannotBeRegisteredAgainEndTheGroup) {
  GroupRun run = EveryStep({8, 4}, SgdOptions{.learning_rate = 0.01});
  run.registers = true;
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (engine.plan().version != engine.rounds() / 2) return;
    if (engine.rounds() >= 2) nccl_double::DoNotRegister(rank);
    policies::Plan next = engine.plan();
    ++next.version;
    next.aggregation = next.version % 2 == 1 ? Aggregation::kAdasum : Aggregation::kAverage;
    EXPECT_TRUE(engine.OfferPlan(std::move(next)));
  };

  const std::vector<MemberRun> found = TrainOnDevices(run);

  for (const MemberRun& member : found) EXPECT_EQ(member.outcome, Outcome::kGroupLost);
}

using EngineOnDevicesCostTest = OnDevices;

// A round may wait for the device once, local steps never.
TEST_F(EngineOnDevicesCostTest, LocalStepsDoNotWaitForTheDevice) {
  GroupRun run = Periodic(EveryStep({8}, SgdOptions{.learning_rate = 0.01, .momentum = 0.9}), 5);
  run.options.clip_norm = 0.5;
  std::vector<int> waits;
  run.before_step = [&](int, RoundEngine&, StepResult&) {
    waits.push_back(cuda_double::Calls("cudaStreamSynchronize") +
                    cuda_double::Calls("cudaEventSynchronize") +
                    cuda_double::Calls("cudaDeviceSynchronize"));
  };

  TrainOnDevices(run);

  // A step of the test's own task waits three times: it reads parameters and gradients, and writes
  // the new gradients from ordinary memory.
  ASSERT_EQ(waits.size(), 8u * 10);
  int most = 0;
  for (std::size_t i = 11; i < waits.size(); ++i) {
    const bool first_of_round = i % 10 == 0;
    const int between = waits[i] - waits[i - 1] - 3;
    if (!first_of_round) {
      EXPECT_EQ(between, 0) << i;
    }
    most = std::max(most, between);
  }
  EXPECT_LE(most, 2);  // the round's own, and the trace of the test
}

}  // namespace
}  // namespace tactus::engine
