// The agent's side of the conversation with the coordinator, over as many streams as it takes.

#pragma once

#include <grpcpp/security/credentials.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/daemon/channel_source.h"
#include "agent/daemon/coordinator_stream.h"
#include "base/rng.h"
#include "base/time.h"
#include "runtime/control_thread.h"
#include "runtime/retry.h"
#include "session/agent_link.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::agent {

using session::Importance;

// Drives session::AgentLink over gRPC. A coordinator that is not to be obeyed is heard no further;
// the link says so and dials on. A stream that ends is dialled again, for ever unless this agent is
// refused, after a growing delay. Used on the control thread alone.
class CoordinatorLink {
 public:
  struct Options {
    ChannelSource channel;
    // Without what `complete` adds.
    tactus::agent::v1::Hello hello;
    session::OutboundLogOptions log = {};
    runtime::BackoffOptions backoff = {.initial = Seconds(0.2), .max = Seconds(5)};
    // A coordinator that accepts the stream and does not say Welcome for so long is dialled anew.
    Duration welcome_timeout = Seconds(10);
  };
  // Called on the control thread; none may destroy the link.
  struct Handlers {
    // Adds what is so now, at every dialling: the workers that run, and the devices' faults.
    std::function<void(tactus::agent::v1::Hello& hello)> complete;
    // A message with a sequence number, each once.
    std::function<void(const tactus::agent::v1::ToAgent& message)> message;
    std::function<void(bool connected)> connected;
    std::function<void(std::uint64_t reports)> dropped;  // so many more reports were lost
    // Something that was sent has arrived.
    std::function<void()> acknowledged = [] {};
    // Workers run or are about to, or something of theirs is still to be brought up.
    std::function<bool()> has_workers;
    // The coordinator lets this node in no more: its workers are given up there.
    std::function<void()> expelled = [] {};
    // Once, last: the coordinator does not work with this agent (its version is another), which has
    // no workers; it is not dialled again.
    std::function<void(const absl::Status& status)> refused;
  };

  CoordinatorLink(runtime::ControlThread& control, Options options, Handlers handlers);

  // Dials for the first time.
  void Start();

  // Another channel is there: goes on over it, at once. What was not acknowledged is sent again.
  void Redial();

  // Sends a message, now or when the coordinator is back. False: it found no room (see
  // OutboundLog).
  [[nodiscard]] bool Send(const tactus::agent::v1::FromAgent& message, Importance importance);

  // The store of the coordinator that is obeyed; empty: there is none yet, or it does not say.
  std::string server() const { return link_.obeyed() ? link_.obeyed()->server : ""; }

  // As the handler was told last.
  bool connected() const { return link_.welcomed(); }

  // Words of workers are not acknowledged yet.
  bool HoldsWords() const { return link_.log().HoldsWords(); }

  // Ends the link once all is acknowledged, or after `limit`; then calls `done`, once, on the
  // control thread. Only then may the link be destroyed and the control thread be stopped.
  void Close(Duration limit, std::function<void()> done);

 private:
  void Dial();
  void OnMessage(const tactus::agent::v1::ToAgent& message);
  void OnWelcome(const tactus::agent::v1::Welcome& welcome);
  void OnEnded(const absl::Status& status);
  void TellWhyNot(const absl::Status& status);
  bool HasWorkers() const { return handlers_.has_workers() || HoldsWords(); }
  void Pump();
  void Beat();
  void CloseIfDone();

  runtime::ControlThread& control_;
  const Options options_;
  const Handlers handlers_;
  std::unique_ptr<CoordinatorStream::Stub> stub_;  // null: it was not dialled yet
  Rng rng_;
  session::AgentLink<std::string> link_;       // payloads are FromAgent, serialized
  std::unique_ptr<CoordinatorStream> stream_;  // null between two
  std::string objection_;                      // to the present stream's coordinator; empty: none
  Duration heartbeat_interval_{};
  bool redials_ = false;  // the present stream was ended for another channel
  int failures_ = 0;      // streams that ended since the last Welcome
  std::uint64_t dropped_told_ = 0;
  std::string last_reason_;  // why the last stream ended: logged when it changes
  runtime::Timer dial_timer_, welcome_timer_, heartbeat_timer_, close_timer_;
  std::function<void()> closed_;  // set by Close
};

// The channel to the coordinator: keepalive, limits, quick reconnects. Null credentials: plain.
std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& coordinator,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials = nullptr);

}  // namespace tactus::agent
