// What is known of a job, and who is told: its record, its rounds, its plans.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/job_deadlines.h"
#include "coordinator/job/joiners.h"
#include "coordinator/job/priors.h"
#include "coordinator/job/progress_tracker.h"
#include "coordinator/job/records.h"
#include "coordinator/job/steering.h"
#include "policies/compatibility.h"
#include "policies/loss_spikes.h"
#include "policies/planner.h"

namespace tactus::job {

// The time of one step, and where its actions go.
struct Turn {
  Instant now;
  Actions& actions;
};

// Keeps a job's record up to date, durable and published. It decides nothing about the job's life
// and speaks to no worker.
//
// Promises about the actions: a record is persisted before it is published; a plan is persisted
// before Decide, FormGroup or Regroup returns; progress is published at most every
// JobDeadlines::progress_publish. One thread.
class RecordKeeper {
 public:
  // policy: not null. priors: outlives it. wall_offset: turns an Instant into a WallTime, for
  // records only.
  RecordKeeper(JobRecord record, std::unique_ptr<policies::PlanPolicy> policy, Priors& priors,
               WallTime wall_offset, const JobDeadlines& deadlines);

  // Whoever changes it says so by Persist or Announce.
  JobRecord& record() { return record_; }
  const JobRecord& record() const { return record_; }

  // Another state. Requires: MayFollow.
  void Enter(JobState state, std::string reason);

  // Writes the record down.
  void Persist(Turn turn);
  // And tells users of it.
  void Announce(Turn turn);

  // ---- A group of workers, in this order

  // What a program says of itself takes the place of what its job's file says. The first choices
  // of that file that do not go together then; nothing: all do.
  std::optional<policies::Conflict> TakeFacts(const ProgramFacts& facts);

  // It is to load; what was known of the one before is forgotten, but not the progress.
  void BeginGroup(std::vector<MemberRecord> members, Instant now);

  // All have loaded: a new generation, announced with its first plan, which is returned.
  policies::Plan FormGroup(const policies::StartingGroup& group, const ReadyMessage& loaded,
                           const TransportRecord& transport, Turn turn);

  // A group that goes on where another was lost, or was left on purpose.
  struct Regrouping {
    std::vector<std::uint32_t> ranks{};  // that those who stay had in it, in order
    std::vector<Joiner> newcomers{};     // behind them; ready
    std::vector<LostMember> lost{};      // what each said of the one before, by its new rank
    std::string reason{};                // a clause
    bool resized = false;                // nobody was lost: others are in it on purpose
  };
  // It goes on in a new generation, announced with its first plan. Neither an attempt nor the time
  // that counts as trained ends with the one before. Requires: tracker()
  void Regroup(const Regrouping& regrouping, Turn turn);

  // These load beside the group, and no others. Durable with the next Persist.
  void SetJoiners(std::vector<MemberRecord> joiners);

  // The first report of any member came; RUNNING begins with that round.
  void BeginRunning(const policies::Report& first, Turn turn);

  // First of all after a restart: takes over what the planner had learned; empty: nothing was
  // kept. What cannot be taken over is told of and removed.
  void Recall(const std::string& memory, Turn turn);

  // In place of the three above: a group of before the coordinator's restart goes on.
  void ResumeGroup();

  // The group took a checkpoint on its way, and it is durable. False, and nothing is changed, where
  // the newest is as new, or what is said of it cannot be.
  bool NoteCheckpoint(const CheckpointedMessage& message, Instant now);

  // The newest checkpoint cannot be gone on from, for `reason`: the one before it takes its place,
  // where there is one. Returns what became of it, with the reason.
  std::string GiveUpCheckpoint(const std::string& reason);

  // The loss rose at a round, for `reason`: the newest checkpoint of before is the newest now, and
  // what was trained on since is passed over. False where there is none, or the job went back once;
  // the first time it is on record all the same.
  bool RollBack(const policies::LossSpike& spike, const std::string& reason, Instant now);

  // All that is kept of the group is durable: `checkpoint`, after `train_seconds` as the workers
  // count them. Requires: a suspension is on record.
  void Secure(const CheckpointRecord& checkpoint, double train_seconds, Instant now);
  bool Secured() const { return record_.suspension && record_.suspension->secured; }

