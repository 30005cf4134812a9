// Combining: from each member's own vector and lanes to the group's.
//
//   buffer [vector | lanes] --Aggregator, which for a mean has an Encoding--> Transport

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/collective/replica_sums.h"
#include "agent/collective/transport.h"
#include "agent/engine/combine/aggregator.h"
#include "agent/engine/combine/encoding.h"
#include "agent/engine/combine/lanes.h"
#include "cuda/device.h"
#include "cuda/ops/round_gate.h"
#include "cuda/ops/segments.h"
#include "policies/plan.h"

namespace tactus::engine {

// Puts what is held back of a stretch of the gradients into it, right before it leaves, and adds
// the squared norm of what it then is to norm2[0], as cuda::Device::AddSquaredNorm does, if norm2
// is not empty. False: some of it, or all, was there already; the rest is now, and the norm is
// still to be added.
using BringStretch = std::function<bool(std::span<float> stretch, std::span<double> norm2)>;

// What all members are told of their group's transport.
struct CombinationOptions {
  std::size_t bucket_bytes = 1u << 20;  // of one all-reduce, >= 4
  std::size_t lanes = LaneCount(1);     // elements behind the vector, LaneCount of the members
  // The node of each rank, for Adasum between nodes and averages within; empty: all apart, as
  // replicas of members that have parts are anyway.
  std::vector<std::uint32_t> nodes{};
  // One number in the device's memory, which outlives the combination: the sum of this member's
  // losses, which leaves with its vector.
  std::span<double> loss_sum{};
  BringStretch bring{};  // of this member; may be empty
  collective::ReplicaSums replica_sums{};
};

// What a window of local steps left behind: one number each in the device's memory, which outlive
// the combination's Finish.
struct WindowSums {
  // That the squared norm of this member's vector is counted up from: 0, or not a number where the
  // vector is of no use; empty: 0.
  std::span<const double> poison{};
  // Of the sum of losses, the first step's; empty: there was no other.
  std::span<const double> first_loss{};
};

// This member's lanes, asked for once a combination, when they leave with the last stretch.
using TellLanes = std::function<std::vector<cuda::LaneValue>()>;

// What a combination gave, but for the vector in the host's memory.
struct Combined {
  std::span<const float> vector{};  // the device's memory, of the buffer that was combined
  Lanes lanes{};     // refers to the combination's memory, until the next one is read
  double norm2 = 0;  // squared norm of the combined vector
  // Of what this member put in, before it was encoded; see Begin. Where it has parts, of what it
  // counts of them.
  double own_norm2 = 0;
  double own_loss_sum = 0;
  double scale = 1;      // by which that gate multiplies the combined vector, for its mean, cut
  bool applied = false;  // whether the gate of Follow let through what was queued behind it
};

// Combines one vector with its lanes at a time. Before, the buffer holds what this member puts in;
// after, what came out: see Aggregator. The lanes are sums either way. Equal bits on all members.
// One thread.
class Combination {
 public:
  // transport and device outlive this.
  Combination(collective::Transport& transport, cuda::Device& device,
              const cuda::SegmentTable& segments, CombinationOptions options);

  // The way to aggregate for Begin; lives as long as this.
  Aggregator& For(policies::Aggregation aggregation);

  // What an aggregator of somebody else's, given to Begin, is to call: Aggregator::BeforeLeave.
  Aggregator::BeforeLeave before_leave() {
    return [this](std::span<float> stretch) { BeforeLeave(stretch); };
  }

  // The batch sizes of the plan in force, by rank.
  void SetBatchSizes(const std::vector<std::uint32_t>& sizes);

  // In which form means travel; it outlives this. Dense at first. Requires: none is open.
  void SetEncoding(Encoding& encoding);

  // Opens a combination of `buffer`, [cuda::FlatLength(segments) + lanes], which must live until
  // Wait has returned; its lanes are zero. Requires: none is open. What `lanes` refers to outlives
  // the combination's Finish.
  void Begin(Aggregator& aggregator, std::span<float> buffer, TellLanes lanes,
             const WindowSums& window = {});

