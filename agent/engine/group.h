// The group: what one generation of it makes for a member. A group that is lost takes this along;
// what Member has stays.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/combine/combination.h"
#include "agent/engine/member.h"
#include "agent/engine/open_window.h"
#include "agent/engine/samples/block_cursor.h"
#include "agent/engine/shards.h"
#include "agent/engine/synchronizer.h"
#include "base/bounded_queue.h"
#include "policies/plan.h"

namespace tactus::engine {

// What passes leave behind: see EngineBuffers.
struct GroupBuffers {
  std::span<float> gradients;
  std::span<double> loss_sum;
  BringStretch bring;
  collective::ReplicaSums replica_sums;
  bool registered = false;
};

// One member's side of a group: its place, the plans that the group goes by and votes for, and the
// ways to combine and to run rounds. One thread.
class Group {
 public:
  // gradients [cuda::FlatLength(segments) + LaneCount(members)] and loss_sum [1] are zero. All
  // outlive this.
  // Requires: policies::Fits(plan, transport.size()).
  Group(Member& member, collective::Transport& transport, GroupBuffers buffers,
        policies::Plan plan);

  std::uint32_t size() const { return static_cast<std::uint32_t>(transport_.size()); }
  std::size_t rank() const { return static_cast<std::size_t>(transport_.rank()); }
  // Copies of the model; that of this member. Samples are given out to these.
  std::uint32_t replicas() const { return size() / member_.options.replica_members; }
  std::size_t replica() const { return rank() / member_.options.replica_members; }
  collective::Transport& transport() { return transport_; }
  Combination& combination() { return combination_; }

  std::size_t segments() const { return member_.segments.size(); }  // how many

  // Where the running round's gradients add up: the vector, and with the lanes behind it.
  std::span<float> vector() const { return gradients_.first(member_.parameters.size()); }
  std::span<float> buffer() const { return gradients_; }
  // What was combined there, and what a step has used, is no part of what adds up next.
  void ClearBuffer();
  void ClearVector();
  // And its losses, until its combination takes them over.
  std::span<double> loss_sum() const { return loss_sum_; }
  const collective::ReplicaSums& replica_sums() const { return replica_sums_; }

  const policies::Plan& plan() const { return plan_; }  // in force
  // Of the round under way, or the next: the same, but for a window that goes on.
  const policies::Plan& round_plan() const { return resumed_ ? resumed_->plan : plan_; }
  // Of this member's steps in it, and of its replica's.
  std::uint64_t batch_size() const { return round_plan().batch_sizes[rank()]; }
  StepSizes step() const;
  // Of a plan's steps, by replica. [samples]
  std::vector<std::uint64_t> ReplicaSizes(const policies::Plan& plan) const;
  // How it is run. Lives as long as this.
  Synchronizer& synchronizer() const;

  // The first round goes on with a window of the group before, until it is over. Null: it does not,
  // or not any more.
  void Resume(ResumedWindow window);
  const ResumedWindow* resumed() const { return resumed_ ? &*resumed_ : nullptr; }
  void EndResumed();

  // As RoundEngine::OfferPlan. Whether one waits, and its coming into force.
  bool Offer(policies::Plan plan);
  bool HasNextPlan() const { return !plans_waiting_.empty(); }
  void AdoptNextPlan();

  // Where the optimizer's state is cut up: the stretches of the parameters, by rank, which cover
  // them.
  const std::vector<ShardStretch>& shards() const { return shards_; }
  void SetShards(std::vector<ShardStretch> shards) { shards_ = std::move(shards); }

  // values <- their mean over the replicas. Waits; returns how it ended. Where it failed they are
  // as they were: it goes by the vector, as does what follows. Requires: nothing adds up there.
  collective::Completion Average(std::span<float> values);
  // The vector <- the root's values, as long; to be cleared when it was read.
  collective::Completion Distribute(std::size_t root, std::span<const float> values);

 private:
  static constexpr std::size_t kPlansWaitingMax = 16;

  void FollowPlan();
  void SetShares();
  void RegisterGradients();

  Member& member_;
  collective::Transport& transport_;
  const std::span<float> gradients_;
  const std::span<double> loss_sum_;
  const collective::ReplicaSums replica_sums_;
  const bool replaced_;   // by passes, vector and all: see EngineBuffers
  const bool registers_;  // the gradients, where the plan allows it
  bool registered_;       // they are now
  // Of running rounds. They own buffers that outlive what combines them, so they stand before it.
  const std::vector<std::unique_ptr<Synchronizer>> synchronizers_;
  Combination combination_;
  policies::Plan plan_;
  std::vector<ShardStretch> shards_;
  std::optional<ResumedWindow> resumed_;
  BoundedQueue<policies::Plan, kPlansWaitingMax> plans_waiting_;
};

}  // namespace tactus::engine
