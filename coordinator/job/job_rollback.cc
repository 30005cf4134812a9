// The part of JobController that goes back where the loss has risen as nothing explains.
//
// By what the checkpoint of before has, as after a loss; but no attempt counts as failed, and the
// samples since are passed over, as some of them may have brought it about. Once: what comes back
// without them is not of the data, and is its user's to judge.

#include <string>

#include "coordinator/job/job_controller.h"
#include "policies/figures.h"

namespace tactus::job {

void JobController::GoBack(Turn turn) {
  if (!In<phase::Training>() || state() != JobState::kRunning) return;
  const policies::LossSpike spike = *keeper_.spike();
  const std::string reason = "the training loss rose from " + policies::Figure(spike.before) +
                             " to " + policies::Figure(spike.after) + " at round " +
                             std::to_string(spike.round) + ", which no change of the plan explains";
  const bool first = !record().rollback;
  if (!keeper_.RollBack(spike, reason, turn.now)) {
    if (first) keeper_.Announce(turn);
    return Steer(turn);
  }
  went_back_ = true;
  Lose(reason + "; " + std::to_string(record().rollback->skip_samples) + " samples are passed over",
       turn, false);
}

}  // namespace tactus::job
