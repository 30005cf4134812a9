#include "coordinator/shell/agent_sessions.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "coordinator/shell/agent_conversion.h"
#include "coordinator/shell/job_conversion.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// Acknowledgements ride on other messages, and alone on every beat or after so many.
constexpr std::uint64_t kUnacknowledgedMax = 256;

// An agent that runs another coordinator's workers is not ours, and says so; it would not obey. One
// of before identities were told does not say.
absl::Status CheckAllegiance(const agent::v1::Hello& hello,
                             const protocol::CoordinatorIdentity& identity) {
  if (hello.running_workers().empty() || hello.server_id().empty()) return absl::OkStatus();
  const std::string objection = protocol::Allegiance::Objection(
      {.server = hello.server_id(), .epoch = hello.epoch()}, identity);
  if (objection.empty()) return absl::OkStatus();
  runtime::Logger("agents")->error("agent of another coordinator node={} workers={} reason={}",
                                   hello.node(), hello.running_workers_size(),
                                   runtime::Quoted(objection));
  return runtime::WithReason(
      absl::FailedPreconditionError("hello.server_id: " + objection),
      {.reason = "AGENT_OF_ANOTHER_COORDINATOR",
       .metadata = {{"server_id", hello.server_id()}, {"epoch", std::to_string(hello.epoch())}}});
}

}  // namespace

struct AgentSessions::Session {
  std::string node;
  std::uint64_t incarnation = 0;
  std::vector<job::DeviceRecord> devices;
  std::string agent_version;
  std::string metrics_address;
  std::string peer;
  job::NodeTraits traits;

  // Shared with the call that it is; null: not connected.
  std::shared_ptr<AgentStream> stream;
  std::optional<agent::v1::ToAgent> welcome;  // to be sent first
  bool writing = false;
  bool busy = false;  // a message of the present stream is being dealt with

  Outbox outbox;
  std::optional<std::uint64_t>
      received;                     // highest number taken in; unset: any first number will do
  std::set<std::uint64_t> pending;  // of those taken in: the consequences are not durable yet
  std::uint64_t acknowledged = 0;   // up to here the agent was told that they are
  std::size_t unfinished = 0;       // events of this node that are being dealt with

  bool ended = true;     // or has not begun: nothing that was said waits for the agent
  bool missing = false;  // it was called unreachable and is not back
  bool heard = false;
  int missed = 0;
  Instant last_heard;
  job::WallTime last_seen = 0;

  // Up to here the consequences are durable, or there are none.
  std::uint64_t Handled() const {
    return pending.empty() ? received.value_or(0) : *pending.begin() - 1;
  }
};

AgentSessions::AgentSessions(Emit emit) : emit_(std::move(emit)) {}

AgentSessions::~AgentSessions() = default;

absl::Status AgentSessions::Open(const std::shared_ptr<AgentStream>& stream,
                                 const agent::v1::FromAgent& first) {
  if (!first.has_hello()) {
    return runtime::InvalidFields(
        {{.field = "hello", .description = "is missing in the first message"}});
  }
  absl::StatusOr<job::NodeJoined> joined = FromProto(first.hello());
  if (!joined.ok()) return joined.status();
  const absl::Status version = CheckAgentVersion(first.hello().agent_version(), TACTUS_VERSION);
  if (!version.ok()) return version;
  const absl::Status allegiance = CheckAllegiance(first.hello(), identity_);
  if (!allegiance.ok()) return allegiance;
  Session* const session = Admit(joined->node);
  if (session == nullptr) {
    return absl::ResourceExhaustedError("nodes: this coordinator holds " +
                                        std::to_string(kNodesMax));
  }
  const bool same = session->incarnation == first.hello().incarnation();
  if (!same && session->stream != nullptr && session->missed <= 1) {
    return absl::AlreadyExistsError("hello.node: another agent is connected as " + joined->node +
                                    "; names are unique");
  }
  if (session->unfinished >= kUnfinishedMax) {
    return absl::UnavailableError("session: " + std::to_string(kUnfinishedMax) + " events of " +
                                  joined->node + " are not durable yet; try again later");
  }
  joined->same_incarnation = same && !session->ended;
  if (!same && !session->ended) {
    End<job::NodeLost>(*session, "the agent was started again",
                       {.ended_workers = joined->ended_workers});
  }
  session->devices = joined->devices;
  session->traits = joined->traits;
  Attach(*session, stream, first);
  EmitFor(*session, *std::move(joined), [] {});
  Pump(*session);
  return absl::OkStatus();
}

