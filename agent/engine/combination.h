// Combining: from each member's own vector and lanes to the group's, by average or by Adasum.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "agent/collective/adasum.h"
#include "agent/collective/bucketing.h"
#include "agent/collective/transport.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/plan.h"

namespace tactus::engine {

// What all members are told of their group's transport.
struct CombinationOptions {
  std::size_t bucket_bytes = 1u << 20;  // of one all-reduce, >= 4
  std::size_t lanes = 1;                // elements behind the vector, >= 1
  // The node of each rank, for Adasum between nodes and averages within; empty: all apart.
  std::vector<std::uint32_t> nodes{};
};

// Combines one vector with its lanes at a time. Before, the buffer holds this member's own: a sum
// over its samples for kAverage, a mean for kAdasum. After, the group's: the sum over all samples,
// or the Adasum of the means; the lanes are sums either way. Equal bits on all members. One thread.
class Combination {
 public:
  // Writes this member's lanes, which are zero; called once a combination, right before they leave.
  // own_norm2: squared norm of this member's vector.
  using WriteLanes = std::function<void(double own_norm2, std::span<float> lanes)>;

  // transport and device outlive this.
  Combination(collective::Transport& transport, cuda::Device& device,
              const cuda::SegmentTable& segments, CombinationOptions options);

  // Opens a combination of `buffer`, [cuda::FlatLength(segments) + lanes], which must live until
  // Wait has returned. Requires: none is open.
  void Begin(policies::Aggregation aggregation, std::span<float> buffer, WriteLanes write_lanes);

  // The segment's elements are final on this member; optional, before Finish, only for kAverage.
  void SegmentReady(std::size_t segment);

  // The whole vector is final: starts what has not been started.
  void Finish();

  // Where it stands after Finish, without waiting. To be asked now and then: Adasum goes on by it.
  collective::Progress Poll();

  // Waits for the end and closes the combination.
  collective::Completion Wait();

  bool open() const { return open_; }

  // How many vectors Adasum combines: the members', or their nodes' means.
  std::size_t adasum_parts() const { return adasum_.parts(); }

  // Of the combination closed last: payload, and for Adasum the sum of the squared norms of those
  // vectors.
  std::uint64_t bytes() const;
  double norm2_sum() const { return norm2_sum_; }

 private:
  void BeforeReduce(std::span<float> stretch);

  cuda::Device& device_;
  const std::size_t length_;  // of the vector
  const std::size_t lanes_;
  collective::BucketedReduction average_;
  collective::AdasumReduction adasum_;

  // The open one.
  bool open_ = false;
  policies::Aggregation aggregation_ = policies::Aggregation::kAverage;
  std::span<float> buffer_;
  WriteLanes write_lanes_;
  double own_norm2_ = 0;

  double norm2_sum_ = 0;
};

}  // namespace tactus::engine
