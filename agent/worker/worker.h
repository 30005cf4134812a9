// A worker's life: load, meet the group, train, evaluate, write the result.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/collective/tcp_transport.h"
#include "agent/collective/transport.h"
#include "agent/data/dataset.h"
#include "agent/engine/round_engine.h"
#include "agent/model/model.h"
#include "agent/worker/agent_link.h"
#include "agent/worker/gradient_intake.h"
#include "agent/worker/messages.h"
#include "agent/worker/micro_batches.h"
#include "agent/worker/passes.h"
#include "agent/worker/reader.h"
#include "agent/worker/running_checkpoints.h"
#include "agent/worker/snapshots.h"
#include "agent/worker/training_curves.h"
#include "agent/worker/writer_thread.h"
#include "cuda/device.h"

namespace tactus::worker {

// One worker process, from the agent's first line to the last message up. One thread.
class Worker {
 public:
  // The link outlives the worker.
  explicit Worker(AgentLink& link) : link_(link) {}
  ~Worker() { link_.standpoint().Leave(); }

  // Runs to the end. What went wrong is told to the agent as Failed and returned.
  absl::Status Run();

 private:
  // The phases, in their order. Each needs what those before it left in the members below; one that
  // finds itself asked to leave sets left_ and succeeds.

  // All of them; the first error ends the life.
  absl::Status RunToEnd();
  // Takes the job, the first message that an agent may send.
  absl::Status AwaitStart();
  // Opens device, model and data, and proves by a pass that they go together.
  absl::Status Load();
  // A pass over a few samples, halved until it fits into memory, and the speed of a step.
  absl::Status TryOut();
  // Tells the log, and the next report, that passes have become smaller.
  void TellCeiling(std::uint32_t ceiling);
  // What it goes on from: of a checkpoint parameters and buffers at once, the rest into the engine
  // once there is one; weights alone leave the rest at its beginning.
  absl::Status LoadCheckpoint();
  // Of what failed while the group was needed: of the group, if it fell apart.
  absl::Status OfTheGroup(const absl::Status& status);
  // Waits for the group; refuses one whose plan does not fit it.
  absl::StatusOr<GroupMessage> AwaitGroup();
  // Connects with the others and makes the engine. The gradients move to a buffer with lanes, whose
  // number is the group's size.
  absl::Status Meet(const GroupMessage& group);
  collective::ConnectedTransport Connect(const GroupMessage& group);
  // Whether the group's buffers travel by NCCL.
  bool ByNccl(const GroupMessage& group) const;
  // The error of a group that came to nothing, which the agent is told of.
  absl::Status LoseBeforeTraining(const std::string& reason);
  std::string WhyGiveUp();
  // Gives its endpoint to the coordinator and waits for everybody's, by rank; empty: none will
  // come. Those of former generations are left unread.
  std::vector<std::string> ExchangeEndpoints(std::uint64_t generation, std::string own);
  // Rounds until the engine says that it is over. Reports leave and messages are taken between two
  // batches, never within one.
  absl::Status Train();
  // Loss and gradients of a batch; an empty one, of a member that only takes part, is done at once.
  absl::StatusOr<engine::StepResult> Compute(const engine::Batch& batch);
  void OpenCurves();
  // Of rank 0; null: none are taken while it trains.
  std::unique_ptr<RunningCheckpoints> MakeCheckpoints();
  bool EndsByItself() const;
  void KeepEnd();
  // Adds a round to the curves; training goes on without them from the first error on.
  void Draw(const policies::Report& report);
  // Plans and requests to stop that have come, without waiting.
  void TakeMessages();
  // Evaluates and writes results, a checkpoint instead where the job is suspended, nothing where it
  // is discarded. All members evaluate; rank 0 alone writes.
  absl::Status Conclude();
  // Where members on unlike devices may differ in last bits, all take rank 0's parameters.
  absl::Status AgreeOnParameters();
  absl::Status ConcludeSuspended(FinishedMessage finished);
  absl::Status SaveCheckpoint();
  std::vector<float> ParametersOnHost() const;
  // What is known of training at its end; waits for the device.
  FinishedMessage Facts() const;

  AgentLink& link_;
  StartMessage start_;
  std::unique_ptr<cuda::Device> device_;
  data::Split data_;
  cuda::Buffer parameters_;
  PassSums sums_;
  std::unique_ptr<GradientIntake> intake_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<ExampleReader> reader_;
  std::unique_ptr<Passes> passes_;
  std::unique_ptr<MicroBatches> micro_batches_;
  std::uint32_t out_of_memory_ = 0;  // passes since the last report that did not fit
  double samples_per_second_ = 0;    // tried out before the first round
  GroupMessage group_;
  std::unique_ptr<collective::Transport> transport_;
  std::unique_ptr<engine::RoundEngine> engine_;
  WriterThread writer_;
  std::unique_ptr<RunningCheckpoints> checkpoints_;
  std::optional<engine::EngineState> restored_;  // of the checkpoint that it goes on from
  std::optional<TrainingCurves> curves_;         // of rank 0, as long as they can be written
  std::optional<Snapshots> snapshots_;           // of who trains; rank 0 alone makes any
  std::uint64_t lost_generation_ = 0;            // of a group that fell apart
  bool left_ = false;                            // asked to leave before training began
};

}  // namespace tactus::worker
