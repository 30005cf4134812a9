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
#include "agent/engine/lanes.h"
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

// What a combination gave, in the host's memory.
struct Combined {
  Lanes lanes{};           // refers to the combination's memory, until the next one
  double norm2 = 0;        // squared norm of the combined vector
  double own_norm2 = 0;    // of what this member put in; see Begin
  double parts_norm2 = 0;  // of Adasum: sum of the squared norms of the vectors that it combined
};

// Combines one vector with its lanes at a time. Before, the buffer holds this member's own: a sum
// over its samples for kAverage, a mean for kAdasum. After, the group's: the sum over all samples,
// or the Adasum of the means; the lanes are sums either way. Equal bits on all members. One thread.
class Combination {
 public:
  // This member's lanes; asked once a combination, right before they leave.
  using GiveLanes = std::function<std::vector<cuda::LaneValue>()>;

  // transport and device outlive this.
  Combination(collective::Transport& transport, cuda::Device& device,
              const cuda::SegmentTable& segments, CombinationOptions options);

  // Opens a combination of `buffer`, [cuda::FlatLength(segments) + lanes], which must live until
  // Wait has returned; its lanes are zero. Requires: none is open.
  //
  // poison  one number in the device's memory that the squared norm of this member's vector is
  //         counted up from: 0, or not a number where the vector is of no use; empty: 0
  void Begin(policies::Aggregation aggregation, std::span<float> buffer, GiveLanes give_lanes,
             std::span<const double> poison = {});

  // The segment's elements are final on this member; optional, before Finish, only for kAverage.
  void SegmentReady(std::size_t segment);

  // The whole vector is final: starts what has not been started.
  void Finish();

  // Where it stands after Finish, without waiting. To be asked now and then: Adasum goes on by it.
  collective::Progress Poll();

  // Waits for the end and closes the combination.
  collective::Completion Wait();

  // What came of the combination closed last, if it did not fail. Waits for the device.
  Combined Read();

  bool open() const { return open_; }

  // How many vectors Adasum combines: the members', or their nodes' means.
  std::size_t adasum_parts() const { return adasum_.parts(); }

  // Payload of the combination closed last.
  std::uint64_t bytes() const;

 private:
  void BeforeReduce(std::span<float> stretch);
  void WriteLanes();
  std::span<double> own_norm2() { return norms_.span().first(1); }
  std::span<double> norm2() { return norms_.span().subspan(1); }

  cuda::Device& device_;
  const std::size_t length_;  // of the vector
  const std::size_t lanes_;
  collective::BucketedReduction average_;
  collective::AdasumReduction adasum_;

  // The open one.
  bool open_ = false;
  policies::Aggregation aggregation_ = policies::Aggregation::kAverage;
  std::span<float> buffer_;
  GiveLanes give_lanes_;

  cuda::Sums norms_;                   // the member's own and the combined vector's squared norm
  cuda::Array<double> norms_on_host_;  // the same, and the lanes, once they were read
  cuda::Array<float> lanes_on_host_;
};

}  // namespace tactus::engine
