// What each member of a round engine's group has of its own, and what of it comes to rank 0, where
// it is saved: residuals, and parts of an optimizer's state that is cut up.

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/engine/residual_talks.h"
#include "agent/engine/round_engine.h"
#include "agent/engine/shard_talks.h"
#include "base/check.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;

void RoundEngine::CopyState(EngineState& state) {
  TACTUS_CHECK(at_edge());
  member_.CopyState(state);
  if (!gathered_state_.empty()) state.optimizer = gathered_state_;
}

EngineState RoundEngine::State() {
  EngineState state;
  CopyState(state);
  return state;
}

bool RoundEngine::residuals_at_hand() const {
  if (shards_apart() && !state_gathered_) return false;
  if (gather_parts_ && !parts_gathered_) return false;
  if (differ() && !member_.at_mean) return false;
  return group_.size() == 1 || !gathered_.empty() || member_.encodings.Residuals().empty();
}

std::vector<Residuals> RoundEngine::TakeResiduals() {
  TACTUS_CHECK(at_edge());
  if (group_.size() > 1) return std::exchange(gathered_, {});
  Residuals own;
  member_.encodings.CopyResiduals(own);
  member_.device.Synchronize();
  if (own.empty()) return {};
  return {std::move(own)};
}

// No round is under way, and all members know alike that they do this.
void RoundEngine::PassResiduals() {
  const bool trains = outcome_ == Outcome::kTraining;
  const bool gathers = outcome_ == Outcome::kSuspended || (trains && residuals_due_);
  const bool hands_over = outcome_ == Outcome::kRegrouped;
  if (!gathers && !hands_over) return;
  residuals_due_ = residuals_wanted_ = false;
  if (group_.size() == 1) return;
  Completion completion{.at = member_.edge};
  if (shards_apart() && hands_over) completion = HandOverShards();
  if (shards_apart() && trains) {
    completion = GatherState(member_, group_, gathered_state_);
    state_gathered_ = true;
  }
  if (completion.progress != Progress::kFailed && !member_.encodings.Residuals().empty()) {
    completion =
        gathers ? GatherResiduals(member_.encodings, member_.device, group_.transport(), gathered_)
                : HandOverResiduals(member_.encodings, member_.device, group_.transport(), leaving_,
                                    member_.options.replica_members);
  }
  if (completion.progress != Progress::kFailed && gathers) {
    const Completion gathered = GatherParts();
    completion.progress = gathered.progress;
    completion.reason = gathered.reason;
    completion.at = std::max(completion.at, gathered.at);
  }
  if (completion.progress == Progress::kFailed) return LoseGroup(completion.reason);
  gathering_ = std::max(Duration{}, completion.at - member_.edge);
  if (trains) member_.MoveEdge(member_.edge + gathering_);
}

// What was gathered at this edge is of what is no more.
void RoundEngine::ForgetGathered() {
  gathered_.clear();
  gathered_state_ = {};
  state_gathered_ = parts_gathered_ = false;
}

// Once members have taken over what others hold: of residuals each keeps its own. False: the group
// was lost by it. at: moves to when it is done. Where nothing was gathered nothing happens.
bool RoundEngine::GatherAnew(Instant& at) {
  if (!state_gathered_) return true;
  const Completion completion = GatherState(member_, group_, gathered_state_);
  if (completion.progress == Progress::kFailed) LoseGroup(completion.reason);
  at = std::max(at, completion.at);
  return outcome_ != Outcome::kGroupLost;
}

void RoundEngine::GatherShards() {
  TACTUS_CHECK(at_edge() && !pending_);
  Completion completion = GatherParts();
  if (completion.progress != Progress::kFailed && shards_apart() && !state_gathered_) {
    completion = GatherState(member_, group_, gathered_state_);
    state_gathered_ = true;
  }
  if (completion.progress == Progress::kFailed) LoseGroup(completion.reason);
}

Completion RoundEngine::GatherParts() {
  if (!gather_parts_ || std::exchange(parts_gathered_, true)) return {};
  return gather_parts_();
}

}  // namespace tactus::engine
