// Adasum over a transport: the members' vectors combined pair by pair, up a binary tree of nodes.
//
// Recursive vector halving: at each level a member and its partner, who hold the same slice of two
// vectors, keep half of it each, so that all members work on all of the tree and none ever holds
// more than it needs. The pair operator wants d, A and B of whole segments, which the members of
// the subtree add up among them. In the end the slices are gathered the way they came.

#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "agent/collective/replica_sums.h"
#include "agent/collective/transport.h"
#include "cuda/device.h"
#include "cuda/ops/adasum.h"
#include "cuda/ops/segments.h"

namespace tactus::collective {

// Reduces one vector after the other by Adasum, segment by segment, with a few lanes beside it that
// are summed. A reduction is a row of exchanges: Poll goes on to the next when the last is done, so
// that the member's own thread must ask now and then; Wait does the rest. One thread.
//
// n nodes of m members each, both in rank order, a node's place that of its lowest rank; Q is the
// largest power of two <= n. Without nodes, or with nodes of unequal size or of more than
// cuda::kCombinedMax members, every member is a node of its own and m = 1.
//
//   within a node   the mean: member l sums shard l of the m vectors and divides by m
//   n > Q           node i < n - Q first takes in node Q + i: Adasum(x_i, x_(Q+i))
//   up the tree     node u with node u XOR 1, then u XOR 2, ... u XOR Q/2, the lower one being `a`
//
// One node alone has its mean: no Adasum at all. The order of the ranks decides who meets whom, and
// so the result: the operator is not associative.
//
// Where members have parts of vectors, the transport is of those who have the same part, one a
// replica, and what goes up the tree are the replicas' vectors: the sums of each level, of what the
// two have in common, are added up over the replica before they are used, each element counted
// once. So all members of a replica come to the same coefficients, and copies within it stay
// copies. It takes log2(replicas) + 1 sums over the replica, and waits for each of them.
//
// Payload sent by a member: less than 2 vectors, and twice as much by nodes i < n - Q; scratch
// memory: half a vector, or (m - 1) / m of one.
//
// Source: [adasum], as horovod/common/ops/adasum/adasum.h has it; nodes beyond Q and any m: design.
// Differs: Horovod divides by m in the end, which is the same but for rounding, as Adasum is
// homogeneous; dividing first keeps the sum of m vectors from overflowing on the way.
class AdasumReduction {
 public:
  // nodes [transport.size()], which node each rank is on, by any numbers; empty: all apart. The
  // same on all members, and empty where they have parts. replica: as many segments. transport and
  // device outlive this.
  AdasumReduction(Transport& transport, cuda::Device& device, const cuda::SegmentTable& segments,
                  const std::vector<std::uint32_t>& nodes, ReplicaSums replica = {});

  // Opens a reduction. Requires: none is open. No other collective may be started on the transport
  // until Poll says that it is over, as the members' orders would differ.
  //
  // buffer  this member's vector, at least to the end of the last segment; elements outside of the
  //         segments must be zero. After: the Adasum of all, the same bits on every member.
  // lanes   a few numbers. After: their sums over all members, of all replicas, added in float64.
  //
  // Both are the device's memory, have the same length on all members and must live until the
  // reduction is over; what comes after it may still be queued on the device then. After a failure
  // they hold anything.
  void Start(std::span<float> buffer, std::span<float> lanes);

  // Where it stands, without waiting but for sums over a replica; goes on where an exchange is
  // done. Requires: Start.
  Progress Poll();

  // Does the rest of the row without waiting for any of it where the transport does not, by
  // Collective::WaitOnDevice of each exchange, and returns what that does. Where members have parts
  // it waits, as the host has a part in it. Nothing but Wait comes after it. Requires: one is open.
  Progress WaitOnDevice();

  // Waits for the end and closes the reduction. Requires: one is open.
  Completion Wait();

  // Of the last reduction that did not fail, once the device has been waited for since its end: the
  // sum of the squared norms of the vectors that went up the tree, i.e. the nodes' means, whole
  // where members have parts; the same bits on all. [element^2]
  double norm2_sum() const { return results_.span()[kNorm2]; }

  // How many vectors go up the tree: nodes, or replicas.
  std::size_t parts() const { return nodes(); }

