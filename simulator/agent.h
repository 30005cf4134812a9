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
#include "session/agent_link.h"
#include "simulator/agent_stream.h"
#include "simulator/cluster_model.h"
#include "simulator/device.h"
#include "simulator/scheduler.h"
#include "simulator/worker.h"

namespace tactus::simulator {

class Coordinator;

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

// One host's agent over all its lives, around session::AgentLink. Dials the coordinator until it
// has it. One thread.
class Agent {
 public:
  static constexpr Duration kRetry = Seconds(1);  // between two attempts to reach the coordinator
  static constexpr Duration kWelcomeTimeout = Seconds(10);  // as agent::CoordinatorLink's

  // index: of the host in the cluster.
  Agent(const HostModel& host, std::size_t index, Rng rng, AgentSurroundings around);

  // It begins, or begins again after Crash: dials.
  void Start();

  // It ends with its workers; nobody is told.
  void Crash();

  // As agent::Agent::Leave: it ends when its workers are gone and all that they left is with the
  // coordinator, or after `within`. `gone` is told of it, unless it crashes first;
  // nothing where it is leaving already. Requires: alive.
  void Leave(Duration within, std::function<void()> gone);

  const std::string& name() const { return host_.name; }
  bool alive() const { return alive_; }

  // ---- For faults

  // Whatever it says to the coordinator, or hears of it, does not arrive until that ends.
  void CutUp(bool cut);
  void CutDown(bool cut);
  Worker* WorkerOn(const std::string& device);  // that runs there; null: none
  Device& DeviceNamed(const std::string& device);
  void KillWorker(const std::string& device);
  // The agent finds the device broken, or well again where the reason is empty. Those that run
  // there go on.
  void SetFault(const std::string& device, const std::string& reason);

  std::size_t running() const;  // workers
  // Nothing runs here, and the coordinator has dealt with all that was said.
  bool idle() const;
  std::uint64_t messages() const { return messages_; }  // heard, in both directions

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

  // What is kept until the coordinator has it, taken to weigh as much as a report does.
  struct Words {
    std::shared_ptr<const UpMessage> said{};
    std::size_t size() const { return 256; }
  };
  using Link = session::AgentLink<Words>;

  struct Leaving {
    Instant end{};
    std::function<void()> gone{};
  };

  void Quit();
  void AwaitSettled();
  void SuspendWorkers();
  void BreakOff();
  void Dial();
  std::shared_ptr<AgentStream> NewStream();
  void HangUp();
  void OnEnded(const std::shared_ptr<AgentStream>& stream);
  void OnWritten(const std::shared_ptr<AgentStream>& stream, const FromAgent& message);
  void Hear(const std::shared_ptr<AgentStream>& stream, const ToAgent& message);
  void BreakByChance(const AgentStream& stream);
  void Beat(const std::shared_ptr<AgentStream>& stream);
  void Pump();
  job::NodeJoined Hello() const;
  bool Owes(const std::function<bool(const UpMessage& said)>& is_so) const;
  bool Reaches() const { return alive_ && !up_cut_; }
  void Do(const job::Action& action);
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
  void Say(UpMessage said, session::Importance importance);

  const HostModel host_;
  const std::size_t index_;
  const AgentSurroundings around_;
  std::vector<std::unique_ptr<Device>> devices_;
  Rng network_;
  std::optional<Link> link_;             // of this life
  std::shared_ptr<AgentStream> stream_;  // null between two
  bool up_cut_ = false;
  bool down_cut_ = false;
  std::uint64_t messages_ = 0;
  std::map<WorkerId, Running> workers_;          // of all lives: events may still name them
  std::map<std::string, std::string> faults_{};  // of the hardware: reasons by device
  bool alive_ = false;
  std::optional<Leaving> leaving_{};
  std::uint64_t life_ = 0;
  int uploads_ = 0;  // under way
};

}  // namespace tactus::simulator
