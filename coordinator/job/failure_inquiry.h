// Which of several signs of a failure is its cause, and what each of them says.

#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// How well a sign explains a failure, worst first. A worker's death makes the collectives of all
// others fail, so what they say about it explains nothing, though it often comes first.
enum class Evidence {
  kConsequence,  // its group was lost under it
  kAbsence,      // it is not there any more, nobody knows why
  kExit,         // it exited without a word
  kNodeLost,     // from here on: cannot be a consequence of another member's end
  kSignal,
  kSuspicion,  // it was ended because the others waited for it in vain; of its exit, the cause
  kOwnWords,   // it said itself what is wrong
};

// One sign.
struct Finding {
  WorkerId worker{};
  Evidence evidence = Evidence::kConsequence;
  std::string reason{};  // a sentence for people
  std::string field{};   // of the job file, to blame; empty: none
  // The job's own words: it would go so again, wherever it is tried. Else something was lost.
  bool own = false;
};

// An agent is a new process, so its workers are gone.
struct AgentRestarted {
  bool awaited = false;  // the coordinator had restarted, too, and waited for it
};
// How a worker went. NodeLost also stands for a node that was unheard for too long.
using Departure = std::variant<WorkerExited, NodeLost, AgentRestarted>;

// What it says of a job's failure when a member went before it had finished, or said that it
// failed, or that its group did.
Finding FindingOf(const MemberRecord& member, const Departure& departure);
Finding FindingOf(const MemberRecord& member, const FailedMessage& message);
Finding FindingOf(const MemberRecord& member, const GroupLostMessage& message);

// Gathers findings from the first one on; the job gives the verdict when one is conclusive or the
// time for better ones is up.
class FailureInquiry {
 public:
  void Add(Finding finding, Instant now);

  // The worker turned out well after all.
  void Withdraw(WorkerId worker);

  bool open() const { return !findings_.empty(); }
  // The worker itself said that it failed.
  bool Heard(WorkerId worker) const;

  // A finding is there that needs no better one.
  bool Conclusive() const;

  // The best evidence, the earliest of equals. Requires: open.
  const Finding& Best() const;

  Instant opened() const { return opened_; }  // requires: open

 private:
  std::vector<Finding>
      findings_{};  // in order of arrival, at most one a worker and kind of evidence
  Instant opened_{};
};

}  // namespace tactus::job
