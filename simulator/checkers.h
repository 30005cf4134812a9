// What must hold in every simulation, checked as it happens.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/records.h"
#include "policies/plan.h"
#include "simulator/outcome.h"

namespace tactus::simulator {

// A group of a job, which each of its members is in once.
struct GroupKey {
  JobId job{};
  std::uint64_t generation = 0;
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

// Samples of one epoch, for a round.
struct UsedSamples {
  std::uint64_t round = 0;
  std::uint64_t epoch = 0;
  std::span<const std::uint64_t> indices{};
};

// That epochs are of a part of the samples, which is chosen anew now and then.
struct ChosenSamples {
  std::uint64_t of = 0;  // so many samples; 0: epochs are of all
};

// What a group would go on from.
struct WrittenCheckpoint {
  std::string id{};  // new
  std::uint64_t rounds = 0;
  bool of_end = false;  // training is over with these rounds
};

// A round as one member closed it.
struct ClosedRound {
  std::uint64_t round = 0;
  std::uint64_t epoch = 0;  // the first that was not used up before
  std::uint64_t plan_version = 0;
  // Of those after it; nothing: the next round was applied at once, and nobody saw them.
  std::optional<std::uint64_t> parameters_hash{};
};

// Collects the promises that were broken:
//
//   - members hold the same plan in every round, and bit-identical parameters after it
//   - every sample is used once an epoch by rounds that were applied, and rounds have consecutive
//     numbers, over all groups that go on from one another's checkpoints; where epochs are of
//     chosen samples, as many are used as an epoch has, and none twice in the first: rounds that
//     cross edges, maybe several, have samples of former choices in later ones
//   - a group that goes on where another was lost has some of its members, in their order, and
//     behind them who loaded beside it; it loses one round at most, and none where that was on
//     purpose; nothing is applied in the former one any more
//   - where nothing else is wrong, a group of which a worker is killed closes a round again within
//     its budget, and where no other job may want devices, with all the others in their processes
//   - generations of a job never go back, its revisions grow, a final state is final
//   - every state and every decision has a reason
//   - an attempt goes on from what one before it had done, and no further; a job that is not over
//     has lost no more attempts from one checkpoint than it may
//   - a group that is lost costs what it did since a checkpoint was last due, and the time that one
//     takes to be written and to arrive; when that of its end is on record, nothing
//   - logs and inboxes stay within their bounds
//   - a job fails only if something happened to its workers or hosts: whatever keeps the control
//     plane from hearing of them harms nothing
//   - a member that trains waits for its devices and its peers alone, and rounds go on while the
//     coordinator is away
//
// One thread.
class Checkers {
 public:
  // How long a disturbance shows after its end: who was away is found out, dials again, loads.
  static constexpr Duration kAftermath = Seconds(60);

  // `now` of each call is virtual time; it grows.

  // A group of `size` members trains on epochs of `train_samples` samples.
  void OnGroup(const GroupKey& key, std::size_t size, std::uint64_t train_samples,
               const ChosenSamples& chosen = {});
  // A member of it begins; the checkpoint that its process went on from, empty: from the beginning.
  // Where the record says that the group goes on after a loss, the rounds of the former one count.
  void OnBegun(const GroupKey& key, const std::string& checkpoint, Instant now);
  // Its first member copies a checkpoint.
  void OnCheckpoint(const GroupKey& key, const WrittenCheckpoint& checkpoint, Instant now);
  // The group copies one at the first edge after an interval, and it arrives later: `within` for
  // both.
  void OnCheckpointsDue(const GroupKey& key, Duration within);
  // The coordinator hears nothing, or keeps nothing, until then.
  void HoldUpCheckpoints(Instant until);
  // A member holds `plan` from its next round on.
  void OnPlan(const GroupKey& key, const policies::Plan& plan, Instant now);
  // A member used these samples in a round that it has not closed yet.
  void OnSamples(const GroupKey& key, const UsedSamples& samples);
  void OnRoundClosed(const GroupKey& key, const ClosedRound& closed, Instant now);
  // A member's parameters are not those of the others; they are again.
  void OnFlipped(const GroupKey& key);
  void OnRepaired(const GroupKey& key);
  // A member is disturbed on purpose, or the group is ending: rounds may stand still until then.
  void Excuse(const GroupKey& key, Instant until);
  void ExcuseAll(Instant until);

  // Something happened to a worker of the job, or it said itself that it failed; or to a host, and
  // so to jobs that have workers there, or are to.
  void OnHarm(JobId job) { harmed_.insert(job); }
  void OnHostHarmed(const std::string& host) { harmed_hosts_.insert(host); }

  // A worker that trains is killed, and others are left: `most` is what a group needs to go on, but
  // for its rounds.
  void OnKilled(JobId job, WorkerId worker, Duration most, Instant now);
  // Another one of that job before its next group trains, which delays that once more.
  void OnKilledBetweenGroups(JobId job, WorkerId worker, Instant now);
  // Until then a group, or those of the job, may go on later, or without somebody who lives.
  void Disturb(Instant until) { disturbed_until_ = std::max(disturbed_until_, until); }
  void Disturb(JobId job, Instant until);

