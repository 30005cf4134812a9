// What the other members of a group notice when a worker is gone.

#include "simulator/worker.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "simulator/noisy_quadratic.h"

namespace tactus::simulator {
namespace {

constexpr std::uint64_t kGeneration = 3;
constexpr std::size_t kWorkers = 2;

// Two workers on hosts of their own, which load for a second and take a second for a micro-batch.
// The second worker is the one to whom something happens.
class WorkerTest : public testing::Test {
 protected:
  WorkerTest() : network_(TwoHosts()) {
    job_.learner = std::make_unique<NoisyQuadratic>(NoisyQuadraticOptions{});
    job_.engine.stop.rounds = 100;
    Add({.name = "cpu:0", .sample_seconds = 1.0 / 32});
    Add({.name = "cpu:0", .sample_seconds = 1.0 / 32, .samples_max = 40});
  }

  // The fibers must have ended before their stacks go.
  ~WorkerTest() override {
    for (const auto& worker : workers_) worker->Kill();
  }

  static Instant At(double seconds) { return Instant{} + Seconds(seconds); }

  static ClusterModel TwoHosts() {
    ClusterModel cluster;
    cluster.hosts = {{.name = "a"}, {.name = "b"}};
    return cluster;
  }

  void Add(const DeviceModel& device) {
    const std::size_t i = workers_.size();
    devices_.push_back(std::make_unique<Device>(device, Rng(1)));
    const std::uint32_t track = recorder_.OnWorker(
        JobId{1}, {.worker = WorkerId{i + 1}, .node = std::to_string(i), .device = "cpu:0"});
    workers_.push_back(std::make_unique<Worker>(
        WorkerOrder{.worker = WorkerId{i + 1},
                    .job = JobId{1},
                    .endpoint = std::to_string(i),
                    .track = track},
        WorkerSurroundings{.scheduler = scheduler_,
                           .checkers = checkers_,
                           .recorder = recorder_,
                           .device = *devices_.back(),
                           .job = job_,
                           .meet = [this](const GroupKey& key, const auto& endpoints) -> Group& {
                             return Meet(key, endpoints.size());
                           },
                           .say = [this, i](const job::FromWorker& message) { OnSaid(i, message); },
                           .keep = [](const auto&, const auto&) {},
                           .exited = [this, i](int) { exited_[i] = scheduler_.now(); }}));
  }

  Group& Meet(const GroupKey& key, std::size_t members) {
    std::unique_ptr<Group>& group = groups_[key.generation];
    if (group == nullptr) {
      Places places{.hosts = {0, 1}};
      places.hosts.resize(members);
      group = std::make_unique<Group>(scheduler_, network_, places, GroupOptions{});
      checkers_.OnGroup(key, members, job_.learner->train_samples());
    }
    return *group;
  }

  void OnSaid(std::size_t i, const job::FromWorker& message) {
    if (const auto* failed = std::get_if<job::FailedMessage>(&message)) failed_[i] = *failed;
    if (const auto* finished = std::get_if<job::FinishedMessage>(&message))
      finished_[i] = *finished;
    if (const auto* lost = std::get_if<protocol::GroupLostMessage>(&message)) {
      lost_[i] = *lost;
      lost_at_[i] = scheduler_.now();
    }
  }

  // Sends the group to both at 2 s, and the peers to one of them at a time.
  void FormGroupAt2(std::uint32_t batch_size = 32) {
    scheduler_.At(At(2), [this, batch_size] {
      for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
        workers_[rank]->Receive(job::GroupMessage{
            .generation = kGeneration,
            .rank = rank,
            .size = kWorkers,
            .plan = {.batch_sizes = {batch_size, batch_size}, .reason = "equal shares"}});
      }
    });
  }
  void IntroduceAt(double seconds, std::size_t i) {
    scheduler_.At(At(seconds), [this, i] {
      workers_[i]->Receive(job::PeersMessage{.generation = kGeneration, .endpoints = {"0", "1"}});
    });
  }
  void KillAt(double seconds, std::size_t i) {
    scheduler_.At(At(seconds), [this, i] { workers_[i]->Kill(); });
  }

  void RunUntil(Instant end) {
    bool over = false;
    scheduler_.At(end, [&over] { over = true; });
    while (!over) scheduler_.RunNext();
  }

  void ExpectFirstLostItsGroup(Instant at, const std::string& reason) {
    RunUntil(At(100));
    EXPECT_EQ(lost_at_[0], at) << ToSeconds(lost_at_[0] - at);
    EXPECT_EQ(lost_[0].generation, kGeneration);
    EXPECT_EQ(lost_[0].reason, "the group was lost: " + reason);
    EXPECT_FALSE(exited_.contains(0)) << "it waits for another group";
  }

