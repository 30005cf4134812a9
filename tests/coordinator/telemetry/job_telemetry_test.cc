#include "coordinator/telemetry/job_telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "metrics/coordinator_metrics.h"

namespace tactus::telemetry {
namespace {

using policies::Axis;
using testing::HasSubstr;
using testing::Not;

constexpr WorkerId kFirst = {11}, kSecond = {12};

class JobTelemetryTest : public testing::Test {
 protected:
  JobTelemetryTest() { Publish(job::JobState::kRunning); }

  job::JobRecord Record(job::JobState state) const {
    job::JobRecord record;
    record.id = JobId{1};
    record.name = "demo-1";
    record.state = state;
    record.generation = 1;
    record.members = {{.worker = kFirst, .node = "a", .device = "cpu:0"},
                      {.worker = kSecond, .node = "b", .device = "cpu:1"}};
    record.progress.samples_per_second = 200;
    record.progress.workers = {{.samples_per_second = 100}, {.samples_per_second = 100}};
    return record;
  }
  void Publish(job::JobState state) { telemetry_.OnAction(job::PublishJob{Record(state)}); }
  void Decide(std::uint64_t plan_version, Axis axis, std::optional<double> measured_gain = {}) {
    telemetry_.OnStep({job::PersistDecision{.job = JobId{1},
                                            .decision = {.plan_version = plan_version,
                                                         .axis = axis,
                                                         .metric = metric_,
                                                         .predicted_gain = 0.5,
                                                         .measured_gain = measured_gain}}},
                      Duration(0));
  }
  void Progress(std::uint64_t plan_version) {
    telemetry_.OnAction(
        job::PublishProgress{.job = JobId{1}, .progress = {.plan = {.version = plan_version}}});
  }
  void Report(WorkerId worker, const policies::Report& report) {
    telemetry_.OnEvent(
        job::WorkerSaid{.worker = worker, .message = job::ReportMessage{.report = report}}, {});
  }
  void Round(const job::RoundRecord& round) {
    telemetry_.OnStep({job::PersistRound{round}}, Seconds(0.25));
  }
  static std::string Counted(const std::string& kind, const std::string& outcome, int count) {
    return "tactus_decisions_total{kind=\"" + kind + "\",outcome=\"" + outcome + "\"} " +
           std::to_string(count);
  }
  std::string Text() const { return metrics::WriteText(*metrics_.registry()); }

