// What a member needs of the others of its replica where each has a part of one model: sums over
// all of it, as norms and products are made of.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::collective {

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
  std::function<Completion(std::span<double> sums)> add{};

  bool in_parts() const { return add != nullptr; }
};

// Sums over vectors that the members have parts of, laid out by the segments. Vectors and sums are
// the device's memory. One thread.
class DeviceReplicaSums {
 public:
  // device outlives this. Requires: where members have parts, as many counts as segments.
  DeviceReplicaSums(ReplicaSums sums, cuda::Device& device, cuda::SegmentTable segments);

  bool in_parts() const { return sums_.in_parts(); }

  // Whether this member counts a segment: it does, where it has all of the model.
  bool Counts(std::size_t segment) const { return !in_parts() || sums_.counts[segment]; }

  // norm2[0] grows by the squared norm of what this member counts of a stretch, which begins at the
  // offset and may end within a segment.
  void AddNorm(std::span<const float> stretch, std::size_t offset, std::span<double> norm2);

  // row <- the sum of the members' rows, which are of one length. By all members, as
  // ReplicaSums::add; it waits for the device. Requires: in_parts().
  Completion Add(std::span<double> row);

 private:
  const ReplicaSums sums_;
  cuda::Device& device_;
  const cuda::SegmentTable segments_;
  // A row between the members; left alone by this thread until the device has read it, which it has
  // when it does the next copy.
  cuda::Array<double> on_host_;
  std::unique_ptr<cuda::Mark> down_;  // where members have parts
};

}  // namespace tactus::collective
