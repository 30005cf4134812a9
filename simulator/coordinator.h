// A coordinator process of the simulated world: the shipped core and the shipped
// order of durability and sessions, with a modelled disk.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/delivery/action_queue.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"
#include "protocol/allegiance.h"
#include "session/sessions.h"
#include "simulator/agent_stream.h"
#include "simulator/checkers.h"
#include "simulator/checkpoint.h"
#include "simulator/cluster_model.h"
#include "simulator/recorder.h"
#include "simulator/scheduler.h"
#include "simulator/simulation.h"

namespace tactus::simulator {

enum class Receipt;
struct ResultFile;

// What a coordinator needs of its world. All outlive it.
struct CoordinatorSurroundings {
  Scheduler& scheduler;
  Checkers& checkers;
  Recorder& recorder;
  const Scenario& scenario;
  // What passes from one host to another now, by their names; 0: nothing does. [bytes/s]
  std::function<double(const std::string& from, const std::string& to)> rate;
};

// The shell around job::Cluster, delivery::ActionQueue and session::Sessions, over all lives of the
// process. A crash finds the write that it interrupts done or not done, and nobody was told; agents
// say again what they do not know to be durable. One thread.
class Coordinator {
 public:
  // As service::Upkeep: a checkpoint that its job names no longer goes after a while.
  static constexpr Duration kUnnamed = std::chrono::minutes(3);
  using Sessions = session::Sessions<AgentStream, job::Action>;
  static constexpr Duration kBeat = Sessions::kBeat;
  // As agent::LinkBounds: a link is measured for so long, or with so much.
  static constexpr double kProbeSeconds = 1;
  static constexpr double kProbeBytes = 128 << 20;
  // Turns virtual time into the time of day on records: 2025-01-01.
  static constexpr job::WallTime kWallOffset = 1'735'689'600'000'000'000;

  explicit Coordinator(CoordinatorSurroundings around) : around_(around) {}

  // The process begins, from what is durable.
  void Start();
  // It is gone.
  void Crash();
  bool up() const { return cluster_ != nullptr; }

  // Another store is taken for this one's, an empty one: the process that begins next knows
  // nothing, and users who talk to it find nothing. Requires: it is not up.
  void SetWrongStore(bool wrong);

  void SetDiskFull(bool full);
  // Its store takes no files.
  void SetRefusing(bool refusing) { refusing_ = refusing; }
  // Each job's newest checkpoint is not what was written any more. Returns how many.
  std::size_t DamageCheckpoints();

  // ---- From users; false: it is not up.

  bool Submit(const job::JobRecord& record);
  // Anything else that users say.
  bool Tell(const job::Event& event);

  // ---- From agents

  // What was written on a stream; the stream ends when nobody is there, or does not want it.
  void Hear(const std::shared_ptr<AgentStream>& stream, const FromAgent& message);
  void Closed(const std::shared_ptr<AgentStream>& stream);
  // Up to here what that agent said is dealt with, which it may not have been told yet.
  std::uint64_t Handled(const std::string& node, std::uint64_t incarnation) const;
  // Calls `stored` when what was made of the file is durable; not, when nobody takes it or the
  // process ends before.
  Receipt ReceiveFile(JobId job, const ResultFile& file, std::function<void()> stored);
  // That was received, by this process or one before it. Null: for no id. One that is not there any
  // more, as for an order that comes late, is damaged.
  std::shared_ptr<const Checkpoint> FindCheckpoint(const std::string& id);

  // Of the right store.
  const std::map<JobId, job::JobRecord>& durable() const { return right_.jobs; }
  const std::map<std::string, job::NodeRecord>& durable_nodes() const { return right_.nodes; }
  bool idle() const { return !queue_ || queue_->lists() == 0; }
  // Its present or last process, by number.
  std::uint64_t life() const { return life_; }

 private:
  void Admit(const std::shared_ptr<AgentStream>& stream, const FromAgent& first);
  void Write(AgentStream& stream, const session::Outgoing<job::Action>& outgoing);
  void Handle(const job::Event& event, std::function<void()> done);
  void Take(job::Actions actions, std::function<void()> done);
  void CheckPlaces(const job::Actions& actions) const;
  void Flush();
  void Write(const job::WriteBatch& batch);
  void Keep(const job::WriteBatch& batch);
  void Keep(const job::JobRecord& record);
  void Keep(const job::NodeRecord& node);
  void Keep(const job::MemoryRecord& memory);
  void Keep(const job::PriorRecord& prior);
  void Perform(const job::Action& action);
  void WakeAt(Instant time);
  void Probe(const job::ProbeLink& probe);
  void Beat();

  const CoordinatorSurroundings around_;
  struct Disk {
    std::string server{};
    std::uint64_t epoch = 0;
    std::map<JobId, job::JobRecord> jobs{};
    std::map<std::string, job::NodeRecord> nodes{};
    std::map<JobId, job::MemoryRecord> memories{};
    std::map<std::string, job::PriorRecord> priors{};
    std::map<std::string, std::shared_ptr<const Checkpoint>> checkpoints{};  // by id
  };
  Disk& disk() { return wrong_ ? *wrong_ : right_; }

  Disk right_{.server = "right"};
  std::optional<Disk> wrong_;  // in its place

  // Of a write that is under way.
  struct Writing {
    const job::WriteBatch* batch = nullptr;
    Instant began{};
  };

  std::unique_ptr<job::Cluster> cluster_;  // null: it is not up
  std::optional<delivery::ActionQueue> queue_;
  std::optional<Writing> writing_;
  std::optional<Sessions> sessions_;
  std::set<JobId> accepted_;  // submitted to this process
  bool disk_full_ = false;
  bool refusing_ = false;
  std::optional<Instant> wake_;
  std::uint64_t life_ = 0;
};

}  // namespace tactus::simulator