  // The segment's elements are final on this member; optional, before Finish, only where the
  // aggregator goes by segments. With the last one, the sum of losses has to be final.
  void SegmentReady(std::size_t segment);

  // The whole vector and the sum of losses are final: starts what has not been started. The sum is
  // taken over, and is zero for what is queued next.
  void Finish();

  // Where it stands after Finish, without waiting. To be asked now and then: Adasum goes on by it.
  collective::Progress Poll();

  // Queues behind the combination, without waiting for it where the transport need not: the norm of
  // what comes out, a gate by that norm and the lanes, and the copies for Read; what is queued next
  // may go by the gate. kFailed: it has failed, and nothing was queued. After Finish, before Wait,
  // or not at all.
  collective::Progress Follow(const cuda::RoundGate& gate);
  // The group was lost in what the caller does behind Follow, and has not done: so says Wait.
  void Lose(collective::Completion lost);
  // [cuda::kRoundGateLength], the device's memory: of the last Follow.
  std::span<const double> gate() const { return numbers_.span().subspan(kGate); }

  // Waits for the end and closes the combination; of a closed one, returns how it ended. After
  // Follow this is the one wait for the device, and the gate's word holds: where it found the group
  // lost the combination has failed, where it did not it has not, whatever came after.
  collective::Completion Wait();

  // What came of the combination closed last, if it did not fail. Without Follow it waits for the
  // device.
  Combined Read();

  // Behind all that Wait waits for after Follow.
  const cuda::Mark& mark() const { return *copied_; }

  bool open() const { return open_; }
  std::span<const float> buffer() const { return buffer_; }  // of the open one, or the last
  // Of the open one; see Aggregator.
  bool by_segments() const { return aggregator_->by_segments(); }

  // The lanes read last; all zero before.
  Lanes lanes() const { return ReadLanes(lanes_on_host_.span()); }

  // Payload of the combination closed last.
  std::uint64_t bytes() const { return aggregator_->bytes(); }

 private:
  // Places in the numbers.
  static constexpr std::size_t kOwnNorm2 = 0;
  static constexpr std::size_t kNorm2 = 1;
  static constexpr std::size_t kOwnLossSum = 2;
  static constexpr std::size_t kGate = 3;
  static constexpr std::size_t kNumbers = kGate + cuda::kRoundGateLength;

  void BeforeLeave(std::span<float> stretch);
  void TakeOwnNorm(std::span<float> own, std::size_t offset);
  bool FindWholeNorm();
  void QueueResults(const cuda::RoundGate& gate, const std::uint32_t* lost);
  void AskTheGate();
  std::span<double> own_norm2() { return numbers_.span().subspan(kOwnNorm2, 1); }
  std::span<double> norm2() { return numbers_.span().subspan(kNorm2, 1); }
  std::span<double> own_loss_sum() { return numbers_.span().subspan(kOwnLossSum, 1); }

  collective::Transport& transport_;
  cuda::Device& device_;
  const std::size_t length_;  // of the vector
  const std::size_t lanes_;
  const std::span<double> loss_sum_;
  const BringStretch bring_;
  collective::DeviceReplicaSums replica_;
  const std::unique_ptr<Aggregator> average_;
  const std::unique_ptr<Aggregator> adasum_;

  // The open one, or the last.
  bool open_ = false;
  bool followed_ = false;
  Aggregator* aggregator_ = nullptr;
  std::span<float> buffer_;
  TellLanes own_lanes_;
  std::span<const double> common_loss_;  // of this member
  collective::Completion completion_;
  std::optional<collective::Completion> lost_;  // with the parts' sums

  cuda::Sums numbers_;                   // squared norms, own losses, and the gate
  cuda::Array<double> numbers_on_host_;  // the same, and the lanes, once they were copied
  cuda::Array<float> lanes_on_host_;
  const std::unique_ptr<cuda::Mark> copied_;
};

}  // namespace tactus::engine
