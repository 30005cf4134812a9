// What a worker and its agent say to each other, once it knows what it is to do.

#pragma once

#include <optional>

#include "agent/life/failure.h"
#include "protocol/worker_messages.h"

namespace tactus::life {

// The worker's end. One thread.
class Mail {
 public:
  virtual ~Mail() = default;

  // Waits for the next message. A failure: none will come.
  virtual OrFailure<protocol::ToWorker> Await() = 0;

  // The next message if one is there.
  virtual std::optional<protocol::ToWorker> Poll() = 0;

  // Hands a message over; never blocks, and says nothing where nobody listens any more.
  virtual void Send(const protocol::FromWorker& message) = 0;
};

}  // namespace tactus::life
