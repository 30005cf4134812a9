#include "coordinator/shell/agent_sessions.h"

#include <utility>

#include "coordinator/access/bounds.h"
#include "coordinator/shell/agent_conversion.h"
#include "coordinator/shell/job_conversion.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// It says so in one line, which names what the agent runs.
absl::Status OtherCoordinator(const agent::v1::Hello& hello, const std::string& objection) {
  runtime::Logger("agents")->error("agent of another coordinator node={} workers={} reason={}",
                                   hello.node(), hello.running_workers_size(),
                                   runtime::Quoted(objection));
  return runtime::WithReason(
      absl::FailedPreconditionError("hello.server_id: " + objection),
      {.reason = "AGENT_OF_ANOTHER_COORDINATOR",
       .metadata = {{"server_id", hello.server_id()}, {"epoch", std::to_string(hello.epoch())}}});
}

absl::Status StatusOf(const session::Refusal& refusal, const agent::v1::Hello& hello) {
  switch (refusal.kind) {
    case session::Refusal::Kind::kOtherCoordinator:
      return OtherCoordinator(hello, refusal.reason);
    case session::Refusal::Kind::kNodes:
      return absl::ResourceExhaustedError(refusal.reason);
    case session::Refusal::Kind::kName:
      return absl::AlreadyExistsError(refusal.reason);
    case session::Refusal::Kind::kUnfinished:
      return absl::UnavailableError(refusal.reason);
  }
  return absl::InternalError(refusal.reason);
}

absl::Status StatusOf(session::Ending ending, const std::string& reason) {
  const std::string message = "session: " + reason;
  return ending == session::Ending::kAway ? absl::UnavailableError(message)
                                          : absl::AbortedError(message);
}

// Of whom the message is; 0: of the agent itself.
WorkerId WorkerOf(const agent::v1::FromAgent& message) {
  if (message.has_from_worker()) return WorkerId{message.from_worker().worker_id()};
  if (message.has_worker_exited()) return WorkerId{message.worker_exited().worker_id()};
  return WorkerId{};
}

}  // namespace

AgentSessions::AgentSessions(Emit emit, RunsElsewhere runs_elsewhere)
    : rules_(
          {.emit = std::move(emit),
           .send = [this](AgentStream& stream, const auto& outgoing) { Write(stream, outgoing); },
           .close = [](AgentStream& stream, session::Ending ending,
                       const std::string& reason) { stream.Close(StatusOf(ending, reason)); }}),
      runs_elsewhere_(std::move(runs_elsewhere)) {}

absl::Status AgentSessions::Open(const std::shared_ptr<AgentStream>& stream,
                                 const agent::v1::FromAgent& first) {
  if (!first.has_hello()) {
    return runtime::InvalidFields(
        {{.field = "hello", .description = "is missing in the first message"}});
  }
  const agent::v1::Hello& hello = first.hello();
  absl::StatusOr<job::NodeJoined> joined = FromProto(hello);
  if (!joined.ok()) return joined.status();
  const absl::Status version = CheckAgentVersion(hello.agent_version(), TACTUS_VERSION);
  if (!version.ok()) return version;
  const std::string host = stream->host();
  if (!HostHasRoom(host, hello.node())) {
    return access::Beyond(access::Bound::kNodes,
                          "hello.node: " + std::to_string(nodes_per_host_) +
                              " nodes are here from " + host +
                              ", which is all that a host may bring (--nodes-per-host)");
  }
  const std::optional<session::Refusal> refusal =
      rules_.Open(stream,
                  {.joined = *std::move(joined),
                   .acknowledged = first.acknowledged(),
                   .obeyed = {.server = hello.server_id(), .epoch = hello.epoch()},
                   .facts = {.agent_version = hello.agent_version(),
                             .metrics_address = hello.metrics_address(),
                             .peer = stream->peer()}},
                  runtime::Now());
  if (refusal) return StatusOf(*refusal, hello);
  SetHost(hello.node(), host);
  return absl::OkStatus();
}

bool AgentSessions::IsGone(const std::string& node) const {
  const auto session = rules_.all().find(node);
  return session == rules_.all().end() ||
         (session->second->stream == nullptr && !session->second->Expected());
}

