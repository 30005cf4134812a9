// Simulated workers that end with a checkpoint, and others that go on from it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simulator/noisy_quadratic.h"
#include "simulator/simulation.h"
#include "simulator/worker.h"
#include "tests/simulator/two_hosts.h"

namespace tactus::simulator {
namespace {

using testing::IsEmpty;

// Generations of a job, one after the other, each with workers on hosts of their own.
class SuspendedWorkersTest : public testing::Test {
 protected:
  SuspendedWorkersTest() : network_(Hosts()), device_({.name = "cpu:0"}, Rng(1)) {
    job_.learner = std::make_unique<NoisyQuadratic>(NoisyQuadraticOptions{.train_samples = 200});
    job_.engine.stop.epochs = 2;
    job_.engine.optimizer = engine::SgdOptions{.learning_rate = 0.01, .momentum = 0.9};
  }

  // The fibers must have ended before their stacks go.
  ~SuspendedWorkersTest() override {
    for (const auto& worker : workers_) worker->Kill();
  }

  static ClusterModel Hosts() {
    ClusterModel cluster;
    cluster.hosts = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    return cluster;
  }

  // Runs a generation of `size` workers to its end; with a stop message after so many rounds.
  void Run(std::uint64_t generation, std::uint32_t size, std::uint64_t stop_after,
           const job::StopMessage& stop) {
    finished_.clear();
    finished_at_.clear();
    reports_.clear();
    const std::size_t first = workers_.size();
    policies::Plan plan{.batch_sizes = std::vector<std::uint32_t>(size, 10), .reason = "equal"};
    for (std::uint32_t rank = 0; rank < size; ++rank) Add(rank, stop_after, stop);
    scheduler_.At(scheduler_.now() + Seconds(2), [this, generation, size, first, plan] {
      std::vector<std::string> endpoints;
      for (std::uint32_t rank = 0; rank < size; ++rank) endpoints.push_back(std::to_string(rank));
      for (std::uint32_t rank = 0; rank < size; ++rank) {
        Worker& worker = *workers_[first + rank];
        worker.Receive(
            job::GroupMessage{.generation = generation, .rank = rank, .size = size, .plan = plan});
        worker.Receive(job::PeersMessage{.generation = generation, .endpoints = endpoints});
      }
    });
    while (scheduler_.RunNext()) {
    }
  }

  void Add(std::uint32_t rank, std::uint64_t stop_after, const job::StopMessage& stop) {
    const WorkerId id{workers_.size() + 1};
    const std::uint32_t track = recorder_.OnWorker(
        JobId{1}, {.worker = id, .node = std::to_string(rank), .device = "cpu:0"});
    const std::size_t index = workers_.size();
    const auto say = [=, this](const job::FromWorker& message) {
      if (const auto* finished = std::get_if<job::FinishedMessage>(&message)) {
        finished_[rank] = *finished;
        finished_at_[rank] = scheduler_.now();
      }
      const auto* report = std::get_if<job::ReportMessage>(&message);
      if (report == nullptr || rank != 0) return;
      reports_.push_back(report->report);
      if (report->report.round + 1 == stop_after) workers_[index]->Receive(stop);
    };
    workers_.push_back(std::make_unique<Worker>(
        WorkerOrder{.worker = id,
                    .job = JobId{1},
                    .endpoint = std::to_string(rank),
                    .track = track,
                    .checkpoint = checkpoint_},
        WorkerSurroundings{
            .scheduler = scheduler_,
            .checkers = checkers_,
            .recorder = recorder_,
            .device = device_,
            .job = job_,
            .meet = [this](const GroupKey& key, const auto& endpoints) -> Group& {
              return Meet(key, endpoints.size());
            },
            .say = say,
            .keep = [this](const std::string&,
                           std::shared_ptr<const Checkpoint> written) { written_ = written; },
            .exited = [](int) {}}));
  }

  Group& Meet(const GroupKey& key, std::size_t members) {
    std::unique_ptr<Group>& group = groups_[key];
    if (group == nullptr) {
      Places places;
      for (std::size_t host = 0; host < members; ++host) places.hosts.push_back(host);
      group = std::make_unique<Group>(scheduler_, network_, std::move(places), GroupOptions{});
      checkers_.OnGroup(key, members, job_.learner->train_samples());
    }
    return *group;
  }

  void ExpectNoViolation() {
    for (const Violation& violation : checkers_.TakeViolations()) ADD_FAILURE() << violation.what;
  }

