// A worker process of the simulated world: the life of agent/worker around the shipped engine.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "base/id.h"
#include "coordinator/job/actions.h"
#include "cuda/device.h"
#include "policies/checkpoint_interval.h"
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
};

// Loads, meets its group, trains, concludes and exits, as agent/worker/worker.cc does, with models
// in the place of the network, the device and the tensor library. Outlives every event that it
// scheduled: owners keep ended workers. One thread.
class Worker {
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

  bool ended() const { return process_.ended(); }
  bool paused() const { return process_.paused_until() > around_.scheduler.now(); }
  const WorkerOrder& order() const { return order_; }
  // Of its group, while it trains.
  std::optional<GroupKey> training() const;

 private:
  void Run();
  int RunToEnd();
  std::optional<job::GroupMessage> AwaitGroup();
  std::optional<job::PeersMessage> AwaitPeers(std::uint64_t generation);
  std::optional<job::ToWorker> AwaitMessage();
  void LeaveUnmet(const job::GroupMessage& group);
  void Meet(const job::GroupMessage& group, const job::PeersMessage& peers);
  int Train();
  engine::StepResult Compute(const engine::Batch& batch);
  double TriedOut() const;
  Duration MakeSegmentsReady(Duration whole);
  void OnRounds();
  void OnRound(const policies::Report& report, std::optional<std::uint64_t> parameters_hash);
  void TakeMessages();
  int Conclude();
  void WriteFiles(job::FinishedMessage& finished);
  std::shared_ptr<Checkpoint> CopyCheckpoint();
  void AtEdge();
  bool EndsByItself() const;
  void KeepEnd();
  void Take();
  void OnWritten(const job::CheckpointedMessage& message,
                 const std::shared_ptr<const Checkpoint>& checkpoint);
  void EndPause();
  int Fail(std::string message, std::uint64_t lost_generation);

  const WorkerOrder order_;
  const WorkerSurroundings around_;
  std::deque<job::ToWorker> inbox_;
  GroupKey key_{};
  std::uint32_t rank_ = 0;
  Group* group_ = nullptr;
  std::unique_ptr<cuda::Device> host_;
  cuda::Buffer parameters_;
  cuda::Buffer gradients_;
  cuda::Sums losses_;
  std::unique_ptr<collective::Transport> transport_;
  std::unique_ptr<engine::RoundEngine> engine_;
  // Of rank 0.
  std::optional<policies::CheckpointSchedule> schedule_;
  std::optional<Instant> written_at_;  // of the checkpoint that is being written
  bool concluding_ = false;            // training is over, its last report said
  std::string out_of_memory_;          // not empty: a micro-batch did not fit
  std::uint64_t plan_version_ = 0;
  std::uint64_t batches_ = 0;          // done
  Duration computed_{};                // for them
  std::optional<Instant> computes_{};  // one, since then
  std::optional<Instant> paused_since_;
  Process process_;
};

}  // namespace tactus::simulator
