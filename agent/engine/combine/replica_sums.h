// What a member needs of the others of its replica where each has a part of one model: sums over
// all of it, as norms are made of.

#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// Empty: each member has all of the model. Who has a part is on the host.
struct ReplicaSums {
  // [segments] Whether this member is the one that counts a segment, of those of its replica who
  // have it.
  std::vector<bool> counts{};
  // sums <- the sum of what the members of the replica call it with, as many each. They all call it
  // in the same place of their collectives, and get the same bits. It waits, and says how that
  // ended; where it failed the sums mean nothing.
  std::function<collective::Completion(std::span<double> sums)> add{};

  bool in_parts() const { return add != nullptr; }
};

// The squared norm of what this member counts of a stretch of a vector that it has a part of. The
// vector is laid out by the segments; the stretch begins at the offset and may end within one.
// Requires: sums.in_parts().
double CountedNorm2(const ReplicaSums& sums, const cuda::SegmentTable& segments,
                    std::span<const float> stretch, std::size_t offset);

// norm2 <- what the members brought in it, and the squared norm of the vector that they have parts
// of, each element counted once. By all members, as ReplicaSums::add. vector: as the segments say.
// Requires: sums.in_parts().
collective::Completion WholeNorm(const ReplicaSums& sums, const cuda::SegmentTable& segments,
                                 std::span<const float> vector, double& norm2);

}  // namespace tactus::engine