  // Whether a vector that was put in, or one that came about on the way up the tree, was not
  // finite: known to all members alike, when norm2_sum is. The result itself may overflow without;
  // all members have the same.
  bool nonfinite() const { return results_.span()[kNonfinite] > 0 || !std::isfinite(norm2_sum()); }

  // Bytes reduced by the last reduction: vector and lanes, whatever the transport moves for them.
  std::uint64_t bytes() const;

 private:
  static constexpr int kNobody = -1;
  // Places in the tail of a row.
  static constexpr std::size_t kNonfinite = 0;
  static constexpr std::size_t kNorm2 = 1;
  static constexpr std::size_t kLanes = 2;

  // An exchange with a peer, or without one something that this member does by itself.
  struct Step {
    int peer = kNobody;
    std::span<const std::byte> outgoing{};
    std::span<std::byte> incoming{};
    std::function<void()> act{};
  };

  // One level of the tree: two nodes meet, this member's and its partner.
  struct Level {
    std::size_t partner = 0;              // node
    std::vector<std::size_t> sum_with{};  // nodes to add up sums with, one after the other
    bool tail = false;                    // whether the row's tail is added up, too
  };

  // These append steps. A slice is what of the vector the member and its partners are about to
  // combine.
  void PlanNodeMean();
  void PlanNodeGather();
  void PlanTree(cuda::FlatRange slice);
  cuda::FlatRange PlanLevel(cuda::FlatRange slice, const Level& level);
  void PlanFold(cuda::FlatRange slice, std::size_t partner);
  void PlanUnfold(cuda::FlatRange slice, std::size_t partner);
  void PlanSum(std::span<double> row, const std::vector<std::size_t>& sum_with);
  template <typename Number>
  void PlanExchange(int peer, std::span<Number> outgoing, std::span<Number> incoming);
  void PlanReplicaSum(std::span<double> row);
  void PlanAct(std::function<void()> act) { steps_.push_back({.act = std::move(act)}); }

  void MakeRoom();
  void SetPartials(cuda::FlatRange slice, const cuda::AdasumPair& pair);
  void Advance();
  void DoSteps();
  void TakeResults();

  std::size_t nodes() const { return places_.size(); }
  std::size_t node_size() const { return places_.front().size(); }
  int PeerOn(std::size_t node) const { return places_[node][local_]; }

  // The members of this one's node, but for itself, in the order in which it turns to them: all
  // turn to one another at once.
  std::vector<std::size_t> Neighbours() const;

  // The part of the buffer that a member of a node sums; the last has what is over.
  cuda::FlatRange ShardOf(std::size_t local) const;

  std::span<float> At(cuda::FlatRange slice) { return buffer_.subspan(slice.offset, slice.length); }
  std::span<double> sums() { return row_.span().first(sums_); }
  std::span<double> tail() { return row_.span().subspan(sums_); }
  std::span<double> InTail(std::size_t place) { return tail().subspan(place, 1); }
  std::span<double> RowInbox(std::size_t local, std::size_t length) {
    return row_inbox_.span().subspan(local * row_.size(), length);
  }

  // Constant after construction.
  Transport& transport_;
  cuda::Device& device_;
  const cuda::SegmentTable segments_;
  const std::size_t sums_;                      // doubles in a row of sums
  const std::vector<std::vector<int>> places_;  // ranks [nodes, node_size]
  std::size_t node_ = 0;                        // of this member
  std::size_t local_ = 0;                       // its place in the node

  // The open reduction.
  std::span<float> buffer_;
  std::span<float> lanes_;
  cuda::Buffer inbox_;    // half a slice, or the node's other parts of this shard
  cuda::Sums row_;        // sums of the level; then non-finite sums, norm2_sum, lanes
  cuda::Sums row_inbox_;  // [node_size] rows
  std::vector<Step> steps_;
  std::size_t next_ = 0;                               // step
  std::unique_ptr<Collective> running_;                // null: none is open, or it is over
  std::vector<std::unique_ptr<Collective>> followed_;  // exchanges that the device waits for
  bool open_ = false;
  Completion completion_;  // once it is over

  DeviceReplicaSums replica_;

  cuda::Array<double> results_;  // [kLanes] the tail's first numbers, in the host's memory
};

}  // namespace tactus::collective
