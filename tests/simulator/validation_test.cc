// Simulated jobs that validate between rounds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "simulator/noisy_quadratic.h"
#include "simulator/recorded_curve.h"
#include "tests/simulator/two_hosts.h"

namespace tactus::simulator {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Scenario Validating(std::uint64_t rounds) {
  Scenario scenario = TwoHosts();
  SimulatedJob& job = scenario.jobs[0];
  job.learner = std::make_unique<NoisyQuadratic>(NoisyQuadraticOptions{});
  job.engine.validation = {.policy = engine::ValidationPolicy::kAuto, .rounds = rounds};
  job.conclude_seconds = 0.5;
  return scenario;
}

TEST(SimulatedValidationTest, TheyEndAJobAndTakeTimeBetweenRounds) {
  Scenario scenario = Validating(50);
  scenario.jobs[0].engine.stop.validation_loss = 1e9;
  const Outcome once = Simulate(std::move(scenario));
  const JobOutcome& job = once.jobs[0];
  EXPECT_EQ(job.rounds, 50u);
  EXPECT_THAT(job.reason, HasSubstr("validation_loss"));
  EXPECT_THAT(once.violations, IsEmpty());

  const Outcome often = Simulate(Validating(50));
  const Outcome never = Simulate(Validating(1'000'000));
  EXPECT_EQ(often.jobs[0].rounds, never.jobs[0].rounds);
  EXPECT_EQ(often.jobs[0].train_loss, never.jobs[0].train_loss);
  // 500 rounds: nine between them, the tenth at the end.
  EXPECT_NEAR(often.jobs[0].train_seconds - never.jobs[0].train_seconds, 9 * 0.5, 0.5);
  EXPECT_THAT(often.violations, IsEmpty());
}

TEST(SimulatedValidationTest, ALearnerWithoutValidationSamplesIsNoneToStopBy) {
  Scenario scenario = Validating(50);
  scenario.jobs[0].learner =
      std::make_unique<RecordedCurve>(RecordedCurveOptions{.points = {{.samples = 1, .loss = 2}}});
  scenario.jobs[0].engine.stop.patience = 3;

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kFailed);
  EXPECT_THAT(outcome.jobs[0].reason, HasSubstr("the learner has no validation samples"));
}

}  // namespace
}  // namespace tactus::simulator