  Scheduler scheduler_;
  Network network_;
  Checkers checkers_;
  Recorder recorder_{false};
  SimulatedJob job_;
  Device device_;
  std::map<GroupKey, std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<const Checkpoint> checkpoint_;  // that those who are added go on from
  std::shared_ptr<const Checkpoint> written_;
  std::map<std::uint32_t, job::FinishedMessage> finished_;  // by rank
  std::map<std::uint32_t, Instant> finished_at_;            // by rank
  std::vector<policies::Report> reports_;                   // of rank 0
};

TEST_F(SuspendedWorkersTest, GroupsOfOtherSizesGoOnAndUseEverySampleOnce) {
  Run(1, 2, 4, {.reason = "paused", .suspend = true});
  ASSERT_EQ(finished_.size(), 2u);
  EXPECT_TRUE(finished_[0].suspended && finished_[1].suspended);
  EXPECT_EQ(finished_[0].files, std::vector<std::string>{kCheckpointFile});
  EXPECT_THAT(finished_[1].files, IsEmpty());
  EXPECT_EQ(written_->id.size(), 64u);
  const std::uint64_t rounds = finished_[0].rounds;

  checkpoint_ = std::exchange(written_, nullptr);
  Run(2, 3, 9, {.reason = "paused again", .suspend = true});
  EXPECT_TRUE(finished_[0].suspended);
  EXPECT_EQ(reports_.front().round, rounds);

  checkpoint_ = std::exchange(written_, nullptr);
  Run(3, 1, 0, {});
  EXPECT_FALSE(finished_[0].suspended);
  EXPECT_EQ(finished_[0].reason, "2 epochs completed");
  EXPECT_EQ(finished_[0].samples_global, 400u);
  EXPECT_EQ(written_, nullptr);
  ExpectNoViolation();
}

TEST_F(SuspendedWorkersTest, AResultThatWasAskedForHasACheckpointToo) {
  Run(1, 2, 4, {.reason = "enough"});

  EXPECT_FALSE(finished_[0].suspended);
  EXPECT_EQ(finished_[0].files.back(), kCheckpointFile);
  ASSERT_NE(written_, nullptr);
  EXPECT_EQ(written_->state.rounds, finished_[0].rounds);
}

TEST_F(SuspendedWorkersTest, WhatIsDiscardedHasNone) {
  Run(1, 2, 4, {.reason = "enough", .discard = true});

  EXPECT_EQ(finished_.size(), 2u);
  EXPECT_THAT(finished_[0].files, IsEmpty());
  EXPECT_EQ(written_, nullptr);
}

TEST_F(SuspendedWorkersTest, NobodyEvaluatesAndRankZeroAloneWrites) {
  job_.conclude_seconds = 100;
  job_.checkpoints.write_seconds = 3;

  Run(1, 2, 4, {.reason = "paused", .suspend = true});

  ASSERT_EQ(finished_at_.size(), 2u);
  const double wrote = ToSeconds(finished_at_[0] - finished_at_[1]);
  EXPECT_GE(wrote, 3 - 0.1);  // the other one may have come last from the last round
  EXPECT_LT(wrote, 3 + 0.1);
}

// ---- Whole simulations

TEST(SuspendedJobTest, APausedJobGoesOnWhereItWas) {
  const JobOutcome undisturbed = Simulate(TwoHosts()).jobs[0];
  Scenario scenario = TwoHosts();
  scenario.jobs[0].pause_seconds = 10;
  scenario.jobs[0].resume_seconds = 60;

  const Outcome outcome = Simulate(std::move(scenario));

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(outcome.unfinished, "");
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(job.state, job::JobState::kSucceeded) << job.reason;
  EXPECT_EQ(job.rounds, undisturbed.rounds);
  EXPECT_EQ(job.samples, undisturbed.samples);
  EXPECT_EQ(job.train_loss, undisturbed.train_loss);
  EXPECT_GT(outcome.seconds, 60);
  EXPECT_NEAR(job.train_seconds, undisturbed.train_seconds, 0.1);
}

TEST(SuspendedJobTest, APauseOutlivesTheCoordinator) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].pause_seconds = 10;
  scenario.jobs[0].resume_seconds = 60;
  for (const double at : {10.2, 11.0, 30.0, 60.5, 61.0}) {
    scenario.cluster.faults.push_back(
        {.kind = Fault::Kind::kCoordinatorCrash, .at_seconds = at, .for_seconds = 0.2});
  }

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.unfinished, "");
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded) << outcome.jobs[0].reason;
  EXPECT_EQ(outcome.jobs[0].rounds, 500u);
  EXPECT_GT(outcome.seconds, 60);
}

TEST(SuspendedJobTest, ADrainedHostIsLeftAndComesBack) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.workers_min = 1;
  scenario.drains.push_back({.host = "b", .at_seconds = 10, .until_seconds = 20});

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.unfinished, "");
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded) << outcome.jobs[0].reason;
  EXPECT_EQ(outcome.jobs[0].rounds, 500u);
}

TEST(SuspendedJobTest, AnAgentThatLeavesInTimeCostsNothing) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.workers_min = 1;
  scenario.jobs[0].settings.retries = 0;
  scenario.cluster.faults.push_back({.kind = Fault::Kind::kLeave,
                                     .at_seconds = 10,
                                     .for_seconds = 10,
                                     .host = "b",
                                     .within_seconds = 60});

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.unfinished, "");
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded) << outcome.jobs[0].reason;
  EXPECT_EQ(outcome.jobs[0].attempts.size(), 1u);
}

TEST(SuspendedJobTest, WhereALeavingAgentHasNoTimeTheOthersGoOn) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].submit_seconds = 1;  // when both are there
  scenario.jobs[0].settings.workers_min = 1;
  scenario.jobs[0].settings.retries = 0;
  scenario.cluster.faults.push_back({.kind = Fault::Kind::kLeave,
                                     .at_seconds = 10,
                                     .for_seconds = 10,
                                     .host = "b",
                                     .within_seconds = 1e-3});

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.unfinished, "");
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded) << outcome.jobs[0].reason;
  EXPECT_EQ(outcome.jobs[0].attempts.size(), 1u);
}

TEST(SuspendedJobTest, ADeviceAtFaultGetsNoWorkerUntilItIsMended) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].submit_seconds = 1;
  const std::string device = scenario.cluster.hosts[1].devices[0].name;
  scenario.device_faults.push_back(
      {.host = "b", .device = device, .at_seconds = 0, .until_seconds = 20});
  std::optional<double> started;
  scenario.on_step = [&](const job::Event&, Instant now, const job::Actions& actions) {
    for (const job::Action& action : actions) {
      const auto* start = std::get_if<job::StartWorker>(&action);
      if (start == nullptr || start->node != "b" || start->device != device) continue;
      if (!started) started = ToSeconds(now.time_since_epoch());
    }
  };

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.unfinished, "");
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded) << outcome.jobs[0].reason;
  ASSERT_TRUE(started.has_value());
  EXPECT_GE(*started, 20);
}

}  // namespace
}  // namespace tactus::simulator
