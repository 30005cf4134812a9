// What a member says in a collective of several turns, where what comes in one decides what is sent
// in the next: sums of encoded vectors, say.

#pragma once

#include <cstddef>
#include <span>

namespace tactus::collective {

// One member's part; see Transport::StartConversation. In each turn every member sends a message to
// every other. The calls come in the order
//
//   Begin(0)   Outgoing and Incoming of turn 0   Begin(1)   ...   End
//
// from one thread, which need not be the one that started it, as long as the collective is under
// way. Messages are in the host's memory; they have come, and are no more read, when the next call
// of Begin, or End, is made. A group of one has no messages but all the same calls.
class Conversation {
 public:
  virtual ~Conversation() = default;

  // >= 1, the same on all members.
  virtual std::size_t turns() const = 0;

  // Of each message of a turn, what is there however long the vectors are that are talked about:
  // for who weighs messages of short ones as if they were long. Asked when it has begun.
  virtual std::size_t FixedBytes(std::size_t /*turn*/) const { return 0; }

  // Makes what is sent in the turn, of what came in those before.
  virtual void Begin(std::size_t turn) = 0;
  // What is sent to `peer`, and where what it sends goes, as long as that; either may be empty.
  // Once a turn for each peer, never for this member itself.
  virtual std::span<const std::byte> Outgoing(std::size_t turn, int peer) = 0;
  virtual std::span<std::byte> Incoming(std::size_t turn, int peer) = 0;

  // All of the last turn's messages have come.
  virtual void End() = 0;
};

}  // namespace tactus::collective
