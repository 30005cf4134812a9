// One job's life: from the queue over its workers, rounds and plans to its result.
//
//   QUEUED      Start: STARTING; Cancel: CANCELLED; a user pauses: PAUSED
//   STARTING    first report: RUNNING; a Finished before it: STOPPING; Cancel: CANCELLED; Suspend:
//               SUSPENDING; the coordinator restarts: QUEUED
//   RUNNING     a Finished, or Cancel: STOPPING; Suspend, or a Finished that is suspended:
//               SUSPENDING
//   SUSPENDING  its checkpoint is there, or its group is lost, and its workers are gone: PAUSED or
//               QUEUED; a Finished that is not suspended, or Cancel: STOPPING
//   PAUSED      a user resumes: QUEUED; Cancel: CANCELLED
//   STOPPING    all Finished and all files there: SUCCEEDED, after a Cancel CANCELLED
//   RUNNING     workers join the group, or leave it, or are spare beside it, without a stop: see
//               job_resize.cc
//   any         a member is lost: the others go on in the next group, in the same state; see
//               job_regroup.cc. Where none can, nothing moves or a deadline passes: SUSPENDING, to
//               be tried again from the last checkpoint; after attempts.h's last attempt FAILED,
//               after a Cancel CANCELLED
//   any         the job's own words speak against it: FAILED, after a Cancel CANCELLED
//
// A member whose node is not heard is not lost: see contact.h. It is taken to be after
// JobDeadlines::silence without a newer round, where others of the group are heard while it trains;
// where nobody is heard who could tell, after the job's hold, and other deadlines stand still.
//
// Members whose node is leaving leave their group, and the others go on; where these are too few,
// the job is suspended. What is not through when the node is gone is lost, which is no failed
// attempt: it was said in time.
//
// MayFollow of records.h is this table; job_phase.h says what is waited for in each of them.
//
// STARTING is: StartWorker to each, Ready from all, Group to all, Endpoint from all, Peers to all.
// A group is whole or not at all: a job is queued again only when all workers of its last group,
// and those that it lost, are gone.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/failure_inquiry.h"
#include "coordinator/job/group.h"
#include "coordinator/job/group_formation.h"
#include "coordinator/job/job_deadlines.h"
#include "coordinator/job/job_phase.h"
#include "coordinator/job/joiners.h"
#include "coordinator/job/priors.h"
#include "coordinator/job/record_keeper.h"
#include "coordinator/job/records.h"
#include "policies/planner.h"

