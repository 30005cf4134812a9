// What a member of a group starts, and what all who take part make of it together.

#pragma once

#include <cstddef>
#include <span>

#include "agent/collective/conversation.h"

namespace tactus::collective {

// A collective as one member starts it; see Transport.
struct Operation {
  // Of the last two only transports know that take a device's memory: elsewhere they are
  // conversations (root_sum.h).
  enum class Kind {
    kAllReduceSum,
    kBroadcast,
    kBarrier,
    kExchange,
    kConversation,
    kRootSum,
    kAllGather
  };
  Kind kind = Kind::kBarrier;
  std::span<float> buffer = {};     // of a sum or a broadcast; what all bring to a gathering
  std::span<const float> own = {};  // what this member brings to it
  int partner = 0;                  // the root of a broadcast or a sum, the peer of an exchange
  std::span<const std::byte> outgoing = {};  // of an exchange
  std::span<std::byte> incoming = {};
  Conversation* conversation = nullptr;  // of one
};

// Carries out a collective whose members' memory is all at hand, with the operations of those who
// take part, in rank order; sums are SumInRankOrder's. Requires: of one kind, length and root.
void CarryOut(std::span<const Operation> operations);

}  // namespace tactus::collective
