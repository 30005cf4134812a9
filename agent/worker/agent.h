// A worker's agent, as the worker sees it.

#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "agent/worker/messages.h"
#include "agent/worker/standpoint.h"
#include "base/time.h"

namespace tactus::worker {

// Messages down in order, messages up without ever holding up training. All calls: the training
// thread.
class Agent {
 public:
  virtual ~Agent() = default;

  // The next message if one is there.
  virtual std::optional<ToWorker> Poll() = 0;

  // Waits for the next message. Errors: Unavailable, the agent is gone; InvalidArgument, what came
  // is no message; after either none will come.
  virtual absl::StatusOr<ToWorker> Receive() = 0;

  // Whether Receive would return at once, within `limit`.
  virtual bool Await(Duration limit) = 0;

  // Hands a message over; never blocks.
  virtual void Send(const FromWorker& message) = 0;
  virtual void Send(const SnapshottedMessage& message) = 0;

  // Waits until everything sent is with the agent, at most `limit`. False when it is not.
  virtual bool Flush(Duration limit) = 0;

  // From now on the agent is told once a second where the worker stands, whatever the training
  // thread does.
  virtual void BeginStandings() = 0;
  virtual Standpoint& standpoint() = 0;

  // Nothing comes or goes any more: Receive returns Unavailable. Any thread.
  virtual void HangUp() = 0;
};

}  // namespace tactus::worker