namespace tactus::job {

// Everything about one job but its place in the queue and the devices, which are the cluster's.
//
// Promises about the actions: each change of state is persisted, then published, then acted upon; a
// plan is persisted before it is sent; a worker is sent nothing after it is gone; versions of plans
// are consecutive and one travels at a time; a final state is final. One thread.
class JobController {
 public:
  // policy: not null. priors: outlives it. wall_offset: turns an Instant into a WallTime, for
  // records only.
  JobController(JobRecord record, std::unique_ptr<policies::PlanPolicy> policy, Priors& priors,
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

  // Takes the job up from the record that a former coordinator left, and its planner from what it
  // had learned; empty: nothing. Queued, paused: that is all.
  // Starting: back into the queue; its workers are strays. Suspending: likewise where all that is
  // kept is durable. Else: awaits the members' return.
  void Restore(const std::string& memory, Turn turn);

  // Its workers are ended, with a checkpoint where they trained, and it goes on later. Nothing when
  // it has none or is ending. Joins a suspension under way.
  void Suspend(bool pause, const std::string& reason, Turn turn);

  // More workers are started beside the group, which takes them in when they are ready. Requires:
  // GrowsFrom().
  void Grow(const std::vector<MemberRecord>& members, Turn turn);

  // The group goes on without these workers, which are ended. Where the job does not train, or too
  // few would be left, it is suspended.
  void GiveBack(const std::vector<WorkerId>& workers, const std::string& reason, Turn turn);

  // ---- Events

  void Change(const JobCancelled& event, Turn turn);
  void Change(const JobPaused& event, Turn turn);
  void Change(const JobResumed& event, Turn turn);
  void Change(const DecisionReverted& event, Turn turn);
  // policy: of the new settings; null: they adapt as before.
  void Update(const JobUpdated& event, std::unique_ptr<policies::PlanPolicy> policy, Turn turn);
  void OnNodeJoined(const NodeJoined& event, Turn turn);
  void OnWorkerSaid(WorkerId worker, const FromWorker& message, Turn turn);
  void OnNodeUnreachable(const NodeUnreachable& event, Turn turn);
  void OnNodeLost(const NodeLost& event, Turn turn);
  void OnNodeLeaving(const NodeLeaving& event, Turn turn);
  void OnWorkerExited(const WorkerExited& event, Turn turn);
  void OnUpload(const std::string& node, Turn turn);  // empty: its agent did not say of which
  // The others of the group go on without these, and they end; nothing where they could not.
  void LeaveOut(const std::vector<MemberRecord>& members, const std::string& reason, Turn turn);
  void OnArtifactStored(const ArtifactStored& event, Turn turn);
  void Tick(Turn turn);

  // ---- Questions

  const JobRecord& record() const { return keeper_.record(); }
  // The worker is a member that is not known to be gone, or is to be one.
  bool HasMember(WorkerId worker) const;
  // Or was one of a former group, and is not known to be gone: it has its device still.
  bool HasLive(WorkerId worker) const;
  // Over, and all its workers are gone.
  bool Done() const;
  // Its workers load, and its group has no plan yet.
  bool Loads() const;
  // Suspend can end its workers now, or GiveBack some of them.
  bool Movable() const;
  // GiveBack goes without a stop now, but for the number that is left.
  bool Shrinks() const { return In<phase::Training>() && Movable() && !OfMeshes(); }
  // Grow goes without a stop, at whatever time; so not for groups of before that was on record.
  bool GrowsInPlace() const { return record().loaded.parameters > 0 && !OfMeshes(); }
  // From when on Grow may be called; nothing: not now.
  std::optional<Instant> GrowsFrom() const;
  // Whose devices the job keeps: members, then who is to be one.
  std::vector<MemberRecord> Keeps() const;
  // Whose devices it is giving back, one by one.
  std::vector<MemberRecord> GivesBack() const;
  // Why DecisionReverted would do nothing, a clause; empty: the decision can be taken back.
  std::string WhyNotReverted(const policies::Decision& decision) const;
  // The group as it was measured; nothing: there is none, or it is not measured yet.
  std::optional<policies::MeasuredGroup> Measured() const;
  // From when on a change of the group's size is worth a checkpoint and a start; nothing while it
  // does not train. The later, the more members were lost: who grows onto a device that keeps
  // failing would be restarted for each of its failures.
  std::optional<Instant> SteadyFrom() const;
  // When Tick is due next.
  std::optional<Instant> Deadline() const;
  // Until when it rests in the queue before it is tried again; nothing: it does not.
  std::optional<Instant> RestsUntil() const;

 private:
  // Of a node that is leaving.
  struct Leaver {
    std::string reason{};
    Instant gone_by{};
  };

  template <typename OnePhase>
  bool In() const {
    return std::holds_alternative<OnePhase>(phase_);
  }
  std::optional<Instant> VerdictDue() const;
  // Several members make one replica, which lives or is lost as a whole.
  bool OfMeshes() const { return record().settings.mesh_devices > 1; }
  JobState state() const { return record().state; }
  std::uint32_t size() const { return group_.size(); }

  // ---- The group forms and trains
  void On(std::uint32_t rank, const ReadyMessage& message, Turn turn);
  void On(std::uint32_t rank, const EndpointMessage& message, Turn turn);
  void On(std::uint32_t rank, const ReportMessage& message, Turn turn);
  void On(std::uint32_t rank, const CheckpointedMessage& message, Turn turn);
  void On(std::uint32_t rank, const StandingMessage& message, Turn turn);
  void FormGroup(GroupFormation& formation, Turn turn);
  void SendGroup(Turn turn);
  void Steer(Turn turn);
  phase::Training TrainingFrom(Instant now) const;
  Duration Rounds(const RoundMultiple& multiple) const;

  // ---- Members that are not heard
  bool Holds() const;
  void NoteHold(Instant now);
  std::optional<Duration> Patience() const;
  std::string TrainingWords() const;
  void TellTraining(Turn turn);
  void RepeatTo(const std::vector<std::uint32_t>& ranks, Turn turn);
  void StartElsewhere(Turn turn);
  void LoseUnheard(Turn turn);

  // ---- Members that close no round
  void LookAtAll(Turn turn);
  std::string StandstillWords() const;

  // ---- Members whose node is leaving
  const std::pair<const std::string, Leaver>* FirstLeaver() const;

  // ---- The group changes while it trains
  void OnJoinerSaid(WorkerId worker, const FromWorker& message, Turn turn);
  void GiveUpJoiner(WorkerId worker, const std::string& reason, Turn turn);
  void LoseJoiners(const std::vector<WorkerId>& workers, const Departure& departure, Turn turn);
  std::vector<WorkerId> JoinersOn(const std::string& node) const;
  void NoteJoinFailure(const std::string& reason, Turn turn);
  void NoteJoiners(Turn turn);
  void DismissJoiners(Turn turn);
  std::string JoinerWords() const;
  bool ChangesInPlace() const;
  std::vector<std::uint32_t> Remaining() const;
  std::vector<std::uint32_t> GoingOn() const;
  bool EnoughRemain() const;
  std::size_t Room() const;
  std::vector<std::uint32_t> Outpaced() const;
  std::optional<Instant> ComparesFrom() const;
  Joiner SpareOf(std::uint32_t rank) const;
  void TrimSpares(Turn turn);
  void AskToRegroup(Turn turn);
  StopMessage RegroupOrder() const;
  std::string ChangeWords() const;
  bool LeftOnPurpose() const;
  void GoOnChanging(Turn turn);
  void LookAtJoiners(Turn turn);
  std::optional<Instant> JoinersDue() const;

  // ---- The group falls apart, and those who stay go on
  void On(std::uint32_t rank, const GroupLostMessage& message, Turn turn);
  bool Regroups() const;
  std::vector<std::uint32_t> WholeReplicas() const;
  void TakeWord(Turn turn);
  void TakeNoneWhole(Turn turn);
  void Correct(std::uint32_t rank, const GroupLostMessage& message, Turn turn);
  void Regroup(Turn turn);
  void BeginRegrouping(Turn turn);
  bool WasFormed() const;
  void NoteMet();
  void FormNext(Turn turn);
  std::string LossWords() const;
  std::vector<std::uint32_t> Unspoken() const;
  void LeaveOutBlamed(Turn turn);
  void LeaveOutNewcomers(Turn turn);
  std::uint64_t MostRounds() const;
  bool AnyHasState(const std::vector<std::uint32_t>& ranks) const;
  void ForgetWhoLeft();
  std::uint32_t Slower(std::uint32_t one, std::uint32_t other) const;
  double SpeedOf(std::uint32_t rank) const;
  void GiveUp(std::uint32_t rank, const std::string& reason, Duration grace, Turn turn);
  std::optional<std::string> GiveUpStill(const Standstill& standstill, const std::string& words,
                                         Turn turn);
  bool Met() const;
  void GoOnRegrouped(Turn turn);
  void EndOrRegroup(Turn turn);
  void ExcuseWhoLeft(Turn turn);
  void RepeatGroup(Turn turn);
  void GiveTimeToSpeak(Instant now);

  // ---- The loss rises
  void GoBack(Turn turn);

  // ---- Members that held wrong parameters
  void On(std::uint32_t rank, const DifferedMessage& message, Turn turn);

  // ---- The part of the samples that is trained on
  void On(std::uint32_t rank, const SelectedMessage& message, Turn turn);

  // ---- After a restart
  void AwaitReturn(Instant now);
  void ResumeIfAllBack(Turn turn);

  // ---- It ends, or is suspended
  void On(std::uint32_t rank, const ValidatedMessage& message, Turn turn);
  void On(std::uint32_t rank, const EvaluatedMessage& message, Turn turn);
  void On(std::uint32_t rank, const FinishedMessage& message, Turn turn);
  void AskToStop(Turn turn);
  StopMessage StopOrder() const;
  bool AskedToStop() const;
  std::string EndingWords() const;
  Duration CancelLimit() const;
  void AwaitEnd(Duration limit, Turn turn);
  void TryFinish(Turn turn);
  void Succeed(Turn turn);
  bool AllThere() const;
  void NoteExit(const std::vector<std::uint32_t>& ranks, const Departure& departure);
  void Secure(Turn turn);
  void LeaveIfGone(Turn turn);
  void GoOnLater(Turn turn);
  void Rest(Turn turn);

  // ---- It fails
  void On(std::uint32_t rank, const FailedMessage& message, Turn turn);
  void Depart(const std::vector<std::uint32_t>& ranks, const Departure& departure, Turn turn);
  void Conclude(const Finding& verdict, Turn turn);
  void Lose(const std::string& reason, Turn turn, bool counts = true);
  void Fail(const std::string& reason, const std::string& field, Turn turn);
  void End(JobState state, std::string reason, Turn turn);
  void StopWorkers(Turn turn);

  // ---- The phase's deadline has passed. Returns why its group is lost; nothing: it is not.
  std::optional<std::string> Overdue(const phase::Idle& idle, Turn turn);
  std::optional<std::string> Overdue(const phase::Starting& starting, Turn turn);
  std::optional<std::string> Overdue(const phase::Returning& returning, Turn turn);
  std::optional<std::string> Overdue(phase::Training& training, Turn turn);
  std::optional<std::string> Overdue(const phase::Ending& ending, Turn turn);
  std::optional<std::string> Overdue(phase::Regrouping& regrouping, Turn turn);
  void See(std::uint32_t rank, const StandingMessage& standing, phase::Regrouping& regrouping,
           Instant now) const;
  bool Excused(std::uint32_t rank, phase::Regrouping& regrouping, Turn turn);
  std::optional<std::string> Overdue(const phase::Leaving& leaving, Turn turn);

  const JobDeadlines deadlines_;
  RecordKeeper keeper_;
  Phase phase_;
  std::optional<Instant> held_since_;      // set while Holds()
  std::map<std::string, Leaver> leavers_;  // of the group's nodes
  Group group_;                            // until all of its workers are gone
  // Of programs whose training is over:
  std::optional<Instant> programs_end_by_;  // when they are ended
  std::string failed_behind_;               // how the first failed that did, a clause
  bool went_back_ = false;                  // by GoBack, and is on its way
  int regroups_in_vain_ = 0;                // of the same members in a row, since the last round
  // While it trains, or regroups to train on:
  Joiners joiners_;
  std::uint32_t joins_failed_ = 0;  // workers that did not come to join, of this coordinator
  std::string join_failure_;        // why the last one did not, until others are started
  std::map<WorkerId, std::string> leaving_;  // members that are to leave, and why
  bool asked_to_regroup_ = false;            // the present group was
  Instant compared_{};                       // spares with members, the last time
};

}  // namespace tactus::job
