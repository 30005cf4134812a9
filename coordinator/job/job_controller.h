// One job's life: from the queue over its workers, rounds and plans to its result.
//
//   QUEUED      Start: STARTING; Cancel: CANCELLED; a user pauses: PAUSED
//   STARTING    first report: RUNNING; Cancel: CANCELLED; Suspend: SUSPENDING
//   RUNNING     a Finished, or Cancel: STOPPING; Suspend: SUSPENDING
//   SUSPENDING  its checkpoint is there and its workers are gone: PAUSED or QUEUED; a Finished that
//               is not suspended, or Cancel: STOPPING
//   PAUSED      a user resumes: QUEUED; Cancel: CANCELLED
//   STOPPING    all Finished and all files there: SUCCEEDED, after a Cancel CANCELLED
//   any         a member is lost, nothing moves or a deadline passes: FAILED, after a Cancel
//               CANCELLED
//
// STARTING is: StartWorker to each, Ready from all, Group to all, Endpoint from all, Peers to all.
// A group is whole or not at all: a job is queued again only when all workers of its last group are
// gone.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/failure_inquiry.h"
#include "coordinator/job/group_formation.h"
#include "coordinator/job/job_deadlines.h"
#include "coordinator/job/progress_tracker.h"
#include "coordinator/job/records.h"
#include "coordinator/job/result_collector.h"
#include "coordinator/job/steering.h"
#include "policies/planner.h"

namespace tactus::job {

// The time of one step, and where its actions go.
struct Turn {
  Instant now;
  Actions& actions;
};

// Everything about one job but its place in the queue and the devices, which are the cluster's.
//
// Promises about the actions: each change of state is persisted, then published, then acted upon; a
// plan is persisted before it is sent; a worker is sent nothing after it is gone; versions of plans
// are consecutive and one travels at a time; a final state is final. One thread.
class JobController {
 public:
  // policy: not null. wall_offset: turns an Instant into a WallTime, for records only.
  JobController(JobRecord record, std::unique_ptr<policies::PlanPolicy> policy,
                WallTime wall_offset, JobDeadlines deadlines = {});

  // ---- From the cluster

  // A new job enters the queue, for `reason`.
  void Submit(const std::string& reason, Turn turn);

  // Why it still waits in the queue; nothing when that is known. Requires: queued.
  void ExplainWait(const std::string& reason, Turn turn);

  // The job cannot be run at all: FAILED.
  void Reject(const std::string& reason, const std::string& field, Turn turn);

  // The job gets devices: the members by rank, with their workers' ids. Requires: queued, not
  // empty.
  void Start(std::vector<MemberRecord> members, Turn turn);

  // Takes the job up from the record that a former coordinator left. Queued, paused: nothing.
  // Starting: back into the queue; its workers are strays. Suspending: likewise where all that is
  // kept is durable. Else: awaits the members' return.
  void Restore(Turn turn);

  // Its workers are ended, with a checkpoint where they trained, and it goes on later. Nothing when
  // it has none or is ending. Joins a suspension under way.
  void Suspend(bool pause, const std::string& reason, Turn turn);

  // ---- Events

  void Cancel(const JobCancelled& event, Turn turn);
  void Pause(Turn turn);
  void Resume(Turn turn);
  // policy: of the new settings; null: they adapt as before.
  void Update(const JobUpdated& event, std::unique_ptr<policies::PlanPolicy> policy, Turn turn);
  void OnNodeJoined(const NodeJoined& event, Turn turn);
  void OnWorkerSaid(WorkerId worker, const FromWorker& message, Turn turn);
  void OnNodeLost(const NodeLost& event, Turn turn);
  void OnWorkerExited(const WorkerExited& event, Turn turn);
  void OnArtifactStored(const ArtifactRecord& artifact, Turn turn);
  void Tick(Turn turn);

  // ---- Questions

  const JobRecord& record() const { return record_; }
  // The worker is a member that is not known to be gone.
  bool HasLive(WorkerId worker) const;
  // Over, and all its workers are gone.
  bool Done() const;
  // Suspend can end its workers now.
  bool Movable() const;
  // Since when it trains with the present group; nothing while it does not.
  std::optional<Instant> TrainingSince() const;
  // When Tick is due next.
  std::optional<Instant> Deadline() const;

