// What a round engine's members, who may each have parameters and an optimizer of their own, come
// to have alike: their mean.

#include <algorithm>

#include "agent/engine/round_engine.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;

// Also at the edge at which a plan came into force under which they do not: its first round aligns
// them.
bool RoundEngine::differ() const {
  const bool own = group_.synchronizer().traits().own_parameters;
  return group_.size() > 1 && (own || member_.parameters_differ);
}

// Waits, and returns when that was; nothing: the group was lost by it.
std::optional<Instant> RoundEngine::TakeMean(std::span<float> values) {
  const Completion completion = group_.Average(values);
  if (completion.progress != Progress::kFailed) return completion.at;
  LoseGroup(completion.reason);
  return std::nullopt;
}

// No round is under way, and all members know alike that they do this. What training ends with
// stays in place.
void RoundEngine::MeetAtMean() {
  const bool trains = outcome_ == Outcome::kTraining;
  const bool ends = outcome_ == Outcome::kFinished || outcome_ == Outcome::kSuspended;
  const bool due = trains && (validation_due_ || residuals_due_);
  if (!differ() || member_.at_mean || !(due || ends)) return;
  member_.KeepOwn();
  const std::optional<Instant> at = TakeMean(member_.parameters);
  if (at && trains) member_.MoveEdge(std::max(member_.edge, *at));
}

// A plan under which members differed was followed by one under which they do not: they go on from
// their mean.
bool RoundEngine::AlignParameters() {
  if (!member_.parameters_differ || synchronizer_->traits().own_parameters) return true;
  if (!TakeMean(member_.parameters)) return false;
  member_.parameters_differ = false;
  return true;
}

// Local steps gave each member momentum of its own; steps of the group need equal ones: their mean.
bool RoundEngine::AlignOptimizers() {
  if (!member_.optimizers_differ) return true;
  for (const std::span<float> state : member_.optimizer.State()) {
    if (!TakeMean(state)) return false;
  }
  member_.optimizer.GoOnFrom(member_.steps);
  member_.optimizers_differ = false;
  return true;
}

}  // namespace tactus::engine
