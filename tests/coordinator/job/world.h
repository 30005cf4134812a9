// A world of agents, workers and users that behaves at random, and holds the cluster to its
// promises.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"

namespace tactus::job {

// What a coordinator begins with.
struct TakenUp {
  std::vector<NodeRecord> nodes{};
  std::vector<MemoryRecord> memories{};
  std::vector<PriorRecord> priors{};
  std::vector<JobRecord> records{};
};

// Called with all that the cluster is given and answers; each may be empty.
struct WorldListener {
  std::function<void(const TakenUp& taken_up, Instant now, const Actions&)> on_start = {};
  std::function<void(const Event& event, Instant now, const Actions&)> on_step = {};
};

// Everything follows from the seed. Checks are gtest expectations. The invariants:
//   - a device has one running worker at most; a worker's id is never used again;
//   - workers are started only on devices of connected nodes that are well, spoken to only where
//     they run;
//   - revisions grow, a job is persisted before it is published, final states are final;
//   - versions of plans are consecutive; a new one is sent only when all members have reported a
//     round under the one before;
//   - workers that lose their group, or leave it as they were asked to, of every other job, go on
//     in the next one, in their order and before those who join, from the rounds of the most
//     advanced;
//   - a job that lost its group goes on from its checkpoint, not before its rest is over, and not
//     more often than it may; the history has each round of the state that counts once.
class World {
 public:
  // How often the rarer things happened, so that a test can see that they do.
  struct Tally {
    int succeeded = 0;
    int failed = 0;
    int cancelled_with_result = 0;
    int plans_adopted = 0;
    int plans_resent = 0;
    int resumed = 0;
    int strays = 0;
    int suspended = 0;  // with a checkpoint
    int paused = 0;
    int drained = 0;
    int forgotten = 0;  // nodes
    int faults = 0;
    int grown = 0;  // a group with more members than the one before
    int shrunk = 0;
    int retried = 0;
    int retried_from_checkpoint = 0;
    int given_up = 0;    // after a retry
    int missed = 0;      // nodes that were not heard any more
    int resurfaced = 0;  // workers that train when their node is heard again
    int left = 0;        // nodes that said so beforehand
    int stood = 0;       // answers to where a worker stands
    int reverted = 0;    // decisions
    int excused = 0;     // groups that such a node left before they had ended
    int regrouped = 0;   // groups of those whom a loss left
    int again = 0;       // of these, with all of the members of before
    int joined = 0;      // workers that a group took in while it trained
    int parted = 0;      // that it went on without, on purpose
    int unjoined = 0;    // that were started to join, and did not
  };

  World(std::uint64_t seed, Tally& tally, WorldListener listener = {});

  // Something happens.
  void Step();

  // All agents return, all jobs are cancelled, all workers obey: nothing may be left.
  void Drain();

 private:
  enum class Stage { kLoading, kWaiting, kMeeting, kWaitingForPeers, kTraining, kLost, kFinished };

  struct Worker {
    JobId job;
    std::string node;
    std::string device;
    Stage stage = Stage::kLoading;
    std::uint64_t generation = 0;
    std::uint32_t rank = 0;
    std::uint64_t offered = 0;  // newest plan it holds
    std::uint64_t next_round = 0;
    std::uint64_t awaits = 0;  // the round that its next group begins with
    std::uint64_t told = 0;    // rounds that the next group was told to be its own
    std::uint64_t left = 0;    // the group that it has still to say it lost, for another; 0: none
    double speed = 100;
    bool told_to_end = false;
    bool looked_at = false;  // and has not said where it stands
  };
  struct Agent {
    int devices = 1;
    bool connected = false;
    bool fresh = true;              // a new incarnation since the coordinator last saw it
    bool known = false;             // to this coordinator, which numbers what it says to it
    std::vector<Action> waiting{};  // said to it while it was not heard
    std::map<std::string, std::string> faults{};  // reasons by device
    std::optional<Leave> leave{};
  };
  struct Group {
    std::uint64_t generation = 0;
    std::vector<WorkerId> members;                          // by rank
    std::map<std::uint64_t, policies::Plan> plans;          // by version
    std::map<std::uint64_t, std::uint64_t> round_versions;  // plan that a round ran under
    std::map<WorkerId, std::uint64_t> reported;             // newest plan reported under
    std::uint64_t newest = 0;
    std::optional<std::uint64_t> stop_round;
    bool regroup = false;  // it is all that is asked for
    bool natural = false;  // a stop condition holds there: nobody asked
    bool suspend = false;  // as last asked for
    bool broken = false;   // a connection between its members
    std::set<WorkerId> finished;
  };

