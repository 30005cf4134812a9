// One gRPC stream to the coordinator, from dialling to its end.

#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "agent/daemon/lifetime.h"
#include "runtime/control_thread.h"
#include "tactus/agent/v1/session.grpc.pb.h"

namespace tactus::agent {

// Reads one message at a time, the next when the last was handled; has one write in flight at most.
// Used on the control thread alone; what gRPC's threads report is posted there.
class CoordinatorStream {
 public:
  using Stub = tactus::agent::v1::AgentSession::Stub;

  // Called on the control thread, never after destruction; each may destroy the stream.
  struct Handlers {
    std::function<void(const tactus::agent::v1::ToAgent& message)> message;
    std::function<void()> written;                          // the write is done, another may follow
    std::function<void(const absl::Status& status)> ended;  // once, last
  };

  // `stub` and `control` outlive the call, which ends with `ended`.
  CoordinatorStream(runtime::ControlThread& control, Stub& stub, Handlers handlers);
  ~CoordinatorStream();  // Cancel()
  CoordinatorStream(const CoordinatorStream&) = delete;
  CoordinatorStream& operator=(const CoordinatorStream&) = delete;

  // Requires: no write in flight.
  void Write(tactus::agent::v1::FromAgent message);

  // Ends the call from this side; `ended` follows.
  void Cancel();

 private:
  class Reactor;
  const Lifetime lifetime_;
  const std::shared_ptr<Reactor> reactor_;  // shared with gRPC until the call is over
};

}  // namespace tactus::agent
