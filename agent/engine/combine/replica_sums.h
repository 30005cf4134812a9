// Norms of vectors that the members of a replica have parts of.

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "agent/collective/replica_sums.h"
#include "agent/collective/transport.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

using collective::ReplicaSums;

// Squared norms of vectors that members have parts of, laid out by the segments. Vectors and norms
// are the device's memory. One thread.
class CountedNorms {
 public:
  // device outlives this.
  CountedNorms(ReplicaSums sums, cuda::Device& device, cuda::SegmentTable segments);

  bool in_parts() const { return sums_.in_parts(); }

  // norm2[0] grows by that of what this member counts of a stretch, which begins at the offset and
  // may end within a segment. Requires, as FindWhole: in_parts().
  void AddOf(std::span<const float> stretch, std::size_t offset, std::span<double> norm2);

  // norm2[0] <- the sum of what the members have brought in it, and the squared norm of the whole
  // vector, each element counted once. By all members, as ReplicaSums::add; it waits for the
  // device.
  collective::Completion FindWhole(std::span<const float> vector, std::span<double> norm2);

 private:
  const ReplicaSums sums_;
  cuda::Device& device_;
  const cuda::SegmentTable segments_;
  // What travels between the members; left alone by this thread until the device has read it, which
  // it has when it does the next copy.
  cuda::Array<double> on_host_;
  std::unique_ptr<cuda::Mark> down_;
};

}  // namespace tactus::engine
