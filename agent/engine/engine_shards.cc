// The round engine's part in what shards.h says: an optimizer's state that is cut up among members.

#include <algorithm>
#include <utility>

#include "agent/engine/round_engine.h"
#include "agent/engine/shard_talks.h"
#include "base/check.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;

bool RoundEngine::OfferPlan(policies::Plan plan) {
  const bool by_step = plan.synchronization == policies::Synchronization::kEveryStep;
  if (member_.shard && !by_step) return false;
  return group_.Offer(std::move(plan));
}

// at: moves to when it is done, and nothing else happens where the state is not cut up.
bool RoundEngine::ShareOutState(Instant& at) {
  if (!member_.shard) return true;
  member_.shard->undecided.reset();
  Completion completion;
  if (weights_.empty()) {
    completion = ExchangeWeights(group_, member_.options.shards.weight, weights_);
  }
  std::string lost;
  if (completion.progress == Progress::kDone) {
    completion = ShareOut(member_, group_, weights_, lost);
  }
  at = std::max(at, completion.at);
  state_lost_ = !lost.empty();
  const bool failed = completion.progress == Progress::kFailed;
  if (failed || state_lost_) LoseGroup(failed ? completion.reason : lost);
  return outcome_ != Outcome::kGroupLost;
}

// To those who stay, by all that anybody was told of who leaves.
Completion RoundEngine::HandOverShards() {
  std::vector<float> leaves(group_.size());
  for (const std::uint32_t rank : leaving_) {
    if (rank < leaves.size()) leaves[rank] = 1;
  }
  Completion completion = group_.transport().StartAllReduceSum(leaves)->Wait();
  if (completion.progress == Progress::kFailed) return completion;
  if (std::ranges::count(leaves, 0.0f) == 0) return completion;
  for (std::size_t rank = 0; rank < leaves.size(); ++rank) {
    if (leaves[rank] > 0) weights_[rank] = 0;
  }
  std::string lost;
  completion = ShareOut(member_, group_, weights_, lost);
  TACTUS_CHECK(lost.empty());  // all of it was held a moment ago
  return completion;
}

}  // namespace tactus::engine
