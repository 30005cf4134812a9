// Which of several signs of a failure is its cause.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"

namespace tactus::job {

// How well a sign explains a failure, worst first. A worker's death makes the collectives of all
// others fail, so what they say about it explains nothing, though it often comes first.
enum class Evidence {
  kConsequence,  // its group was lost under it
  kAbsence,      // it is not there any more, nobody knows why
  kExit,         // it exited without a word
  kNodeLost,     // from here on: cannot be a consequence of another member's end
  kSignal,
  kOwnWords,  // it said itself what is wrong
};

// One sign.
struct Finding {
  WorkerId worker{};
  Evidence evidence = Evidence::kConsequence;
  std::string reason{};  // a sentence for people
  std::string field{};   // of the job file, to blame; empty: none
};

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
