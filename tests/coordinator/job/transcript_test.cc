// Whole lives, action by action. After a change that is meant, run with TACTUS_REWRITE_GOLDEN=1 and
// read the difference.

#include "tests/coordinator/job/transcript.h"

#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

const JobSettings kSettings{.workers_min = 2, .workers_max = 3, .stop_rounds = 40};

class TranscriptTest : public testing::Test {
 protected:
  Actions Step(const Event& event) { return StepAt(seconds_ + 0.1, event); }
  Actions StepAt(double seconds, const Event& event) {
    seconds_ = seconds;
    return transcript_.Step(seconds, event);
  }

  void Start() {
    transcript_.Note("two nodes, one job");
    StepAt(0, JobSubmitted{Job(1, kSettings)});
    Step(Join("b", 1));
    Step(Join("a", 2));
  }

  void Load() {
    transcript_.Note("all have loaded, all know one another");
    for (std::uint64_t worker = 1; worker <= 3; ++worker) Step(Said(worker, Ready()));
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      Step(Said(worker, EndpointMessage{.generation = 1, .endpoint = Name(worker)}));
    }
  }

  // One round of all three; from the slowest on, `sizes_` changes when a plan comes.
  void Round() {
    const RoundOf round{.round = rounds_++, .plan_version = version_, .batch_sizes = sizes_};
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      for (const policies::Plan& plan : PlansSent(Step(Said(rank + 1, ReportOf(rank, round))))) {
        version_ = plan.version;
        sizes_ = plan.batch_sizes;
      }
    }
  }

  void Finish() {
    transcript_.Note("the last words and the files");
    Step(Said(1, EvaluatedMessage{.loss = 1.9, .accuracy = 0.5, .samples = 100}));
    for (std::uint32_t rank = 0; rank < 3; ++rank) Step(Said(rank + 1, Finished(rank)));
    Step(WorkerExited{.worker = WorkerId{3}});
    Step(ArtifactStored{.job = JobId{1}, .artifact = {.path = "model.pt", .size_bytes = 900}});
    Step(ArtifactStored{.job = JobId{1},
                        .artifact = {.path = "model.safetensors", .size_bytes = 800}});
    Step(WorkerExited{.worker = WorkerId{1}});
    Step(WorkerExited{.worker = WorkerId{2}});
  }

  void ExitAll(std::uint64_t except = 0) {
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      if (worker != except) {
        Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 15});
      }
    }
  }

  // As it was asked to, after so many rounds.
  void LeaveGroup(std::uint64_t worker, std::uint64_t generation, std::uint64_t rounds) {
    Step(Said(
        worker,
        GroupLostMessage{
            .generation = generation, .rounds = rounds, .reason = "asked to", .planned = true}));
  }

  // They form this generation, and report the round of the same number.
  void Meet(const std::vector<std::uint64_t>& workers, std::uint64_t generation) {
    for (const std::uint64_t worker : workers) {
      Step(Said(worker, EndpointMessage{.generation = generation, .endpoint = Name(worker)}));
    }
    const std::vector<std::uint32_t> sizes(workers.size(), 32);
    for (std::uint32_t rank = 0; rank < workers.size(); ++rank) {
      const RoundOf round{.round = generation, .plan_version = generation, .batch_sizes = sizes};
      Step(Said(workers[rank], ReportOf(rank, round, generation)));
    }
  }

  static std::string Name(std::uint64_t worker) { return "e" + std::to_string(worker); }

  Transcript transcript_;
  double seconds_ = 0;
  std::uint64_t rounds_ = 0;
  std::uint64_t version_ = 1;
  std::vector<std::uint32_t> sizes_ = {32, 32, 32};
};

TEST_F(TranscriptTest, TheLifeOfAJob) {
  Start();
  Load();
  transcript_.Note("rounds, and a plan that finds the speeds");
  while (version_ == 1 && rounds_ < 20) Round();
  for (int i = 0; i < 2; ++i) Round();
  Finish();

  EXPECT_EQ(version_, 2u);
  transcript_.ExpectGolden("life_of_a_job");
}

TEST_F(TranscriptTest, AWorkerIsKilled) {
  Start();
  Load();
  Round();
  transcript_.Note("the others notice first, but the cause is the one that was killed");
  Step(Said(1, FailedMessage{.message = "all-reduce failed: connection reset by peer",
                             .lost_generation = 1}));
  Step(WorkerExited{.worker = WorkerId{1}, .exit_code = 75});
  Step(WorkerExited{.worker = WorkerId{3},
                    .exit_code = -1,
                    .signal = 9,
                    .log_tail = "worker starts\nround 0 done\n"});
  Step(WorkerExited{.worker = WorkerId{2}, .exit_code = -1, .signal = 15});
  transcript_.Note("the rest is over");
  StepAt(7, Ticked{});
  for (std::uint64_t worker = 4; worker <= 6; ++worker) Step(Said(worker, Ready()));

  transcript_.ExpectGolden("worker_killed");
}

