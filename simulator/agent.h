// An agent of the simulated world: starts and ends a host's workers and relays their messages.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/rng.h"
#include "coordinator/job/actions.h"
#include "protocol/allegiance.h"
#include "simulator/cluster_model.h"
#include "simulator/control_channel.h"
#include "simulator/device.h"
#include "simulator/scheduler.h"
#include "simulator/worker.h"

namespace tactus::simulator {

class Coordinator;

// What an agent says: a worker's words, or its end, its devices' faults, or that it leaves.
using UpMessage =
    std::variant<job::WorkerSaid, job::WorkerExited, job::DeviceFaultsChanged, job::NodeLeaving>;

// A file of a result, or a checkpoint, on its way to the coordinator.
struct ResultFile {
  std::string path{};
  std::shared_ptr<const Checkpoint> checkpoint{};  // its content; null: another file
};

// What came of one attempt to bring it.
enum class Receipt { kTaken, kAway, kRefused };

// What an agent needs of its world. All outlive it.
struct AgentSurroundings {
  Scheduler& scheduler;
  Checkers& checkers;
  Recorder& recorder;
  const ControlModel& control;
  Coordinator& coordinator;
  std::function<SimulatedJob&(JobId job)> job;
  std::function<Group&(const GroupKey& key, const std::vector<std::string>& endpoints)> meet;
};

// One host's agent over all its lives. Dials the coordinator until it has it, keeps what could not
// be said, and says it then. One thread.
class Agent {
 public:
  static constexpr Duration kRetry = Seconds(1);  // between two attempts to reach the coordinator
  static constexpr std::size_t kMessagesMax = 4096;  // to it, as service::Outbox::kMessagesMax

  // index: of the host in the cluster.
  Agent(const HostModel& host, std::size_t index, Rng rng, AgentSurroundings around);

  // It begins, or begins again after Crash: dials.
  void Start();

  // It ends with its workers; nobody is told.
  void Crash();

  // As agent::Agent::Leave: it ends when its workers have suspended their jobs and all that they
  // left is with the coordinator, or after `within`. `gone` is told of it, unless it crashes first;
  // nothing where it is leaving already. Requires: alive.
  void Leave(Duration within, std::function<void()> gone);

  // ---- For the coordinator

  const std::string& name() const { return host_.name; }
  job::NodeJoined Hello() const;
  std::uint64_t life() const { return life_; }  // its incarnation
  // False: it has workers, or words of them, that are another coordinator's.
  bool Obeys(const protocol::CoordinatorIdentity& coordinator);
  // The session is on: what was not acknowledged comes again. `same`: the session of this life, in
  // which the coordinator may have said something already.
  void OnWelcome(bool same);
  // The coordinator is gone, or has not heard the agent for long: dial again.
  void OnClosed();
  void Tell(const job::Action& action);
  void Acknowledge(std::uint64_t sequence) { up_.Acknowledge(sequence); }
  bool connected() const { return connected_; }
  bool alive() const { return alive_; }
  // A message of this agent would arrive now.
  bool Reaches() const { return alive_ && !up_.cut(); }

  // ---- For faults

  void CutUp(bool cut) { up_.SetCut(cut); }
  void CutDown(bool cut) { down_.SetCut(cut); }
  Worker* WorkerOn(const std::string& device);  // that runs there; null: none
  Device& DeviceNamed(const std::string& device);
  void KillWorker(const std::string& device);
  // The agent finds the device broken, or well again where the reason is empty. Those that run
  // there go on.
  void SetFault(const std::string& device, const std::string& reason);

  std::size_t running() const;  // workers
  bool idle() const { return running() == 0 && up_.size() == 0 && uploads_ == 0; }
  std::uint64_t messages() const { return up_.delivered_total() + down_.delivered_total(); }

 private:
  struct Running {
    std::unique_ptr<Worker> worker;
    std::string device;
    bool gone = false;
    std::map<std::string, std::shared_ptr<const Checkpoint>> written{};  // by file
    // As agent::CheckpointUploads: one at a time, and of those that wait the newest.
    bool uploads = false;
    std::optional<job::CheckpointedMessage> next{};
  };

  // A file on its way, over all attempts.
  struct Sending {
    JobId job{};
    ResultFile file{};
    std::function<void(Receipt)> done{};
    std::uint64_t life = 0;  // of the agent
    bool over = false;
    std::uint64_t taken_by = 0;  // process of the coordinator in which its call is under way
  };

  struct Leaving {
    Instant end{};
    std::function<void()> gone{};
  };

  void Quit();
  void AwaitSettled();
  void BreakOff();
  bool HoldsWords() const;
  void Dial();
  void On(const job::StartWorker& start);
  void On(const job::SendToWorker& send);
  void On(const job::StopWorker& stop);
  void On(const job::LookAtWorker& look);
  void OnSaid(WorkerId worker, const job::FromWorker& message);
  void OnExited(WorkerId worker, int exit_code, int signal);
  void End(WorkerId worker, int signal);
  void UploadResult(WorkerId worker, const job::FinishedMessage& finished);
  void KeepCheckpoint(WorkerId worker, const job::CheckpointedMessage& message);
  void UploadCheckpoint(WorkerId worker, job::CheckpointedMessage message);
  // Takes `time`, and goes on until it is durable or refused, which `done` is told, or this process
  // of the agent has ended.
  void Upload(JobId job, const ResultFile& file, Duration time, std::function<void(Receipt)> done);
  void TryUpload(const std::shared_ptr<Sending>& sending, Duration after);
  void Say(UpMessage message);

  const HostModel host_;
  const std::size_t index_;
  const AgentSurroundings around_;
  std::vector<std::unique_ptr<Device>> devices_;
  ControlChannel<UpMessage> up_;
  ControlChannel<job::Action> down_;
  std::map<WorkerId, Running> workers_;          // of all lives: events may still name them
  std::map<std::string, std::string> faults_{};  // of the hardware: reasons by device
  protocol::Allegiance allegiance_;
  bool alive_ = false;
  std::optional<Leaving> leaving_{};
  bool connected_ = false;
  std::uint64_t life_ = 0;
  int uploads_ = 0;  // under way
};

}  // namespace tactus::simulator
