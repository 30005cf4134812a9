// The workers of a job's present group: who is there, what they said last, and what speaks for a
// failure.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/contact.h"
#include "coordinator/job/failure_inquiry.h"
#include "coordinator/job/joiners.h"
#include "coordinator/job/records.h"
#include "coordinator/job/result_collector.h"

namespace tactus::job {

// By rank, from the start of the workers to the exit of the last. A worker that is gone is sent
// nothing and never comes back. Failures are judged here and acted upon elsewhere. A group that
// goes on after a loss is the Next() one; the processes that are no members of it any more stay
// known, as `former` ones, until they are gone.
class Group {
 public:
  // No workers.
  Group() = default;

  // present: false after a restart of the coordinator, until a worker's node says that it runs.
  Group(std::vector<MemberRecord> members, bool present);

  // What was on record of its last words, and of who had lost it.
  void Restore(const EndingRecord& ending, const std::vector<LostMember>& lost);

  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  bool empty() const { return members_.empty(); }
  const std::vector<MemberRecord>& members() const { return members_; }
  ResultCollector& results() { return results_; }
  const ResultCollector& results() const { return results_; }

  // ---- Who is there

  std::optional<std::uint32_t> RankOf(WorkerId worker) const;
  // Whether a file of that worker is this group's. 0, of an agent that does not say whose it is:
  // where there is a group.
  bool Makes(WorkerId worker) const {
    return !empty() && (worker == WorkerId{} || RankOf(worker).has_value());
  }
  bool Live(std::uint32_t rank) const { return !workers_[rank].gone; }
  std::vector<std::uint32_t> LiveOn(const std::string& node) const;  // ranks, in order
  bool Present(std::uint32_t rank) const { return workers_[rank].present; }
  // Former members, too.
  bool AllGone() const;
  bool IsFormer(WorkerId worker) const { return former_.contains(worker); }
  std::vector<MemberRecord> formers() const;

  // The former members are gone: this one; those on a node but for whom `runs` says so.
  void LoseFormer(WorkerId worker) { former_.erase(worker); }
  void LoseFormerOn(const std::string& node, const std::function<bool(WorkerId)>& runs);

  // After a restart: its node says that it runs.
  void Return(std::uint32_t rank) { workers_[rank].present = true; }
  // After a restart: who is neither present nor has said its last word.
  std::vector<MemberRecord> Absent() const;

  // ---- Who is heard; being unheard makes nobody gone

  Contact& contact() { return contact_; }
  const Contact& contact() const { return contact_; }
  // A worker is here whose node is heard.
  bool AnyHeard() const;
  // What is still to come of the group's end, a last word or a file of rank 0's agent, would come
  // from a node that is not heard.
  bool EndAwaitsUnheard() const;
  // A last word, or a file of rank 0's agent, is still to come from the node.
  bool Owes(const std::string& node) const;

  // The worker had said its last word and is not there any more, and nothing of its is missing, or
  // its agent is the one that it was given to, which still has its files. Its exit was acknowledged
  // by a former coordinator, and does not come again.
  bool EndedWell(std::uint32_t rank, std::uint64_t incarnation) const;

  // They are gone; what that means for the job, Judge says.
  void Depart(const std::vector<std::uint32_t>& ranks, const Departure& departure);

  // ---- To the workers; to who is gone or not back yet, nothing

  void Send(std::uint32_t rank, ToWorker message, Actions& actions) const;
  void SendToAll(const ToWorker& message, Actions& actions) const;

  // Ends the process of one who is here, once.
  void End(std::uint32_t rank, Duration grace, Actions& actions);

  // Ends a process that was to join the group and is not in it: a former member until it is gone.
  void Dismiss(const MemberRecord& joiner, Duration grace, Actions& actions);

  // Ends all processes, each once, former ones too. Who has not come back after a restart, or is
  // not heard, is given up: if it ever is heard, it is a stray. Who is not heard is told all the
  // same, as the order to start may still be on its way.
  void Stop(Duration grace, Actions& actions);

  // The processes on a node that is given up unheard: it learns of it if it ever is heard.
  void StopOn(const std::string& node, Duration grace, Actions& actions);

  // ---- From the workers

  // A last word: whatever spoke for the worker's failure is withdrawn.
  void SetFinished(std::uint32_t rank, const FinishedMessage& message);

  // The verdict, once no better sign is to be waited for.
  std::optional<Finding> OnFailed(std::uint32_t rank, const FailedMessage& message, Instant now);
  std::optional<Finding> Judge(const std::vector<std::uint32_t>& ranks, const Departure& departure,
                               Instant now);

  // ---- It falls apart, and some go on

  // The member has lost its group, or left it as it was to, and stays.
  void SetLost(std::uint32_t rank, const GroupLostMessage& message, Instant now);
  const std::optional<GroupLostMessage>& Lost(std::uint32_t rank) const {
    return workers_[rank].lost;
  }
  std::vector<LostMember> lost() const;
  // What they said was of the group before this one, which has begun.
  void ForgetLost() {
    for (Worker& worker : workers_) worker.lost.reset();
  }
  // It had applied so many rounds. Requires: Lost(rank).
  void SetRounds(std::uint32_t rank, std::uint64_t rounds) { workers_[rank].lost->rounds = rounds; }

  // It is gone, given up, or failed, or has lost the group.
  bool Left(std::uint32_t rank) const {
    const Worker& worker = workers_[rank];
    return worker.gone || worker.out || worker.lost.has_value();
  }
  // All that it had to do is done: nothing speaks against it. Requires: rank 0 has finished.
  void Excuse(std::uint32_t rank);

  // Nobody waits for the member any more, for `reason`; its process may still run.
  void GiveUp(std::uint32_t rank, const std::string& reason, Instant now);

  // Ranks of those who may be in the next group: neither gone nor given up, nor did they fail or
  // end.
  std::vector<std::uint32_t> Staying() const;

  // The group of these ranks, in their order, who keep what is known of them, and behind them of
  // `newcomers`; `generation`: of this group. The others, if they live, are former members of it.
  Group Next(const std::vector<std::uint32_t>& ranks, const std::vector<Joiner>& newcomers,
             std::uint64_t generation) const;

  // Since when there are signs of a failure without a verdict; nothing: there are none.
  std::optional<Instant> SuspectSince() const;
  // The best of the signs. Requires: SuspectSince().
  Finding Verdict() const { return inquiry_.Best(); }

  // Whatever goes wrong with the workers from now on, or did, is no harm.
  void Acquit() { inquiry_ = {}; }

 private:
  struct Worker {
    bool present = true;
    bool gone = false;
    bool heard_out = false;  // gone, and its last words have come if it had any
    bool stop_sent = false;
    bool out = false;  // given up, or it failed
    std::optional<GroupLostMessage> lost{};
  };
  struct Former {
    MemberRecord member{};
    bool stop_sent = false;
  };

  bool Expected(std::uint32_t rank, const Departure& departure) const;
  std::optional<Finding> VerdictIfClear() const;

  std::vector<MemberRecord> members_;
  std::vector<Worker> workers_;  // as members_
  std::map<WorkerId, std::uint32_t> ranks_;
  std::map<WorkerId, Former> former_;  // that are not known to be gone
  Contact contact_;
  ResultCollector results_{0};
  FailureInquiry inquiry_;
};

}  // namespace tactus::job
