// The end that somebody asked for: what this member wants, how it votes, and what came of it.

#pragma once

#include <string>

#include "agent/engine/combine/lanes.h"
#include "base/time.h"

namespace tactus::engine {

enum class Outcome {
  kTraining,   // it goes on
  kFinished,   // a stop condition holds, or asked to; parameters are equal on all members
  kDiscarded,  // asked to stop and to leave no result
  kSuspended,  // asked to stop and to go on later, from State(), in another group
  kRegrouped,  // asked to go on in another group, from where it is
  kGroupLost,  // a collective failed; parameters are those of the last applied round
  kDiverged,   // too many non-finite gradients in a row
};

// What those who ask for an end want.
enum class StopKind {
  kFinish,   // the result
  kDiscard,  // nothing
  kSuspend,  // to go on later
  kRegroup,  // to go on in another group at once
};

// What a round's votes and the stop conditions came to; the same outcome on all members.
struct Verdict {
  Outcome outcome = Outcome::kTraining;
  std::string reason{};  // for a person; empty while it goes on
};

// Why a job ends whose time is up.
std::string TimeIsUpWords(Duration limit);

// One member's request to stop. A later one of another kind takes the place of the former, but a
// suspension only that of a regroup, and a regroup that of nothing: who ends the job does not want
// it to go on, and a node that is leaving does not know what else was asked for.
class StopVote {
 public:
  void Request(std::string reason, StopKind kind);

  // This member's clock says that the job's time is up: it asks to finish, unless something that
  // ends the job was asked for already.
  void TimeIsUp(Duration limit);

  // Another group has met: who asked for one has it, and no vote has ended this one.
  void Regrouped();

  // Whether this member wants an end.
  bool wanted() const { return wanted_; }

  // The votes that a round carries.
  void Cast(Lanes& lanes) const;

  // What follows from all members' votes. condition: why training ends anyway, or empty. A discard
  // wins, then a finish, as which the condition counts, then a suspension; a regroup takes all who
  // voted.
  Verdict Decide(const std::string& condition, const Lanes& lanes);

  // Of the verdict: whether votes ended it, not a condition; and whether a person's did, as far as
  // this member knows: who has not the clock takes the time that is up for a request.
  bool decided() const { return decided_; }
  bool asked() const { return decided_ && !time_is_up_; }

 private:
  bool wanted_ = false;
  StopKind kind_ = StopKind::kFinish;  // of what is wanted
  std::string reason_;
  bool time_is_up_ = false;  // which made this member ask
  bool decided_ = false;
};

}  // namespace tactus::engine
