// A step of the optimizer whose state is cut up among the members (shards.h).
//
// Every member has the combined gradient. Each computes what becomes of its own stretch of the
// parameters, without touching its state, and all tell one another; when this member has heard of
// all of them it takes the step: its state, and all parameters. So a group that falls apart
// meanwhile leaves each member as it was before the round or as it is after it, and one that does
// not know which of the two the others are can still take the step: see UndecidedStep.
//
// The arithmetic is element by element that of a member that holds all.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/optimizer.h"
#include "agent/engine/shards.h"
#include "cuda/device.h"

namespace tactus::engine {

class Group;
struct Member;

// Used for one step after the other. One thread.
class ShardedStep {
 public:
  // member, group: outlive this. Requires: member.shard.
  ShardedStep(Member& member, Group& group) : member_(member), group_(group) {}

  // The group's vector has the combined gradient; after, what others' stretches of the parameters
  // become, and this member's gradient still. Waits; returns how it ended. Where it failed nothing
  // of the member has changed, but that its step is undecided. scale: without a gate.
  collective::Completion Share(const StepScale& scale);

  // Takes the step. After a Share that was done.
  void Take();

 private:
  collective::Completion ShareTurn(std::size_t turn);
  void ComputeOwn(std::span<float> chunk, const ShardStretch& stretch);
  ShardStretch ChunkOf(const ShardStretch& stretch, std::size_t turn) const;
  void KeepGradients();
  void KeepUndecided();
  void TakePiece(std::size_t index);

  Member& member_;
  Group& group_;
  StepScale scale_{};
  cuda::Buffer gradient_;                // of a chunk of this member's own
  std::vector<cuda::Buffer> state_;      // likewise, a copy of it
  cuda::Buffer parameters_;              // of a chunk that another one has the say in
  std::vector<cuda::Buffer> gradients_;  // of what is held beside its own, by piece
};

// The member's undecided step was taken by others: its state follows. The parameters do not.
void TakeUndecided(Member& member);

}  // namespace tactus::engine