  Scheduler scheduler_;
  Network network_;
  Checkers checkers_;
  Recorder recorder_{false};
  SimulatedJob job_;
  std::map<std::uint64_t, std::unique_ptr<Group>> groups_;  // by generation
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<std::size_t, job::FailedMessage> failed_;
  std::map<std::size_t, job::FinishedMessage> finished_;
  std::map<std::size_t, protocol::GroupLostMessage> lost_;  // the last
  std::map<std::size_t, Instant> lost_at_;
  std::map<std::size_t, Instant> exited_;
};

TEST_F(WorkerTest, OneThatRunsOutOfMemoryIsMissedInTheNextReduction) {
  FormGroupAt2(41);
  job_.engine.micro_batch = 64;
  IntroduceAt(3, 0);
  IntroduceAt(3, 1);

  RunUntil(At(100));

  EXPECT_EQ(failed_[1].message, "out of memory: a micro-batch of 41 samples, 40 fit");
  EXPECT_EQ(lost_[0].reason, "the group was lost: a member left the group");
  EXPECT_EQ(lost_[0].blames, std::vector<std::uint32_t>{1});
  EXPECT_GT(lost_at_[0], At(4));  // it has computed its micro-batch
  EXPECT_LT(lost_at_[0], At(5));
}

TEST_F(WorkerTest, OneThatIsKilledBetweenIntroductionsIsMissedAtOnce) {
  FormGroupAt2();
  IntroduceAt(3, 0);
  KillAt(4, 1);

  ExpectFirstLostItsGroup(At(4) + Group::kResetDelay, "a member ended before the group had met");
}

TEST_F(WorkerTest, OneThatIsKilledBeforeAllIntroductionsIsMissedByWhomCome) {
  FormGroupAt2();
  KillAt(3, 1);
  IntroduceAt(4, 0);

  ExpectFirstLostItsGroup(At(4), "a member ended before the group had met");
}

TEST_F(WorkerTest, OneThatIsStoppedBeforeItIsIntroducedIsMissedAtOnce) {
  FormGroupAt2();
  IntroduceAt(3, 0);
  scheduler_.At(At(4), [this] { workers_[1]->Receive(job::StopMessage{.reason = "enough"}); });

  ExpectFirstLostItsGroup(At(4) + Group::kResetDelay, "a member ended before the group had met");
}

TEST_F(WorkerTest, OneThatIsKilledInTrainingIsMissedAtOnce) {
  FormGroupAt2();
  IntroduceAt(3, 0);
  IntroduceAt(3, 1);
  scheduler_.At(At(3.5), [this] { workers_[1]->PauseUntil(Instant::max()); });
  KillAt(10, 1);

  ExpectFirstLostItsGroup(At(10) + Group::kResetDelay, "a member's process ended");
}

TEST_F(WorkerTest, ASurvivorGoesOnInTheNextGroup) {
  FormGroupAt2();
  IntroduceAt(3, 0);
  IntroduceAt(3, 1);
  KillAt(10, 1);
  scheduler_.At(At(20), [this] {
    ASSERT_GT(lost_[0].rounds, 2u);
    EXPECT_EQ(lost_[0].blames, std::vector<std::uint32_t>{1});
    workers_[0]->Receive(
        job::GroupMessage{.generation = kGeneration + 1,
                          .size = 1,
                          .plan = {.version = 2, .batch_sizes = {32}, .reason = "who is left"},
                          .rounds = {lost_[0].rounds}});
    workers_[0]->Receive(job::PeersMessage{.generation = kGeneration + 1, .endpoints = {"0"}});
  });

  RunUntil(At(200));

  EXPECT_EQ(finished_[0].rounds, 100u);
  EXPECT_TRUE(exited_.contains(0));
  EXPECT_FALSE(failed_.contains(0));
}

TEST_F(WorkerTest, ASurvivorThatIsToDiscardEnds) {
  FormGroupAt2();
  IntroduceAt(3, 0);
  IntroduceAt(3, 1);
  KillAt(10, 1);
  scheduler_.At(At(20), [this] {
    workers_[0]->Receive(job::StopMessage{.reason = "enough", .discard = true});
  });

  RunUntil(At(100));

  EXPECT_EQ(exited_[0], At(20));
  EXPECT_FALSE(failed_.contains(0));
}

}  // namespace
}  // namespace tactus::simulator
