// What a member needs of the others of its replica where each has a part of one model: sums over
// all of it, as norms and products are made of.

#pragma once

#include <functional>
#include <span>
#include <vector>

#include "agent/collective/transport.h"

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

}  // namespace tactus::collective
