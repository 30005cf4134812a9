// How the parameters of leaders come to those who follow them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/combine/aggregator.h"
#include "agent/engine/combine/leaders.h"
#include "cuda/device.h"

namespace tactus::engine {

// Nothing is summed but the lanes, which travel with the members' scores in one all-reduce; by
// these all find the same leaders. Then the leader of each node sends its parameters to the node's
// other members, where it is asked for one after the other, and the leader of all broadcasts its
// own.
//
//   member i puts in    comes out
//   x_i                 the parameters of the leader of all; zeros where there is none, or none was
//                       asked for; not numbers where nobody's parameters are finite
//
// Equal bits on all members. Between nodes a member sends and receives one vector, whatever the
// group's size; within a node its leader sends one to each other member. One thread.
class LeaderExchange : public VectorExchange {
 public:
  // What this member says, and what is asked of the exchange, which is the same on all.
  struct Turn {
    LeaderScore score{};
    bool loss_told = true;          // its lanes bring the losses of its samples
    bool of_group = true;           // the leader of all is followed, too
    std::uint32_t least_steps = 1;  // see FindLeaders
  };

  // nodes [transport.size()]: the node of each rank. What outlives it is as for MakeAverage.
  LeaderExchange(collective::Transport& transport, cuda::Device& device, std::size_t length,
                 std::vector<std::uint32_t> nodes, BeforeLeave before_leave);

  // For the next Begin.
  void Prepare(const Turn& turn) { turn_ = turn; }

  // ---- After Wait, where it did not fail

  const Leaders& leaders() const { return leaders_; }
  // The parameters of this member's node's leader; empty where there is none, or where it is this
  // member itself, or the only node's.
  std::span<const float> of_node() const;

  // Of lanes of this exchange: the samples of those members whose losses they bring.
  double SamplesTold(const Lanes& lanes) const;

  // Whether there are nodes, of which some have several members.
  bool tiered() const { return tiered_; }

  double Divisor(double) const override { return 1; }

  void Begin(std::span<float> buffer) override;
  void SegmentReady(std::size_t) override;
  void Finish() override;
  collective::Progress Poll() override;
  collective::Completion Wait() override;
  std::uint64_t bytes() const override { return bytes_; }

 private:
  void WriteTally();
  void ReadTally();
  collective::Completion FollowNode();
  collective::Completion FollowGroup();

  std::size_t size() const { return nodes_.size(); }
  std::span<float> vector() const { return buffer_.first(length_); }

  collective::Transport& transport_;
  cuda::Device& device_;
  const std::size_t length_;
  const std::size_t rank_;
  const std::vector<std::uint32_t> nodes_;
  const bool tiered_;
  const BeforeLeave before_leave_;
  Turn turn_;

  std::span<float> buffer_;                           // the open one
  cuda::Buffer tally_;                                // lanes, and each member's score
  std::unique_ptr<collective::Collective> counting_;  // the tally; null: it is read
  collective::Completion completion_;
  Leaders leaders_;
  std::vector<bool> loss_told_;  // by rank
  cuda::Buffer node_leader_;
  bool has_node_leader_ = false;
  bool lost_ = false;  // nobody's parameters are finite
  std::uint64_t bytes_ = 0;
};

// parameters <- so far on the way to the leader's, a share in [0, 1): where they are the same they
// stay, bit for bit. scratch: as long.
void PullTowards(cuda::Device& device, std::span<const float> leader, double share,
                 std::span<float> scratch, std::span<float> parameters);

}  // namespace tactus::engine