  std::string metric_ = "samples/s";  // of decisions
  Instant now_{};
  std::int64_t wall_ = 5'000'000'000;
  metrics::CoordinatorMetrics metrics_{
      "1", {.now = [this] { return now_; }, .wall = [this] { return wall_; }}};
  JobTelemetry telemetry_{metrics_, [this] { return wall_; }};
};

TEST_F(JobTelemetryTest, WorkersSayWhereTheyRun) {
  EXPECT_THAT(Text(), HasSubstr("tactus_worker_info{job_id=\"demo-1\",rank=\"1\",node=\"b\","
                                "device=\"cpu:1\"} 1"));
}

TEST_F(JobTelemetryTest, OnlyAJobThatTrainsHasASpeed) {
  for (const auto state : {job::JobState::kRunning, job::JobState::kStopping}) {
    Publish(state);
    EXPECT_THAT(Text(),
                HasSubstr("tactus_job_goodput_samples_per_second{job_id=\"demo-1\"} 200\n"));
    EXPECT_THAT(Text(),
                HasSubstr("tactus_worker_samples_per_second{job_id=\"demo-1\",rank=\"1\"} "));
  }
  for (const auto state :
       {job::JobState::kStarting, job::JobState::kSuspending, job::JobState::kPaused,
        job::JobState::kQueued, job::JobState::kFailed}) {
    Publish(state);
    EXPECT_THAT(Text(), Not(HasSubstr("tactus_job_goodput_samples_per_second{"))) << NameOf(state);
    EXPECT_THAT(Text(), Not(HasSubstr("tactus_worker_samples_per_second{"))) << NameOf(state);
  }
}

// The record names the members of the last group until there is another.
TEST_F(JobTelemetryTest, OnlyAJobOnDevicesHasWorkersAndPlaces) {
  for (const auto state : {job::JobState::kStarting, job::JobState::kRunning,
                           job::JobState::kStopping, job::JobState::kSuspending}) {
    Publish(state);
    EXPECT_THAT(Text(), HasSubstr("tactus_job_workers{job_id=\"demo-1\"} 2\n")) << NameOf(state);
    EXPECT_THAT(Text(), HasSubstr("tactus_worker_info{")) << NameOf(state);
  }
  for (const auto state :
       {job::JobState::kPaused, job::JobState::kQueued, job::JobState::kFailed}) {
    Publish(state);
    EXPECT_THAT(Text(), HasSubstr("tactus_job_workers{job_id=\"demo-1\"} 0\n")) << NameOf(state);
    EXPECT_THAT(Text(), Not(HasSubstr("tactus_worker_info{"))) << NameOf(state);
  }
}

TEST_F(JobTelemetryTest, AGroupOfTheSameSizeElsewhereHasItsPlaceAtOnce) {
  Publish(job::JobState::kPaused);
  job::PublishJob again{Record(job::JobState::kStarting)};
  again.record.members[1] = {.worker = {13}, .node = "c", .device = "cpu:7"};

  telemetry_.OnAction(again);

  EXPECT_THAT(Text(), HasSubstr("rank=\"1\",node=\"c\",device=\"cpu:7\"} 1"));
  EXPECT_THAT(Text(), Not(HasSubstr("node=\"b\"")));
}

TEST_F(JobTelemetryTest, ReportsOfAllWorkersAddUpToTheBytesOfTheJob) {
  Report(kFirst, {.bytes_sent = 100});
  Report(kSecond, {.bytes_sent = 100});
  Report({99}, {.bytes_sent = 1});

  EXPECT_THAT(Text(), HasSubstr("tactus_job_collective_bytes_total{job_id=\"demo-1\"} 200\n"));
}

TEST_F(JobTelemetryTest, ARoundThatTaughtNothingIsCountedOnce) {
  Report(kFirst, {.nonfinite_members = 1});
  Report(kSecond, {.nonfinite_members = 1});

  EXPECT_THAT(Text(), HasSubstr("tactus_job_skipped_rounds_total{job_id=\"demo-1\"} 1\n"));
}

TEST_F(JobTelemetryTest, TimesThatAreNoneDoNotSpoilTheHistogram) {
  Report(kFirst, {.steps = 1, .compute_seconds = std::nan(""), .round_seconds = -1});
  Report(kFirst, {.steps = 4, .compute_seconds = 2, .round_seconds = 2.5});

  EXPECT_THAT(Text(), HasSubstr("tactus_round_seconds_sum{phase=\"compute\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_round_seconds_sum{phase=\"total\"} 2.5\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_worker_step_seconds_sum 0.5\n"));
}

TEST_F(JobTelemetryTest, TheNewestRoundIsShownWithItsTime) {
  wall_ = 7'500'000'000;

  Round(
      {.job = JobId{1}, .seconds = 0.125, .learning_rate = 0.5, .gain = 2, .orthogonality = 0.75});

  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("tactus_job_last_round_seconds{job_id=\"demo-1\"} 0.125\n"));
  EXPECT_THAT(text, HasSubstr("tactus_job_last_round_timestamp_seconds{job_id=\"demo-1\"} 7.5\n"));
  EXPECT_THAT(text, HasSubstr("tactus_job_learning_rate{job_id=\"demo-1\"} 0.5\n"));
  EXPECT_THAT(text, HasSubstr("tactus_job_learning_rate_gain_ratio{job_id=\"demo-1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tactus_job_orthogonality_ratio{job_id=\"demo-1\"} 0.75\n"));
  EXPECT_THAT(text, HasSubstr("tactus_controller_overhead_seconds_total 0.25\n"));
  EXPECT_THAT(text, Not(HasSubstr("noise_scale{")));
}

// Two samples with |g_i|^2 = mu2 + v = 3 and a mean with mu2 + v / 2 = 2: v = 2, mu2 = 1.
TEST_F(JobTelemetryTest, TheNoiseScaleComesFromTheReportsOfRankZero) {
  const policies::Report report = {.gradient_norm2_global = 2,
                                   .samples_global = 2,
                                   .contributors = 2,
                                   .samples_gradient_norm2 = 6,
                                   .gradient_samples = 2};
  for (std::uint64_t i = 0; i < policies::GradientNoise::kUpdatesMin; ++i) {
    Report(kFirst, report);
    Report(kSecond, {});
  }
  Round({.job = JobId{1}});

  EXPECT_THAT(Text(), HasSubstr("tactus_job_gradient_noise_scale{job_id=\"demo-1\"} 2"));
}

TEST_F(JobTelemetryTest, PromisedAndMeasuredGainStandSideBySide) {
  Decide(2, Axis::kBatch);
  Decide(2, Axis::kBatch, 0.125);

  const std::string of_job = "{job_id=\"demo-1\",kind=\"batch\"} ";
  EXPECT_THAT(Text(), HasSubstr("tactus_job_decision_timestamp_seconds" + of_job + "5\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_job_decision_predicted_gain_ratio" + of_job + "0.5\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_job_decision_measured_gain_ratio" + of_job + "0.125\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_decision_predicted_error_ratio" + of_job + "0.375\n"));
}

TEST_F(JobTelemetryTest, ADecisionThatPromisesNothingHasNoPromise) {
  Decide(2, Axis::kBatch);
  metric_ = "";

  Decide(3, Axis::kBatch);

  EXPECT_THAT(Text(), HasSubstr("tactus_job_decision_timestamp_seconds{"));
  EXPECT_THAT(Text(), Not(HasSubstr("tactus_job_decision_predicted_gain_ratio{")));
}

TEST_F(JobTelemetryTest, AJobThatIsOverIsSeenForAWhile) {
  Publish(job::JobState::kSucceeded);

  EXPECT_THAT(Text(), HasSubstr("tactus_job_state{job_id=\"demo-1\",state=\"succeeded\"} 1"));
  EXPECT_THAT(Text(), Not(HasSubstr("state=\"running\"} 1")));

  now_ += metrics::JobSeries::kKept;

  EXPECT_THAT(Text(), Not(HasSubstr("demo-1")));
}

TEST_F(JobTelemetryTest, TheQueueIsAsOldAsTheJobThatWaitsLongest) {
  job::PublishJob queued;
  queued.record.state = job::JobState::kQueued;
  for (const std::uint64_t id : {2, 3}) {
    queued.record.id = JobId{id};
    queued.record.name = "queued";
    telemetry_.OnAction(queued);
    wall_ += 1'000'000'000;
  }
  EXPECT_THAT(Text(), HasSubstr("tactus_queue_oldest_timestamp_seconds 5\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("job_id=\"queued\"")));