  // The group fell apart for `reason`: the attempt is over, and what the group did since the
  // checkpoint is no part of the job any more. False, and nothing but the count is changed, where
  // no other attempt is due. excused: nobody counts.
  bool LoseGroup(const std::string& reason, bool excused, Instant now);

  // Until when the job rests before it is tried again; nothing: it does not.
  void Rest(std::optional<Instant> until);

  // The group is gone. Without a checkpoint the job starts from nothing again.
  void EndGroup();

  // Of more samples a pass ran out of memory, in this job or another of its kind, on a device as
  // this member's; 0: that is not known.
  std::uint32_t PassSamplesMax(const MemberRecord& member) const {
    return priors_.PassSamplesMax(record_.settings.kind, member);
  }

  // The present group's rounds; nothing: it is not formed, or there is none.
  const std::optional<ProgressTracker>& tracker() const { return tracker_; }

  // ---- Rounds and plans. Requires: tracker()

  // Folds a report in. True when a round is whole now, which is persisted.
  bool Add(const policies::Report& report, Turn turn);

  // By the round that Add made whole.
  const std::optional<policies::LossSpike>& spike() const { return spike_; }

  // A member may have repeated passes in pieces, which is remembered of its device.
  void NoteOutOfMemory(std::uint32_t rank, const ReportMessage& message, Turn turn) {
    tracker_->NoteRepeated(message.out_of_memory);
    priors_.BoundPasses(record_.settings.kind, record_.members[rank], message.pass_samples_max,
                        turn.actions);
  }

  // The same of a validation, which is persisted.
  void Add(const ValidatedMessage& message, Turn turn);

  // The next plan when one is due, for all workers.
  std::optional<policies::Plan> Decide(Turn turn);

  // The newest plan when some workers may not have it yet; null: all do.
  const policies::Plan* Travelling() const;

  // Tells those who watch, unless they were just told.
  void ShareProgress(Turn turn);

  // Why a decision cannot be taken back, a clause; empty: it can. Requires: tracker().
  std::string WhyNotReverted(const policies::Decision& decision) const;
  // It is to be, with the plan that is decided next. False, and nothing is changed, where the
  // request was heard before.
  bool Revert(const DecisionReverted& event);
  // The group as it was measured; nothing: it is not yet.
  std::optional<policies::MeasuredGroup> Measured() const { return steering_.Measured(); }

  // The user's changes. policy: of the new settings; null: they adapt as before.
  void Update(const JobUpdated& event, std::unique_ptr<policies::PlanPolicy> policy);

 private:
  void RefreshProgress(Instant now);
  std::optional<policies::Plan> PlanOfFormerGroup();
  policies::Plan PlanOfSurvivors(const std::vector<std::uint32_t>& ranks);
  TransportRecord TransportOfNext(const Regrouping& regrouping) const;
  void PublishFirst(const policies::Revision& first, Turn turn);
  std::optional<policies::Prior> PriorOfKind(Turn turn) const;
  std::optional<policies::Revision> NextPlan();
  void ForgetEnding();
  void SetCheckpoint(CheckpointRecord checkpoint, Instant now);
  using Encodings = std::vector<policies::Encoding>;
  void NoteGroup(std::uint64_t first_round, const TransportRecord& transport, Encodings encodings);
  // That all of the latest group know, beside dense.
  Encodings CommonEncodings() const;
  void PersistDecisions(const std::vector<policies::Decision>& decisions, Turn turn);
  void PersistMemory(Turn turn);
  void HandOn(Turn turn);
  WallTime WallAt(Instant now) const { return now.time_since_epoch().count() + wall_offset_; }

  Priors& priors_;
  const WallTime wall_offset_;
  const JobDeadlines deadlines_;
  JobRecord record_;
  Steering steering_;
  std::optional<ProgressTracker> tracker_;
  policies::LossSpikes spikes_;
  std::optional<policies::LossSpike> spike_;
  Instant persisted_{};               // last
  Instant remembered_{};              // likewise, what the planner has learned
  Instant handed_on_{};               // likewise, what the next job begins with
  std::optional<Instant> published_;  // the progress, last
};

}  // namespace tactus::job