 private:
  // How a worker went.
  struct Departure {
    enum class Kind { kExited, kNodeLost, kAgentRestarted };
    Kind kind = Kind::kExited;
    int exit_code = 0;
    int signal = 0;        // 0: it exited
    std::string detail{};  // the log's tail, or why the node was given up
  };
  struct Member {
    bool present = true;  // false: after a restart, its node has not said yet that it runs
    bool gone = false;
    bool exited = false;  // gone, and its last words are heard
    bool stop_sent = false;
  };

  // job_controller.cc: the record, the workers, the deadlines
  void SetState(JobState state, std::string reason);
  void Persist(Turn turn);
  void Announce(Turn turn);
  void RefreshProgress(Instant now);
  void Send(std::uint32_t rank, ToWorker message, Turn turn);
  void SendToAll(const ToWorker& message, Turn turn);
  std::optional<std::uint32_t> RankOf(WorkerId worker) const;
  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  void Enlist(bool present);
  void OnDeadline(Turn turn);
  void OnStartDeadline(Turn turn);
  void OnStall(Turn turn);
  Duration StallLimit() const;

  // job_training.cc: the group, its rounds and plans
  void On(std::uint32_t rank, const ReadyMessage& message, Turn turn);
  void On(std::uint32_t rank, const EndpointMessage& message, Turn turn);
  void On(std::uint32_t rank, const ReportMessage& message, Turn turn);
  void FormGroup(Turn turn);
  // The group that forms, for the record.
  void NoteGroup(std::uint64_t first_round);
  void BeginRunning(const policies::Report& first, Turn turn);
  void ExpectReport(Instant now);
  void OnRoundDone(RoundRecord round, Turn turn);
  void DecidePlan(Turn turn);
  void Record(const std::vector<policies::Decision>& decisions, Turn turn);
  void ShareProgress(Turn turn);

  // job_ending.cc: results, cancels, failures
  void On(std::uint32_t rank, const EvaluatedMessage& message, Turn turn);
  void On(std::uint32_t rank, const FinishedMessage& message, Turn turn);
  void On(std::uint32_t rank, const FailedMessage& message, Turn turn);
  void TryFinish(Turn turn);
  void AskToStop(Turn turn);
  ResultRecord CheckpointResult() const;
  void Depart(const std::vector<std::uint32_t>& ranks, const Departure& departure, Turn turn);
  std::optional<Finding> Judge(std::uint32_t rank, const Departure& departure) const;
  Finding AgentRestarted(const MemberRecord& member) const;
  static Finding ExitFinding(const MemberRecord& member, const Departure& departure);
  void Suspect(Finding finding, Turn turn);
  void Conclude(Turn turn);
  void Fail(const std::string& reason, const std::string& field, Turn turn);
  void End(JobState state, std::string reason, Turn turn);
  void StopWorkers(Turn turn);

  // job_suspension.cc: ending a group so that the job goes on later
  void Secure(Turn turn);
  void BankElapsed();
  void LeaveIfGone(Turn turn);
  bool Secured() const { return record_.suspension && record_.suspension->secured; }

  // job_recovery.cc: after a restart
  void ResumeIfAllBack(Turn turn);
  void OnRejoinDeadline(Turn turn);

  const WallTime wall_offset_;
  const JobDeadlines deadlines_;
  JobRecord record_;
  Steering steering_;
  std::vector<Member> members_;  // by rank, as record_.members
  std::map<WorkerId, std::uint32_t> ranks_;
  std::optional<GroupFormation> formation_;  // while starting
  std::optional<ProgressTracker> tracker_;   // once the group was called together
  std::optional<ResultCollector> results_;   // while there are members
  FailureInquiry inquiry_;
  bool awaiting_return_ = false;           // after a restart
  std::optional<Instant> deadline_;        // of the present state; OnDeadline knows which
  Duration limit_{};                       // that deadline_ stands for, for people
  std::optional<Instant> training_since_;  // the present group's first report
  Instant heard_{};                        // the last report came
  bool stall_suspected_ = false;           // none came in time since
  std::optional<Instant> persisted_;
  std::optional<Instant> published_;  // the progress
};

}  // namespace tactus::job
