// What the coordinator still has to say to one agent: numbered, kept until acknowledged, bounded.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "tactus/agent/v1/session.pb.h"

namespace tactus::service {

// Messages go out in order and stay until acknowledged, so that a new stream can resume where the
// former one broke. Numbers are consecutive. One thread.
class Outbox {
 public:
  static constexpr std::size_t kMessagesMax = 4096;

  // Appends a message and numbers it; false, and nothing changed, when the box is full.
  [[nodiscard]] bool Append(agent::v1::ToAgent message);

  // The next message to send on the present stream, or null. Valid until the next call of another
  // method.
  const agent::v1::ToAgent* Next();

  // The agent has everything up to `sequence`.
  void Acknowledge(std::uint64_t sequence);

  // A new stream to the same agent, which has everything up to `sequence`: the rest goes out again.
  void Rewind(std::uint64_t sequence);

  // Forgets all messages and numbers the next one `sequence` + 1: the agent remembers more of the
  // past than this process does.
  void Restart(std::uint64_t sequence);

  std::size_t size() const { return messages_.size(); }

 private:
  std::deque<agent::v1::ToAgent> messages_;  // not acknowledged, by number
  std::size_t sent_ = 0;                     // of messages_, on the present stream
  std::uint64_t last_sequence_ = 0;
};

}  // namespace tactus::service
