// A worker process of the simulated world: models in the place of what agent/worker has.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/engine/member.h"
#include "agent/engine/round_engine.h"
#include "agent/life/mail.h"
#include "agent/life/world.h"
#include "base/id.h"
#include "coordinator/job/actions.h"
#include "cuda/device.h"
#include "simulator/checkers.h"
#include "simulator/checkpoint.h"
#include "simulator/device.h"
#include "simulator/group.h"
#include "simulator/process.h"
#include "simulator/recorder.h"
#include "simulator/scheduler.h"
#include "simulator/simulation.h"

namespace tactus::simulator {

// What a worker needs of its world. All outlive it.
struct WorkerSurroundings {
  Scheduler& scheduler;
  Checkers& checkers;
  Recorder& recorder;
  Device& device;
  SimulatedJob& job;
  // The group of a generation, whose members' hosts are given by rank; the same for all members.
  std::function<Group&(const GroupKey& key, const std::vector<std::string>& endpoints)> meet;
  std::function<void(job::FromWorker message)> say;  // to its agent
  // A checkpoint is in the output directory, as `file`; before it is said.
  std::function<void(const std::string& file, std::shared_ptr<const Checkpoint> checkpoint)> keep;
  std::function<void(int exit_code)> exited;  // by itself
};

// Who a worker is.
struct WorkerOrder {
  WorkerId worker{};
  JobId job{};
  std::string endpoint{};                          // what it tells its peers: where it is
  std::uint32_t track = 0;                         // its number with the recorder
  std::shared_ptr<const Checkpoint> checkpoint{};  // that it goes on from; null: from the beginning
  std::uint64_t skip_samples = 0;                  // after its own
};

// The shipped life around the shipped engine, on a fiber, with models in the place of the network,
// the device and the tensor library. Of a killed one the code runs to its end without effect.
// Outlives every event that it scheduled: owners keep ended workers. One thread.
class Worker : private life::Mail, private life::World {
 public:
  static constexpr std::size_t kInboxMax = 64;

  Worker(WorkerOrder order, WorkerSurroundings around);

  // A message from the coordinator has come.
  void Receive(const job::ToWorker& message);

  // It ends now by a signal; nobody hears of it from itself.
  void Kill();

  // Where it stands, as it and its agent would say.
  job::StandingMessage Standing() const;

  // It stands still until then. On the trace when it goes on, or ends.
  void PauseUntil(Instant until);

  // In its parameters. Requires: it is loaded.
  void FlipBit(std::size_t element, unsigned bit);

  bool ended() const { return process_.ended(); }
  bool paused() const { return process_.paused_until() > around_.scheduler.now(); }
  const WorkerOrder& order() const { return order_; }
  // Of its group, while it trains.
  std::optional<GroupKey> training() const;

 private:
  class Checkpoints;

  life::OrFailure<job::ToWorker> Await() override;
  std::optional<job::ToWorker> Poll() override;
  void Send(const job::FromWorker& message) override;

  life::OrFailure<life::Loaded> Load(const std::function<bool()>& leaves) override;
  life::OrFailure<life::Met> Meet(const job::GroupMessage& group,
                                  const life::Meeting& meeting) override;
  void LeaveGroup() override;
  void BeginTraining() override;
  std::unique_ptr<life::CheckpointStore> OpenCheckpoints() override;
  life::OrFailure<engine::StepResult> Compute(const engine::Batch& batch) override;
  void OnStep(const engine::Batch& /*batch*/) override {}
  void Complete(job::ReportMessage& message, bool newest) override;
  void OnReported(const policies::Report& /*report*/) override {}
  void AtEdge() override {}
  void EndTraining() override {}
  bool AskedToEnd() override { return false; }  // but by its agent
  engine::HashedParameters HashParameters() override;
  std::optional<life::Failure> AgreeOnBuffers(double own_samples) override;
  life::OrFailure<engine::Validation> Validate(const std::function<void()>& beside) override;
  life::OrFailure<engine::Validation> ValidateAtEdge() override;
  life::OrFailure<life::SubsetChoice> ChooseSubset() override;
  Instant KeepBest() override;
  void OnValidated(const protocol::ValidatedMessage& /*message*/) override {}
  void TakeBest() override {}
  life::OrFailure<std::vector<std::string>> KeepResult(
      const job::FinishedMessage& finished, const protocol::EvaluatedMessage& evaluated) override;
  std::optional<life::Failure> KeepCheckpoint() override;

  void Run();
  bool AsksForValidation() const;
  std::optional<double> FirstLoss() const;
  std::optional<life::Failure> Evaluate(const std::function<void()>& beside);
  void LeaveUnmet(const job::GroupMessage& group);
  void MakeMember();
  void MakeEngine(const job::GroupMessage& group);
  double TriedOut() const;
  Duration MakeSegmentsReady(Duration whole);
  std::shared_ptr<Checkpoint> CopyCheckpoint();
  void Observe(std::uint64_t rounds);
  void EndPause();

  const WorkerOrder order_;
  const WorkerSurroundings around_;
  std::deque<job::ToWorker> inbox_;
  GroupKey key_{};  // of its group, or the last
  std::uint32_t rank_ = 0;
  std::vector<std::uint64_t> rounds_;  // as the group was told
  Group* group_ = nullptr;
  std::unique_ptr<cuda::Device> host_;
  cuda::Buffer parameters_;
  std::unique_ptr<engine::Member> member_;
  cuda::Buffer gradients_;
  cuda::Sums losses_;
  std::unique_ptr<collective::Transport> transport_;
  std::unique_ptr<engine::RoundEngine> engine_;
  bool validates_ = false;  // between rounds
  std::uint64_t plan_version_ = 0;
  std::uint64_t batches_ = 0;          // done
  Duration computed_{};                // for them
  std::optional<Instant> computes_{};  // one, since then
  std::optional<Instant> paused_since_;
  Instant observes_from_ = Instant::min();  // the next time, at a round's edge
  Process process_;
};

}  // namespace tactus::simulator