  // The coordinator cannot be reached, or can be again.
  void OnCoordinatorAway(Instant now);
  void OnCoordinatorBack(Instant now);

  // What the coordinator did; `present` are the records as they were durable before.
  void OnActions(const job::Actions& actions, Instant now);
  // The record is durable.
  void OnStored(const job::JobRecord& record);
  // A coordinator that restarted has these durable records.
  void OnRestart(const std::map<JobId, job::JobRecord>& durable);

  // Something holds `size` entries of at most `bound`.
  void OnQueue(const char* what, std::size_t size, std::size_t bound, Instant now);

  void Break(std::string what, Instant now);

  std::vector<Violation> TakeViolations() { return std::move(violations_); }
  std::uint64_t violations_total() const { return total_; }

 private:
  struct Round {
    std::uint64_t plan_version = 0;
    std::optional<std::uint64_t> parameters_hash{};                 // of the first to have one
    std::size_t closed = 0;                                         // by so many members
    std::map<std::uint64_t, std::vector<std::uint64_t>> samples{};  // by epoch, until it is closed
  };
  struct Epoch {
    std::vector<bool> used{};  // by sample
    std::uint64_t count = 0;
  };
  // How far the rounds are that some member has closed: what a checkpoint holds.
  struct Progress {
    std::uint64_t rounds = 0;                 // up to this one
    std::uint64_t epoch = 0;                  // the first that is not used up
    std::map<std::uint64_t, Epoch> epochs{};  // from that one on
  };
  // Without rounds, after a kill.
  struct Gap {
    Instant since{};
    Duration most{};
  };
  struct Group {
    std::size_t size = 0;
    std::map<std::uint64_t, policies::Plan> plans{};  // by version
    std::map<std::uint64_t, Round> rounds{};          // open, or not closed by all
    bool flipped = false;                             // members are known to differ
    std::uint64_t train_samples = 0;
    ChosenSamples chosen{};
    std::optional<std::string> checkpoint{};  // that the first to begin went on from
    Progress progress{};
    Progress former{};  // one round before
    Instant begun{};
    std::optional<Duration> checkpoint_within{};
    std::map<std::string, Instant> copied{};  // checkpoints
    std::string end{};                        // the last of these, after training; empty: none
    bool end_stored = false;                  // and on record
    bool lost = false;
    bool continued = false;    // another one has begun where it was lost
    std::optional<Gap> gap{};  // until its first round
    Instant last_closed{};
    Duration longest_round{};  // under the newest plan
    Duration longest_ever{};
    Instant excused_until{};
    std::uint64_t rounds_closed = 0;  // by some member, under the newest plan
    std::uint64_t rounds_ever = 0;    // likewise, under all plans
  };
  struct Job {
    std::uint64_t generation = 0;
    std::uint64_t revision = 0;
    bool final = false;
    bool lost = false;    // its group
    bool wanted = false;  // since its group began another job has waited for devices
    std::uint32_t regroups = 0;
    std::uint32_t resizes = 0;
    std::vector<WorkerId> members{};
    std::vector<WorkerId> joiners{};
  };

  static Job AsRecorded(const job::JobRecord& record);
  void CommitSamples(Group& group, const GroupKey& key, const ClosedRound& closed, Instant now);
  void EndEpoch(Group& group, const GroupKey& key, Instant now);
  void OnRecord(const job::JobRecord& record, Instant now);
  void CheckAttempts(const job::JobRecord& record, Instant now);
  void CheckLoss(const job::JobRecord& record, Instant now);
  void CheckRegroup(const job::JobRecord& record, const Job& before, Instant now);
  // That a group goes on from.
  struct Regrouped {
    std::uint64_t rounds = 0;
    bool on_purpose = false;
    bool without_killed = false;  // none of its members was killed before
    bool with_newcomers = false;
  };
  void Continue(const GroupKey& key, const Regrouped& regrouped, Instant now);

  // Workers that were killed since the job's last round.
  struct Kill {
    Instant at{};  // of the last one
    Duration most{};
    std::set<WorkerId> workers{};
  };
  const Kill* KillOf(JobId job) const;
  void CheckSurvivors(const job::JobRecord& record, const Job& before, Instant now);
  Duration LongestBeside(JobId job, Instant since) const;
  void CheckGap(const GroupKey& key, Group& group, Instant now);

  std::map<GroupKey, Group> groups_;
  std::map<GroupKey, Regrouped> regroups_;
  std::map<std::string, Progress> checkpoints_;
  std::map<JobId, Job> jobs_;
  std::map<JobId, Kill> kills_;
  std::map<JobId, Instant> disturbed_jobs_;  // until then
  Instant disturbed_until_ = Instant::min();
  std::set<JobId> harmed_;
  std::set<std::string> harmed_hosts_;
  Instant excused_until_{};  // all of them
  Instant away_since_ = Instant::max();
  Instant held_up_until_ = Instant::min();
  std::vector<Violation> violations_;
  std::uint64_t total_ = 0;
};

}  // namespace tactus::simulator
