// The agents as gRPC and protobuf bring them: session::Sessions holds the rules.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "protocol/allegiance.h"
#include "session/sessions.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::service {

// One agent's stream as the sessions see it. All calls on the control thread.
class AgentStream {
 public:
  virtual ~AgentStream() = default;
  // Writes a message; the sessions call again only after Sent().
  virtual void Send(const agent::v1::ToAgent& message) = 0;
  // Ends the stream; nothing of it is heard any more.
  virtual void Close(const absl::Status& status) = 0;
  // From where it was dialled, as gRPC writes it; empty: not known.
  virtual std::string peer() const { return {}; }
  // Whose number of nodes is bounded; empty: its certificate names the one that it may be.
  virtual std::string host() const { return {}; }
};

// What is known of a node, for a listing.
struct NodeView {
  std::string name;
  bool connected = false;
  bool expected = false;  // or connected: it was not called unreachable
  job::WallTime last_seen = 0;
  std::vector<job::DeviceRecord> devices;
  std::string agent_version;
  std::string metrics_address;
  std::string peer;  // as AgentStream has it, of the newest stream
  job::NodeTraits traits;
};

// Translates what agents say, and writes on their streams. One thread.
class AgentSessions {
  using Rules = session::Sessions<AgentStream, agent::v1::ToAgent>;

 public:
  static constexpr int kMissedMax = Rules::kMissedMax;
  static constexpr Duration kBeat = Rules::kBeat;
  static constexpr std::size_t kUnfinishedMax = Rules::kUnfinishedMax;
  static constexpr std::size_t kOutboxMax = Rules::Session::kOutboxMax;

  // Handles an event and calls `done` when its consequences are durable.
  using Emit = std::function<void(job::Event event, std::function<void()> done)>;

  // Takes what a worker of the node wrote; may drop it.
  using TakeLog = std::function<void(const std::string& node, const agent::v1::LogLines& lines)>;

  // Takes what an agent found of a link.
  using TakeProbe = std::function<void(const std::string& node, const agent::v1::LinkProbed& said)>;

  // Whether another node than this has the worker.
  using RunsElsewhere = std::function<bool(WorkerId worker, const std::string& node)>;

  AgentSessions(Emit emit, RunsElsewhere runs_elsewhere);

  // Who this coordinator is. Before the first agent.
  void SetIdentity(protocol::CoordinatorIdentity identity) {
    rules_.SetIdentity(std::move(identity));
  }

  // Nodes of one AgentStream::host that are here or expected, at most. Before the first agent.
  void SetNodesPerHost(std::size_t nodes) { nodes_per_host_ = nodes; }

  // Until then what workers write is dropped.
  void SetTakeLog(TakeLog take_log) { take_log_ = std::move(take_log); }

  // Until then what they found is dropped.
  void SetTakeProbe(TakeProbe take_probe) { take_probe_ = std::move(take_probe); }

  // The first message of a stream. On error the stream is not part of any session; the caller
  // closes it. Errors: InvalidArgument, not a proper Hello; FailedPrecondition, an agent of another
  // version, or with workers of another coordinator or a newer epoch; AlreadyExists, another agent
  // that is alive has the name; ResourceExhausted, too many nodes, also of its host; Unavailable,
  // kUnfinishedMax.
  absl::Status Open(const std::shared_ptr<AgentStream>& stream, const agent::v1::FromAgent& first);

  // A later message; `next` is called when the stream may read on, unless it is closed.
  void Receive(AgentStream* stream, const agent::v1::FromAgent& message,
               std::function<void()> next);

  // The last Send is written.
  void Sent(AgentStream* stream) { rules_.Sent(stream); }

  // See session::Sessions.
  void Expel(AgentStream* stream, const std::string& reason) { rules_.Expel(stream, reason); }

  // The stream is gone. The session waits for another.
  void Closed(AgentStream* stream) { rules_.Closed(stream); }

  // Each part once every kBeat.
  using Part = Rules::Part;
  void Beat(const Part& part = {0, 1}) { rules_.Beat(part); }

  // Tells the agent, now or when it is back; without effect for a node that has no session.
  void Tell(const std::string& node, agent::v1::ToAgent message) {
    rules_.Tell(node, std::move(message));
  }

  // See session::Sessions. Requires: the node is not connected.
  void Forget(const std::string& node) { rules_.Forget(node); }

  // Ends all streams; sessions stay.
  void CloseAll(const absl::Status& status);

  std::vector<NodeView> Nodes() const;  // by name

  // How long each node was not heard, for those of the part that are not called unreachable.
  std::vector<std::pair<std::string, Duration>> Silences(Instant now, const Part& part) const {
    return rules_.Silences(now, part);
  }

 private:
  void Write(AgentStream& stream, const session::Outgoing<agent::v1::ToAgent>& outgoing) const;
  bool IsGone(const std::string& node) const;
  void ForgetHosts();
  bool HostHasRoom(const std::string& host, const std::string& node);
  void SetHost(const std::string& node, const std::string& host);
  std::optional<job::Event> EventOf(const std::string& node, const agent::v1::FromAgent& message);

  Rules rules_;
  const RunsElsewhere runs_elsewhere_;
  std::size_t nodes_per_host_ = Rules::kNodesMax;
  // Names of nodes by the host that they came from last, and the reverse; none is empty.
  std::map<std::string, std::set<std::string>> nodes_of_;
  std::map<std::string, std::string> host_of_;
  TakeProbe take_probe_ = [](const std::string&, const agent::v1::LinkProbed&) {};
  TakeLog take_log_ = [](const std::string&, const agent::v1::LogLines&) {};
};

}  // namespace tactus::service
