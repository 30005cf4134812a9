// What a member needs of the others of its replica where each has a part of one model: sums over
// all of it, as norms are made of.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// Empty: each member has all of the model.
struct ReplicaSums {
  // [segments] Whether this member is the one that counts a segment, of those of its replica who
  // have it.
  std::vector<bool> counts{};
  // [segments] Whether other members of the replica have it, too: a copy of the same bits. The same
  // on all members of the group. Empty: nobody has.
  std::vector<bool> copies{};
  // sums <- the sum of what the members of the replica call it with, as many each, in the host's
  // memory. They all call it in the same place of their collectives, and get the same bits. It
  // waits, and says how that ended; where it failed the sums mean nothing.
  std::function<collective::Completion(std::span<double> sums)> add{};

  bool in_parts() const { return add != nullptr; }
};

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
