#include "coordinator/telemetry/job_telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/metrics.h"

namespace tactus::telemetry {
namespace {

using policies::Axis;
using testing::HasSubstr;
using testing::Not;

class JobTelemetryTest : public testing::Test {
 protected:
  JobTelemetryTest() {
    job::PublishJob running;
    running.record.id = JobId{1};
    running.record.name = "demo-1";
    running.record.state = job::JobState::kRunning;
    telemetry_.OnAction(running);
  }

  void Decide(std::uint64_t plan_version, Axis axis, std::optional<double> measured_gain = {}) {
    telemetry_.OnDecision(
        {.job = JobId{1},
         .decision = {.plan_version = plan_version, .axis = axis, .measured_gain = measured_gain}});
  }
  void Progress(std::uint64_t plan_version) {
    telemetry_.OnAction(
        job::PublishProgress{.job = JobId{1}, .progress = {.plan = {.version = plan_version}}});
  }
  static std::string Counted(const std::string& kind, const std::string& outcome, int count) {
    return "tactus_decisions_total{kind=\"" + kind + "\",outcome=\"" + outcome + "\"} " +
           std::to_string(count);
  }
  std::string Text() const { return runtime::WriteText(*metrics_.registry()); }

  runtime::CoordinatorMetrics metrics_{"1"};
  JobTelemetry telemetry_{metrics_};
};

TEST_F(JobTelemetryTest, DecisionsAreCountedByAxisWhenTheyAreMade) {
  Decide(2, Axis::kBatch);
  Decide(2, Axis::kLearningRate);
  Decide(3, Axis::kBatch);

  EXPECT_THAT(Text(), HasSubstr(Counted("batch", "decided", 2)));
  EXPECT_THAT(Text(), HasSubstr(Counted("learning_rate", "decided", 1)));
  EXPECT_THAT(Text(), Not(HasSubstr("adopted")));
}

TEST_F(JobTelemetryTest, ADecisionIsAdoptedWithItsPlanAndSupersededByALaterOne) {
  Decide(2, Axis::kBatch);
  Decide(3, Axis::kBatch);
  Decide(3, Axis::kSynchronization);
  Decide(4, Axis::kAggregation);

  Progress(3);

  EXPECT_THAT(Text(), HasSubstr(Counted("batch", "superseded", 1)));
  EXPECT_THAT(Text(), HasSubstr(Counted("batch", "adopted", 1)));
  EXPECT_THAT(Text(), HasSubstr(Counted("synchronization", "adopted", 1)));
  EXPECT_THAT(Text(), Not(HasSubstr("kind=\"aggregation\",outcome=\"adopted\"")));
}

TEST_F(JobTelemetryTest, AMeasuredGainIsNotAnotherDecision) {
  Decide(2, Axis::kBatch);
  Decide(2, Axis::kBatch, 0.25);

  EXPECT_THAT(Text(), HasSubstr(Counted("batch", "decided", 1)));
}

}  // namespace
}  // namespace tactus::telemetry