  void Give(const Event& event);
  void Restart();
  void Apply(const Actions& actions);
  void Check(const PersistJob& action);
  void Check(const PublishJob& action);
  void Check(const StartWorker& action);
  void Check(const SendToWorker& action);
  void Check(const StopWorker& action);
  void Check(const LookAtWorker& action);
  void Check(const ProbeLink& action);
  void Check(const PersistRound& action);
  void Check(const ForgetRounds& action);
  void CheckRegroup(const JobRecord& record, const JobRecord& before);
  void CheckAttempts(const JobRecord& record, const JobRecord* before);
  bool Waits(const auto& action);
  void Check(const PersistNode& action) { marks_[action.node.name] = action.node; }
  void Check(const PersistValidation&) {}
  void Check(const PersistDecision& action);
  void Check(const PersistMemory& action);
  void Check(const PersistPrior& action);
  void Check(const PublishRelearning& action);
  void Check(const PublishProgress& action);
  void Check(const PublishDecision&) {}
  void Check(const PublishSnapshot&) {}
  void Check(const WakeAt& action);
  void Receive(WorkerId id, Worker& worker, const GroupMessage& message);
  void Receive(WorkerId id, Worker& worker, const PeersMessage& message);
  void Receive(WorkerId id, Worker& worker, const policies::Plan& plan);
  void Receive(WorkerId id, Worker& worker, const StopMessage& message);

  void Submit();
  void Cancel();
  void Pause();
  void Update();
  void Revert();
  void Mark();
  void Forget(const std::string& name);
  void BreakOrMend();
  void Join();
  void Join(const std::string& name);
  void LoseOrKillAgent();
  void LeaveOrGo();
  void Suspend(const std::string& node);
  void MoveWorker();
  void Advance(WorkerId id, Worker& worker);
  void BreakGroup(const Worker& worker);
  bool LosesGroup(const Worker& worker);
  void LoseGroup(WorkerId id, Worker& worker);
  void LeaveGroup(WorkerId id, Worker& worker);
  // It goes on in another group.
  static bool Survives(const Worker& worker) { return worker.job.value % 2 == 0; }
  void SayReport(WorkerId id, Worker& worker);
  void Finish(WorkerId id, Worker& worker);
  void Exit(WorkerId id, int exit_code, int signal);
  void SayNonsense();
  void StoreFile();
  void Tick();
  std::uint64_t VersionOf(Group& group, std::uint64_t round);
  std::optional<WorkerId> AnyReachable();

  Tally& tally_;
  const WorldListener listener_;
  Rng rng_;
  std::vector<std::pair<JobId, policies::Decision>> decided_;  // of all jobs, as it came
  double seconds_ = 0;
  std::unique_ptr<Cluster> cluster_;
  std::map<JobId, JobRecord> store_;  // as last persisted
  std::map<JobId, MemoryRecord> memories_;
  std::map<std::string, PriorRecord> priors_;
  std::map<std::string, NodeRecord> marks_;
  std::map<JobId, std::size_t> sizes_;          // of a job's last group
  std::map<JobId, std::uint64_t> next_rounds_;  // of a job's history
  std::map<JobId, double> rests_until_;
  std::map<std::string, Agent> agents_;
  std::map<WorkerId, Worker> workers_;  // processes that run
  std::set<WorkerId> ids_;              // ever used
  std::map<JobId, Group> groups_;
  std::vector<LinkProbed> probes_;  // that are under way, as they will come
  std::optional<Instant> wake_;
  std::uint64_t last_job_ = 0;
};

}  // namespace tactus::job