// The session of a node, made when there is none; null when there is no room. Room is that of who
// is not here: if it comes back, it tells what runs there as it does a coordinator that restarted.
AgentSessions::Session* AgentSessions::Admit(const std::string& node) {
  const auto found = sessions_.find(node);
  if (found != sessions_.end()) return found->second.get();
  if (sessions_.size() >= kNodesMax) {
    const auto gone = std::find_if(sessions_.begin(), sessions_.end(), [](const auto& entry) {
      return (entry.second->ended || entry.second->missing) && entry.second->stream == nullptr;
    });
    if (gone == sessions_.end()) return nullptr;
    std::erase(roll_, gone->second.get());
    sessions_.erase(gone);
  }
  auto session = std::make_unique<Session>();
  session->node = node;
  roll_.push_back(session.get());
  return (sessions_[node] = std::move(session)).get();
}

// Binds the stream to the session and works out where both directions resume.
void AgentSessions::Attach(Session& session, const std::shared_ptr<AgentStream>& stream,
                           const agent::v1::FromAgent& first) {
  const agent::v1::Hello& hello = first.hello();
  if (session.stream != nullptr) {
    streams_.erase(session.stream.get());
    session.stream->Close(absl::AbortedError("session: replaced by a newer stream of this agent"));
  }
  if (session.incarnation != hello.incarnation()) {
    session.received.reset();
    session.pending.clear();
    session.acknowledged = 0;
  }
  if (session.ended) {
    session.outbox.Restart(first.acknowledged());
  } else {
    session.outbox.Rewind(first.acknowledged());
  }
  session.incarnation = hello.incarnation();
  session.agent_version = hello.agent_version();
  session.metrics_address = hello.metrics_address();
  session.peer = stream->peer();
  session.stream = stream;
  session.writing = false;
  session.busy = false;
  session.ended = false;
  session.missing = false;
  session.heard = true;
  session.missed = 0;
  session.last_heard = runtime::Now();
  session.last_seen = runtime::WallNow();
  session.welcome.emplace();
  *session.welcome->mutable_welcome()->mutable_heartbeat_interval() =
      ToProtoDuration(ToSeconds(kBeat));
  session.welcome->mutable_welcome()->set_acknowledged(session.Handled());
  session.welcome->mutable_welcome()->set_server_id(identity_.server);
  session.welcome->mutable_welcome()->set_epoch(identity_.epoch);
  streams_[stream.get()] = &session;
}

void AgentSessions::Receive(AgentStream* stream, const agent::v1::FromAgent& message,
                            std::function<void()> next) {
  Session* const session = Find(stream);
  if (session == nullptr) return;
  session->heard = true;
  session->last_heard = runtime::Now();
  session->last_seen = runtime::WallNow();
  session->outbox.Acknowledge(message.acknowledged());
  const std::uint64_t sequence = message.sequence();
  if (sequence == 0 || (session->received && sequence <= *session->received)) return next();
  if (session->received && sequence != *session->received + 1) {
    Closed(stream);
    stream->Close(absl::AbortedError("session: message " + std::to_string(sequence) +
                                     " came after " + std::to_string(*session->received)));
    return;
  }
  session->received = sequence;
  Handle(*session, message, std::move(next));
}

void AgentSessions::Handle(Session& session, const agent::v1::FromAgent& message,
                           std::function<void()> next) {
  if (message.has_log_lines()) {
    take_log_(session.node, message.log_lines());
    Handled(session.node, session.incarnation, message.sequence());
    return next();
  }
  absl::StatusOr<job::Event> event = FromProto(message, session.node);
  if (!event.ok()) {
    runtime::Logger("agents")->warn("message refused node={} error={}", session.node,
                                    runtime::Quoted(event.status().ToString()));
    return next();
  }
  session.busy = true;
  session.pending.insert(message.sequence());
  EmitFor(session, *std::move(event),
          [this, node = session.node, incarnation = session.incarnation,
           sequence = message.sequence(), stream = session.stream, next = std::move(next)] {
            Handled(node, incarnation, sequence);
            Session* const current = Find(stream.get());
            if (current == nullptr) return;
            current->busy = false;
            next();
          });
}

// The consequences of a message are durable; the session may have changed since.
void AgentSessions::Handled(const std::string& node, std::uint64_t incarnation,
                            std::uint64_t sequence) {
  const auto found = sessions_.find(node);
  if (found == sessions_.end() || found->second->incarnation != incarnation) return;
  Session& session = *found->second;
  session.pending.erase(sequence);
  const std::uint64_t handled = session.Handled();
  if (handled >= session.acknowledged + kUnacknowledgedMax) Pump(session, true);
}

// Hands an event of the session's node on and counts it until it is dealt with. The session may be
// another one, or none, by then.
void AgentSessions::EmitFor(Session& session, job::Event event, std::function<void()> done) {
  ++session.unfinished;
  emit_(std::move(event), [this, node = session.node, done = std::move(done)] {
    const auto found = sessions_.find(node);
    if (found != sessions_.end() && found->second->unfinished > 0) --found->second->unfinished;
    done();
  });
}

