#include "agent/daemon/coordinator_link.h"

#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "identity/dial.h"
#include "runtime/logging.h"
#include "runtime/status.h"

namespace tactus::agent {

using tactus::agent::v1::FromAgent;
using tactus::agent::v1::Hello;
using tactus::agent::v1::ToAgent;
using tactus::agent::v1::Welcome;

namespace {

// What a coordinator may ask for; outside of it, the nearest.
constexpr Duration kHeartbeatMin = Seconds(0.05);
constexpr Duration kHeartbeatMax = Seconds(60);
constexpr char kVersionMismatch[] = "AGENT_VERSION_MISMATCH";
constexpr char kExpelled[] = "EXPELLED";
constexpr char kOtherCoordinator[] = "AGENT_OF_ANOTHER_COORDINATOR";

Duration HeartbeatInterval(const Welcome& welcome) {
  const Duration asked = std::chrono::seconds(welcome.heartbeat_interval().seconds()) +
                         Duration(welcome.heartbeat_interval().nanos());
  return std::clamp(asked, kHeartbeatMin, kHeartbeatMax);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(
    const std::string& coordinator, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(
      64 << 20);  // what the coordinator may send: all endpoints of a group
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  return identity::Dial({.addresses = coordinator,
                         .service = "tactus.agent.v1.AgentSession",
                         .credentials = credentials,
                         // Longer than a coordinator may stand still without losing its streams.
                         .keepalive_timeout = 90'000},
                        std::move(arguments));
}

CoordinatorLink::CoordinatorLink(runtime::ControlThread& control, Options options,
                                 Handlers handlers)
    : control_(control),
      options_(std::move(options)),
      handlers_(std::move(handlers)),
      rng_(Rng(options_.hello.incarnation()).Fork("backoff")),
      link_(options_.log),
      dial_timer_(control),
      welcome_timer_(control),
      heartbeat_timer_(control),
      close_timer_(control) {}

void CoordinatorLink::Start() { Dial(); }

void CoordinatorLink::Redial() {
  if (stream_ == nullptr || closed_ != nullptr) return;  // the next dialling takes it anyway
  redials_ = true;
  stream_->Cancel();
}

void CoordinatorLink::Dial() {
  stub_ = tactus::agent::v1::AgentSession::NewStub(options_.channel.Get());
  stream_ = std::make_unique<CoordinatorStream>(
      control_, *stub_,
      CoordinatorStream::Handlers{
          .message = [this](const ToAgent& message) { OnMessage(message); },
          .written =
              [this] {
                link_.Sent();
                Pump();
              },
          .ended = [this](const absl::Status& status) { OnEnded(status); }});
  FromAgent message;
  message.set_acknowledged(link_.Dial());
  *message.mutable_hello() = options_.hello;
  handlers_.complete(*message.mutable_hello());
  link_.log().ForEach(Importance::kExit, [&](const std::string& payload) {
    FromAgent exit;
    TACTUS_CHECK(exit.ParseFromString(payload));
    if (!exit.has_worker_exited()) return;
    message.mutable_hello()->add_ended_workers(exit.worker_exited().worker_id());
  });
  if (link_.obeyed()) {
    message.mutable_hello()->set_server_id(link_.obeyed()->server);
    message.mutable_hello()->set_epoch(link_.obeyed()->epoch);
  }
  stream_->Write(std::move(message));
  welcome_timer_.After(options_.welcome_timeout, [this] { stream_->Cancel(); });
}

void CoordinatorLink::OnMessage(const ToAgent& message) {
  if (!link_.welcomed()) {
    if (!message.has_welcome()) return stream_->Cancel();  // no coordinator of ours
    return OnWelcome(message.welcome());
  }
  switch (link_.Receive(message.sequence(), message.acknowledged())) {
    case session::Receiver::Verdict::kGap:
      return stream_->Cancel();
    case session::Receiver::Verdict::kHandle:
      handlers_.message(message);
      break;
    case session::Receiver::Verdict::kKnown:
      break;
  }
  Pump();
  CloseIfDone();
  handlers_.acknowledged();
}

void CoordinatorLink::OnWelcome(const Welcome& welcome) {
  objection_ = link_.Welcome({.server = welcome.server_id(), .epoch = welcome.epoch()},
                             welcome.acknowledged(), handlers_.has_workers());
  if (!objection_.empty()) return stream_->Cancel();
  failures_ = 0;
  last_reason_.clear();
  welcome_timer_.Cancel();
  heartbeat_interval_ = HeartbeatInterval(welcome);
  heartbeat_timer_.After(heartbeat_interval_, [this] { Beat(); });
  runtime::Logger("agent")->info("coordinator connected node={} unsent={} dropped={}",
                                 options_.hello.node(), link_.log().size(), link_.log().dropped());
  handlers_.connected(true);
  Pump();
  CloseIfDone();
  handlers_.acknowledged();
}

void CoordinatorLink::Beat() {
  link_.Beat();
  heartbeat_timer_.After(heartbeat_interval_, [this] { Beat(); });
  Pump();
}

void CoordinatorLink::OnEnded(const absl::Status& status) {
  stream_.reset();
  welcome_timer_.Cancel();
  heartbeat_timer_.Cancel();
  if (link_.Closed()) handlers_.connected(false);
  if (closed_ != nullptr) {
    close_timer_.Cancel();
    return std::exchange(closed_, nullptr)();
  }
  if (std::exchange(redials_, false) && absl::IsCancelled(status)) return Dial();
  if (runtime::ReasonOf(status).reason == kExpelled) handlers_.expelled();
  // Workers outlive a coordinator of another version as they outlive one that is away.
  const bool mismatch = runtime::ReasonOf(status).reason == kVersionMismatch;
  if (mismatch && !HasWorkers()) return handlers_.refused(status);
  TellWhyNot(objection_.empty() ? status : absl::FailedPreconditionError(objection_));
  objection_.clear();
  dial_timer_.After(runtime::BackoffDelay(options_.backoff, ++failures_, rng_), [this] { Dial(); });
}

// One line for each reason.
void CoordinatorLink::TellWhyNot(const absl::Status& status) {
  const std::string reason = status.ok() ? "it ended the stream" : std::string(status.message());
  if (reason == std::exchange(last_reason_, reason)) return;
  const auto log = runtime::Logger("agent");
  const std::string kind = runtime::ReasonOf(status).reason;
  if (absl::IsAlreadyExists(status)) {
    log->error(
        "name taken, another agent is connected as this node; give one "
        "of the two another --node; dialling on node={} reason={}",
        options_.hello.node(), runtime::Quoted(reason));
  } else if (!objection_.empty() || kind == kOtherCoordinator || kind == kVersionMismatch) {
    log->error(
        "coordinator not obeyed, the workers here run on and it is dialled on; restart the agent "
        "to move it node={} reason={}",
        options_.hello.node(), runtime::Quoted(reason));
  } else {
    log->warn("coordinator not connected node={} reason={}", options_.hello.node(),
              runtime::Quoted(reason));
  }
}

bool CoordinatorLink::Send(const FromAgent& message, Importance importance) {
  const bool kept = link_.log().Append(message.SerializeAsString(), importance);
  const std::uint64_t dropped = link_.log().dropped();
  if (dropped != dropped_told_) {
    handlers_.dropped(dropped - std::exchange(dropped_told_, dropped));
  }
  Pump();
  // Reports and lines of a log may be lost: that is no failure of who sent them.
  return kept || importance == Importance::kReport || importance == Importance::kLogLines;
}

void CoordinatorLink::Pump() {
  if (stream_ == nullptr) return;
  const auto next = link_.Next();
  if (!next) return;
  FromAgent message;
  if (next->heartbeat) message.mutable_heartbeat();
  if (next->entry != nullptr) {
    TACTUS_CHECK(message.ParseFromString(next->entry->payload));
    message.set_sequence(next->entry->sequence);
  }
  message.set_acknowledged(next->acknowledged);
  stream_->Write(std::move(message));
}

void CoordinatorLink::Close(Duration limit, std::function<void()> done) {
  dial_timer_.Cancel();
  if (stream_ == nullptr) return done();
  closed_ = std::move(done);
  close_timer_.After(limit, [this] { stream_->Cancel(); });
  CloseIfDone();
}

void CoordinatorLink::CloseIfDone() {
  if (closed_ != nullptr && link_.welcomed() && link_.log().empty() && stream_ != nullptr)
    stream_->Cancel();
}

}  // namespace tactus::agent