// Room is that of nodes that are neither here nor expected.
bool AgentSessions::HostHasRoom(const std::string& host, const std::string& node) {
  const auto found = nodes_of_.find(host);
  if (host.empty() || found == nodes_of_.end()) return true;
  if (found->second.contains(node) || found->second.size() < nodes_per_host_) return true;
  ForgetHosts();
  const auto left = nodes_of_.find(host);
  return left == nodes_of_.end() || left->second.size() < nodes_per_host_;
}

// Of nodes that are gone.
void AgentSessions::ForgetHosts() {
  std::erase_if(host_of_, [this](const auto& entry) { return IsGone(entry.first); });
  nodes_of_.clear();
  for (const auto& [node, host] : host_of_) nodes_of_[host].insert(node);
}

void AgentSessions::SetHost(const std::string& node, const std::string& host) {
  // Whoever comes from ever other hosts leaves no more than this.
  if (host_of_.size() >= 2 * Rules::kNodesMax) ForgetHosts();
  const auto former = host_of_.find(node);
  if (former != host_of_.end()) {
    if (former->second == host) return;
    const auto nodes = nodes_of_.find(former->second);
    nodes->second.erase(node);
    if (nodes->second.empty()) nodes_of_.erase(nodes);
    host_of_.erase(former);
  }
  if (host.empty()) return;
  nodes_of_[host].insert(node);
  host_of_[node] = host;
}

void AgentSessions::Receive(AgentStream* stream, const agent::v1::FromAgent& message,
                            std::function<void()> next) {
  rules_.Receive(
      stream, {.sequence = message.sequence(), .acknowledged = message.acknowledged()},
      runtime::Now(), [&](const std::string& node) { return EventOf(node, message); },
      std::move(next));
}

std::optional<job::Event> AgentSessions::EventOf(const std::string& node,
                                                 const agent::v1::FromAgent& message) {
  if (message.has_log_lines()) {
    take_log_(node, message.log_lines());
    return {};
  }
  if (message.has_link_probed()) {
    take_probe_(node, message.link_probed());
    return {};
  }
  // Whose device it sits on says what a worker does: no other agent can end it, or report for it.
  const WorkerId worker = WorkerOf(message);
  if (worker != WorkerId{} && runs_elsewhere_(worker, node)) {
    runtime::Logger("agents")->warn("message of another node's worker dropped node={} worker={}",
                                    node, worker.value);
    return {};
  }
  absl::StatusOr<job::Event> event = FromProto(message, node);
  if (event.ok()) return *std::move(event);
  runtime::Logger("agents")->warn("message refused node={} error={}", node,
                                  runtime::Quoted(event.status().ToString()));
  return {};
}

void AgentSessions::Write(AgentStream& stream,
                          const session::Outgoing<agent::v1::ToAgent>& outgoing) const {
  agent::v1::ToAgent message;
  if (outgoing.welcome) {
    agent::v1::Welcome& welcome = *message.mutable_welcome();
    *welcome.mutable_heartbeat_interval() = ToProtoDuration(ToSeconds(kBeat));
    welcome.set_acknowledged(outgoing.acknowledged);
    welcome.set_server_id(rules_.identity().server);
    welcome.set_epoch(rules_.identity().epoch);
  } else if (outgoing.told != nullptr) {
    message = outgoing.told->message;
    message.set_sequence(outgoing.told->sequence);
  }
  message.set_acknowledged(outgoing.acknowledged);
  stream.Send(message);
}

void AgentSessions::CloseAll(const absl::Status& status) {
  for (const std::shared_ptr<AgentStream>& stream : rules_.TakeStreams()) stream->Close(status);
}

std::vector<NodeView> AgentSessions::Nodes() const {
  const Instant now = runtime::Now();
  const job::WallTime wall = runtime::WallNow();
  std::vector<NodeView> nodes;
  for (const auto& [node, session] : rules_.all()) {
    nodes.push_back({.name = node,
                     .connected = session->stream != nullptr,
                     .expected = session->Expected(),
                     .last_seen = wall - (now - session->last_heard).count(),
                     .devices = session->devices,
                     .agent_version = session->facts.agent_version,
                     .metrics_address = session->facts.metrics_address,
                     .peer = session->facts.peer,
                     .traits = session->traits});
  }
  return nodes;
}

}  // namespace tactus::service