void AgentSessions::Sent(AgentStream* stream) {
  Session* const session = Find(stream);
  if (session == nullptr) return;
  session->writing = false;
  Pump(*session);
}

void AgentSessions::Closed(AgentStream* stream) {
  Session* const session = Find(stream);
  if (session == nullptr) return;
  streams_.erase(stream);
  session->stream.reset();
  session->busy = false;  // what is dealt with now is nobody's silence
}

void AgentSessions::Pump(Session& session, bool acknowledge) {
  if (session.stream == nullptr || session.writing) return;
  agent::v1::ToAgent message;
  if (session.welcome.has_value()) {
    message = *std::move(session.welcome);
    session.welcome.reset();
  } else if (const agent::v1::ToAgent* next = session.outbox.Next()) {
    message = *next;
  } else if (!acknowledge || session.Handled() <= session.acknowledged) {
    return;
  }
  session.acknowledged = std::max(session.acknowledged, session.Handled());
  message.set_acknowledged(session.acknowledged);
  session.writing = true;
  session.stream->Send(message);
}

std::span<AgentSessions::Session* const> AgentSessions::Of(const Part& part) const {
  const std::size_t begin = roll_.size() * part.index / part.count;
  const std::size_t end = roll_.size() * (part.index + 1) / part.count;
  return std::span(roll_).subspan(begin, end - begin);
}

void AgentSessions::Beat(const Part& part) {
  std::vector<Session*> silent;
  for (Session* const session : Of(part)) {
    if (session->ended || session->missing) continue;
    if (session->heard || session->busy) {
      session->missed = 0;
    } else if (++session->missed >= kMissedMax) {
      silent.push_back(session);
    }
    session->heard = false;
    Pump(*session, true);
  }
  for (Session* session : silent) Miss(*session);
}

// The stream goes, so that the agent says anew what runs there before anything else is heard of it.
void AgentSessions::Miss(Session& session) {
  const std::string reason = "not heard for " + std::to_string(kMissedMax) + " heartbeats of " +
                             std::to_string(static_cast<int>(ToSeconds(kBeat))) + " s";
  session.missing = true;
  CloseStream(session, absl::UnavailableError("session: " + reason));
  EmitFor(session, job::NodeUnreachable{.node = session.node, .reason = reason}, [] {});
}

template <typename Loss>
void AgentSessions::End(Session& session, const std::string& reason, Loss loss) {
  session.ended = true;
  session.missing = false;
  session.outbox.Restart(0);
  CloseStream(session, absl::UnavailableError("session: ended, " + reason));
  loss.node = session.node;
  loss.reason = reason;
  EmitFor(session, std::move(loss), [] {});
}

void AgentSessions::CloseStream(Session& session, const absl::Status& status) {
  session.busy = false;
  if (session.stream == nullptr) return;
  const std::shared_ptr<AgentStream> stream = std::move(session.stream);
  session.stream.reset();
  streams_.erase(stream.get());
  stream->Close(status);
}

void AgentSessions::Tell(const std::string& node, agent::v1::ToAgent message) {
  const auto found = sessions_.find(node);
  if (found == sessions_.end() || found->second->ended) return;
  Session& session = *found->second;
  if (session.outbox.Append(std::move(message))) return Pump(session);
  // It reads nothing: what is bounded cannot wait for it any longer. Its workers may live all the
  // same; when it comes again, it is told anew what is so.
  End<job::NodeUnreachable>(
      session, std::to_string(Outbox::kMessagesMax) + " messages wait for its acknowledgement");
}

void AgentSessions::CloseAll(const absl::Status& status) {
  streams_.clear();
  for (const auto& [node, session] : sessions_) {
    if (session->stream == nullptr) continue;
    session->stream->Close(status);
    session->stream.reset();
    session->busy = false;
  }
}

std::vector<NodeView> AgentSessions::Nodes() const {
  std::vector<NodeView> nodes;
  for (const auto& [node, session] : sessions_) {
    nodes.push_back({.name = node,
                     .connected = session->stream != nullptr,
                     .last_seen = session->last_seen,
                     .devices = session->devices,
                     .agent_version = session->agent_version,
                     .metrics_address = session->metrics_address,
                     .peer = session->peer,
                     .traits = session->traits});
  }
  return nodes;
}

std::vector<std::pair<std::string, Duration>> AgentSessions::Silences(Instant now,
                                                                      const Part& part) const {
  std::vector<std::pair<std::string, Duration>> silences;
  for (const Session* session : Of(part)) {
    if (!session->ended && !session->missing) {
      silences.emplace_back(session->node, now - session->last_heard);
    }
  }
  return silences;
}

AgentSessions::Session* AgentSessions::Find(const AgentStream* stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second;
}

}  // namespace tactus::service
