// The worker process: the world of a worker's life, as it is.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/collective/tcp_transport.h"
#include "agent/collective/transport.h"
#include "agent/engine/member.h"
#include "agent/engine/round_engine.h"
#include "agent/life/mail.h"
#include "agent/life/world.h"
#include "agent/worker/agent.h"
#include "agent/worker/checkpoint_file.h"
#include "agent/worker/checkpoint_residuals.h"
#include "agent/worker/drawn_curves.h"
#include "agent/worker/mesh_member.h"
#include "agent/worker/messages.h"
#include "agent/worker/seconds_by_round.h"
#include "agent/worker/sigterm.h"
#include "agent/worker/snapshots.h"
#include "agent/worker/speed_emulation.h"
#include "agent/worker/trainee.h"
#include "agent/worker/update_times.h"
#include "agent/worker/writer_thread.h"
#include "cuda/device.h"

namespace tactus::worker {

// One worker process, from the agent's first line to the last message up: life::Life over a device,
// what is trained on it, sockets and files. One thread.
class Worker : private life::Mail, private life::World {
 public:
  // Both outlive the worker.
  Worker(Agent& agent, Trainee& trainee) : agent_(agent), trainee_(trainee) {}
  ~Worker() override { agent_.standpoint().Leave(); }

  // Runs to the end. What went wrong is told to the agent and returned.
  std::optional<FailedMessage> Run();

  // Of the group that it ended in, whose members may go on talking; null: there was none.
  collective::Transport* transport() { return transport_.get(); }

 private:
  life::OrFailure<protocol::ToWorker> Await() override;
  std::optional<protocol::ToWorker> Poll() override;
  void Send(const FromWorker& message) override { agent_.Send(message); }

  life::OrFailure<life::Loaded> Load(const std::function<bool()>& leaves) override;
  life::OrFailure<life::Met> Meet(const GroupMessage& group, const life::Meeting& meeting) override;
  void LeaveGroup() override;
  void BeginTraining() override;
  std::unique_ptr<life::CheckpointStore> OpenCheckpoints() override;
  life::OrFailure<engine::StepResult> Compute(const engine::Batch& batch) override;
  void OnStep(const engine::Batch& batch) override;
  void Complete(ReportMessage& message, bool newest) override;
  void OnReported(const policies::Report& report) override {
    curves_.Add(report, engine_->plan(), engine_->train_time());
  }
  void AtEdge() override;
  void EndTraining() override;
  bool AskedToEnd() override { return SigtermsKept() != sigterms_before_; }
  engine::HashedParameters HashParameters() override;
  std::optional<life::Failure> AgreeOnBuffers(double own_samples) override;
  life::OrFailure<engine::Validation> Validate(const std::function<void()>& beside) override;
  life::OrFailure<engine::Validation> ValidateAtEdge() override;
  life::OrFailure<life::SubsetChoice> ChooseSubset() override;
  Instant KeepBest() override;
  void OnValidated(const ValidatedMessage& message) override { curves_.AddValidation(message); }
  void TakeBest() override;
  life::OrFailure<std::vector<std::string>> KeepResult(const FinishedMessage& finished,
                                                       const EvaluatedMessage& evaluated) override;
  std::optional<life::Failure> KeepCheckpoint() override;

  // Takes the job, the first message that an agent may send.
  absl::Status AwaitStart();
  // Opens device and trainee, and proves that they go together. Errors: Cancelled, it leaves.
  absl::Status Prepare(const std::function<bool()>& leaves);
  void MakeMember();
  // What it goes on from; weights alone leave all but parameters and buffers at its beginning.
  absl::Status LoadGiven();
  absl::Status LoadCheckpoint();
  void TakeUp(Checkpoint checkpoint);
  // This member's share of what encodings had left with those of a checkpoint.
  void TakeUpResiduals();
  collective::ConnectedTransport Connect(const GroupMessage& group, const life::Meeting& meeting);
  collective::TcpMeeting TcpMeetingOf(const GroupMessage& group, const life::Meeting& meeting);
  // Of a mesh: the model comes into the groups that were connected, and has what it begins with
  // where it is now.
  std::optional<life::Failure> JoinMesh();
  // Whether the group's buffers travel by NCCL.
  bool ByNccl(const GroupMessage& group) const;
  // The gradients move to a buffer with lanes, whose number is the group's size. True: to memory
  // that NCCL can register.
  bool MakeSums(const GroupMessage& group);
  // Tries the group out, and where all members' gradients `fit`, prepares these for it: whether
  // they are registered. A failure: the group came to nothing.
  life::OrFailure<bool> Register(bool fit);
  void MakeEngine(const GroupMessage& group, bool registered);
  // A worker of nobody's has no folder to leave files in.
  bool KeepsFiles() const { return !start_.output_directory.empty(); }
  bool KeepsBest() const { return start_.job.result == JobResult::kBest; }
  absl::Status Pass(const engine::Batch& batch);
  life::OrFailure<engine::Validation> StandBetweenEpochs();
  void OpenSnapshots();
  std::vector<float> ParametersOnHost() const;  // waits for the device
  // What files are of, whose parameters are all of the model's.
  const cuda::SegmentTable& FileSegments() const {
    return mesh_ ? mesh_->parts().dense_segments() : trainee_.segments();
  }

  Agent& agent_;
  Trainee& trainee_;
  const std::uint32_t sigterms_before_ = SigtermsKept();  // told to others of this process
  StartMessage start_;
  std::unique_ptr<cuda::Device> device_;
  cuda::Buffer parameters_;
  PassSums sums_;
  double samples_per_second_ = 0;                   // tried out before the first round
  std::unique_ptr<engine::Member> member_;          // of one group after another
  std::optional<MeshMember> mesh_;                  // where a device has a part of the model alone
  std::optional<CheckpointedResiduals> residuals_;  // of the checkpoint, until training begins
  GroupMessage group_;
  std::unique_ptr<collective::Transport> transport_;
  std::unique_ptr<engine::RoundEngine> engine_;
  WriterThread writer_;
  // What had the least validation loss, where that is to be the result; null: nothing yet, or not
  // here. Shared with the checkpoint that is being written.
  std::shared_ptr<const BestCopy> best_;
  std::vector<float> validated_buffers_;  // of the last validation
  // While it trains.
  std::optional<SpeedEmulation> emulation_;
  std::optional<UpdateTimes> update_seconds_;
  SecondsByRound data_seconds_;
  std::optional<Snapshots> snapshots_;  // rank 0 alone makes any
  bool snapshots_made_ = false;         // by this worker
  DrawnCurves curves_;                  // of rank 0
};

}  // namespace tactus::worker