TEST_F(TranscriptTest, AGroupIsLostUnderWorkersWhoGoOn) {
  Start();
  Load();
  Round();
  transcript_.Note("one is killed, and each of the others says that it lost its group");
  Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 9});
  for (std::uint64_t worker = 1; worker <= 2; ++worker) {
    Step(Said(worker, GroupLostMessage{.generation = 1,
                                       .rounds = 3 - worker,
                                       .reason = "rank 2: reset by peer",
                                       .blames = {2}}));
  }
  transcript_.Note("they meet, and train on from where the first of them is");
  for (std::uint64_t worker = 1; worker <= 2; ++worker) {
    Step(Said(worker, EndpointMessage{.generation = 2, .endpoint = Name(worker)}));
  }
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const RoundOf round{.round = 2, .plan_version = 2, .batch_sizes = {32, 32}};
    Step(Said(rank + 1, ReportOf(rank, round, 2)));
  }

  transcript_.ExpectGolden("regroup");
}

TEST_F(TranscriptTest, ANodeLeavesAndAnotherComes) {
  Start();
  Load();
  Round();
  transcript_.Note("b has a minute: the others are to go on without its worker");
  Step(NodeLeaving{.node = "b", .leave = {.reason = "SIGTERM", .within = Seconds(60)}});
  for (std::uint64_t worker = 1; worker <= 3; ++worker) LeaveGroup(worker, 1, 2);
  Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 15});
  Meet({1, 2}, 2);
  transcript_.Note("a worker loads on another node, and joins them");
  Step(Join("c", 1));
  StepAt(8, Ticked{});
  Step(Said(4, Ready()));
  for (std::uint64_t worker = 1; worker <= 2; ++worker) LeaveGroup(worker, 2, 3);
  Meet({1, 2, 4}, 3);
  transcript_.ExpectGolden("node_leaves");
}

TEST_F(TranscriptTest, ACancelInTheQueue) {
  StepAt(0, JobSubmitted{Job(1, kSettings)});
  Step(JobCancelled{.job = JobId{1}, .reason = "cancelled by user"});
  Step(JobCancelled{.job = JobId{1}, .reason = "cancelled again"});

  transcript_.ExpectGolden("cancel_queued");
}

TEST_F(TranscriptTest, ACancelWhileStarting) {
  Start();
  Step(JobCancelled{.job = JobId{1}, .reason = "cancelled by user"});
  Step(Said(1, Ready()));
  ExitAll();

  transcript_.ExpectGolden("cancel_starting");
}

TEST_F(TranscriptTest, ACancelWhileRunningKeepsTheResult) {
  Start();
  Load();
  Round();
  Step(JobCancelled{.job = JobId{1}, .reason = "cancelled by user"});
  Round();
  Finish();

  transcript_.ExpectGolden("cancel_running");
}

TEST_F(TranscriptTest, ADiscardWhileFinishing) {
  Start();
  Load();
  Round();
  Step(Said(1, Finished(0)));
  Step(JobCancelled{.job = JobId{1}, .reason = "cancelled by user"});
  Step(JobCancelled{.job = JobId{1}, .reason = "cancelled by user", .discard = true});
  ExitAll();

  transcript_.ExpectGolden("cancel_stopping");
}

TEST_F(TranscriptTest, TheCoordinatorRestartsAndTheJobGoesOn) {
  Start();
  Load();
  while (version_ == 1 && rounds_ < 20) Round();
  transcript_.Note("the last plan was sent, nobody knows to whom");
  transcript_.Restart(seconds_ + 5);
  NodeJoined a = Join("a", 2);
  a.running_workers = {WorkerId{1}, WorkerId{2}};
  NodeJoined b = Join("b", 1);
  b.running_workers = {WorkerId{3}};
  StepAt(seconds_ + 6, b);
  Round();
  Step(a);
  Round();
  Finish();

  transcript_.ExpectGolden("coordinator_restart");
}

TEST_F(TranscriptTest, TheCoordinatorRestartsAndAWorkerIsMissing) {
  Start();
  Load();
  Round();
  transcript_.Restart(seconds_ + 5);
  NodeJoined b = Join("b", 1);
  b.running_workers = {WorkerId{3}};
  StepAt(seconds_ + 6, b);
  StepAt(seconds_ + 3600, Ticked{});
  Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 15});
  transcript_.Note("the others come back too late and are strays");
  NodeJoined a = Join("a", 2);
  a.running_workers = {WorkerId{1}, WorkerId{2}};
  StepAt(seconds_ + 60, a);
  Step(JobSubmitted{Job(2, kSettings)});
  ExitAll(3);

  transcript_.ExpectGolden("coordinator_restart_worker_missing");
}

}  // namespace
}  // namespace tactus::job