  queued.record.id = JobId{2};
  queued.record.state = job::JobState::kCancelled;
  telemetry_.OnAction(queued);
  EXPECT_THAT(Text(), HasSubstr("tactus_queue_oldest_timestamp_seconds 6\n"));

  queued.record.id = JobId{3};
  queued.record.state = job::JobState::kStarting;
  telemetry_.OnAction(queued);
  EXPECT_THAT(Text(), Not(HasSubstr("tactus_queue_oldest_timestamp_seconds ")));
}

TEST_F(JobTelemetryTest, ACheckpointIsTimedUntilItIsWrittenAndUntilItIsHere) {
  job::PublishJob suspending{Record(job::JobState::kSuspending)};
  suspending.record.suspension.emplace();
  telemetry_.OnEvent(job::JobPaused{JobId{1}}, Instant(Seconds(10)));
  telemetry_.OnStep({suspending}, {});
  const auto say = [&](WorkerId worker, double seconds) {
    telemetry_.OnEvent(
        job::WorkerSaid{.worker = worker, .message = job::FinishedMessage{.suspended = true}},
        Instant(Seconds(seconds)));
    telemetry_.OnStep({}, {});
  };
  say(kFirst, 11);
  say(kSecond, 12);

  suspending.record.suspension->secured = true;
  telemetry_.OnEvent(job::ArtifactStored{.job = JobId{1}}, Instant(Seconds(17)));
  telemetry_.OnStep({suspending}, {});
  telemetry_.OnStep({suspending}, {});

  EXPECT_THAT(Text(), HasSubstr("tactus_checkpoint_seconds_sum{phase=\"write\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_checkpoint_seconds_sum{phase=\"upload\"} 5\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_checkpoint_seconds_count{phase=\"upload\"} 1\n"));
}

TEST_F(JobTelemetryTest, ASuspensionBeforeTheFirstRoundHasNoCheckpoint) {
  job::PublishJob suspending{Record(job::JobState::kSuspending)};
  suspending.record.suspension = job::Suspension{.secured = true};

  telemetry_.OnEvent(job::JobPaused{JobId{1}}, Instant(Seconds(10)));
  telemetry_.OnStep({suspending}, {});

  EXPECT_THAT(Text(), HasSubstr("tactus_checkpoint_seconds_count{phase=\"write\"} 0\n"));
}

