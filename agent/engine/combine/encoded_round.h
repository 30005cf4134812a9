// What encodings know of a round: equal on all members.

#pragma once

#include <cstdint>

namespace tactus::engine {

struct EncodedRound {
  std::uint64_t number = 0;
  double progress = 0;   // of the training, [0, 1]; 0 where its end is not in sight
  double samples = 1;    // of all members, where it is one step; else by the plan, > 0
  bool changes = false;  // what travels are changes of parameters, and gradients otherwise

  friend bool operator==(const EncodedRound&, const EncodedRound&) = default;
};

}  // namespace tactus::engine