TEST_F(JobTelemetryTest, ACheckpointOnTheWaySaysHowLongTrainingStoodStill) {
  const auto say = [this](const job::CheckpointedMessage& message) {
    telemetry_.OnEvent(job::WorkerSaid{.worker = kFirst, .message = message}, Instant(Seconds(1)));
  };

  say({.still_seconds = 0.25, .write_seconds = 3});
  say({.still_seconds = -1, .write_seconds = std::nan("")});

  EXPECT_THAT(Text(), HasSubstr("tactus_checkpoint_seconds_sum{phase=\"still\"} 0.25\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_checkpoint_seconds_count{phase=\"still\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_checkpoint_seconds_sum{phase=\"write\"} 3\n"));
}

TEST_F(JobTelemetryTest, ANewCheckpointIsDatedAndAnOldOneIsNot) {
  EXPECT_THAT(Text(), Not(HasSubstr("tactus_checkpoint_last_success_timestamp_seconds{")));

  job::PublishJob suspended{Record(job::JobState::kQueued)};
  suspended.record.checkpoint = {.sha256 = "ab"};
  telemetry_.OnAction(suspended);
  EXPECT_THAT(Text(),
              HasSubstr("tactus_checkpoint_last_success_timestamp_seconds{job_id=\"demo-1\"} 5\n"));

  wall_ = 9'000'000'000;
  suspended.record.state = job::JobState::kRunning;
  telemetry_.OnAction(suspended);
  EXPECT_THAT(Text(),
              HasSubstr("tactus_checkpoint_last_success_timestamp_seconds{job_id=\"demo-1\"} 5\n"));
}

TEST_F(JobTelemetryTest, DecisionsAreCountedByAxisWhenTheyAreMade) {
  Decide(2, Axis::kBatch);
  Decide(2, Axis::kLearningRate);
  Decide(3, Axis::kBatch);

  EXPECT_THAT(Text(), HasSubstr(Counted("batch", "decided", 2)));
  EXPECT_THAT(Text(), HasSubstr(Counted("learning_rate", "decided", 1)));
  EXPECT_THAT(Text(), HasSubstr(Counted("batch", "adopted", 0)));
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
  EXPECT_THAT(Text(), HasSubstr(Counted("aggregation", "adopted", 0)));
}

TEST_F(JobTelemetryTest, AMeasuredGainIsNotAnotherDecision) {
  Decide(2, Axis::kBatch);
  Decide(2, Axis::kBatch, 0.25);

  EXPECT_THAT(Text(), HasSubstr(Counted("batch", "decided", 1)));
}

TEST_F(JobTelemetryTest, ValidationsHaveSeriesFromTheFirstOn) {
  EXPECT_THAT(Text(), Not(HasSubstr("tactus_job_validation_loss{")));
  EXPECT_THAT(Text(), Not(HasSubstr("tactus_job_best_validation_loss{")));
  job::Progress progress;
  progress.validation = {.newest = job::ValidationRecord{.loss = 1.5, .seconds = 0.25},
                         .best = job::ValidationRecord{.loss = 1.25},
                         .count = 3};

  telemetry_.OnAction(job::PublishProgress{.job = JobId{1}, .progress = progress});

  for (const char* series : {"tactus_job_validation_loss{job_id=\"demo-1\"} 1.5",
                             "tactus_job_best_validation_loss{job_id=\"demo-1\"} 1.25",
                             "tactus_job_validation_seconds{job_id=\"demo-1\"} 0.25",
                             "tactus_job_validations_total{job_id=\"demo-1\"} 3"}) {
    EXPECT_THAT(Text(), HasSubstr(series));
  }
  EXPECT_THAT(Text(), Not(HasSubstr("tactus_job_validation_accuracy_ratio{")));
  progress.validation.newest->accuracy = 0.5;
  telemetry_.OnAction(job::PublishProgress{.job = JobId{1}, .progress = progress});
  EXPECT_THAT(Text(), HasSubstr("tactus_job_validation_accuracy_ratio{job_id=\"demo-1\"} 0.5"));
}

}  // namespace
}  // namespace tactus::telemetry
