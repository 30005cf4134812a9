// The agents: who is connected, what they have been told, and since when they are not heard.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/shell/outbox.h"
#include "protocol/allegiance.h"
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
};

// What is known of a node, for a listing.
struct NodeView {
  std::string name;
  bool connected = false;
  job::WallTime last_seen = 0;
  std::vector<job::DeviceRecord> devices;
  std::string agent_version;
  std::string metrics_address;
  std::string peer;  // as AgentStream has it, of the newest stream
  job::NodeTraits traits;
};

// A session is an agent process (its incarnation), over as many streams as it takes: messages are
// numbered in both directions and each is handled once. An agent unheard for kMissedMax beats is
// called unreachable, which ends its stream and nothing else: what it is told waits for it, and the
// same incarnation goes on where it was, however long it was away. Beats are counted by calls of
// Beat(), not by the clock, so that a coordinator that was itself stopped misses nobody on waking.
// While a message of an agent is being dealt with, its silence is ours. One thread.
class AgentSessions {
 public:
  static constexpr int kMissedMax = 5;
  static constexpr std::size_t kNodesMax = 16384;
  static constexpr Duration kBeat = Seconds(2);
  // Of one agent's events, those whose consequences are not durable yet. Each of its streams adds
  // two at most, so that an agent that dials again and again while the disk is full is held off.
  static constexpr std::size_t kUnfinishedMax = 64;

  // Handles an event and calls `done` when its consequences are durable.
  using Emit = std::function<void(job::Event event, std::function<void()> done)>;

  // Takes what a worker of the node wrote; may drop it.
  using TakeLog = std::function<void(const std::string& node, const agent::v1::LogLines& lines)>;

  explicit AgentSessions(Emit emit);
  ~AgentSessions();

  // Who this coordinator is. Before the first agent.
  void SetIdentity(protocol::CoordinatorIdentity identity) { identity_ = std::move(identity); }

  // Until then what workers write is dropped.
  void SetTakeLog(TakeLog take_log) { take_log_ = std::move(take_log); }

  // The first message of a stream. On error the stream is not part of any session; the caller
  // closes it. Errors: InvalidArgument, not a proper Hello; FailedPrecondition, an agent of another
  // version, or with workers of another coordinator or a newer epoch; AlreadyExists, another agent
  // that is alive has the name; ResourceExhausted, too many nodes; Unavailable, kUnfinishedMax.
  absl::Status Open(const std::shared_ptr<AgentStream>& stream, const agent::v1::FromAgent& first);

  // A later message; `next` is called when the stream may read on, unless it is closed.
  void Receive(AgentStream* stream, const agent::v1::FromAgent& message,
               std::function<void()> next);

  // The last Send is written.
  void Sent(AgentStream* stream);

  // The stream is gone. The session waits for another.
  void Closed(AgentStream* stream);

  // Sessions in `count` parts of about one size, so that ten thousand acknowledgements do
  // not leave at once.
  struct Part {
    std::size_t index = 0;  // < count
    std::size_t count = 1;
  };

  // Each part once every kBeat.
  void Beat(const Part& part = {0, 1});

  // Tells the agent, now or when it is back; without effect for a node that has no session.
  void Tell(const std::string& node, agent::v1::ToAgent message);

  // Ends all streams; sessions stay.
  void CloseAll(const absl::Status& status);

  std::vector<NodeView> Nodes() const;  // by name

  // How long each node was not heard, for those of the part that are not called unreachable.
  std::vector<std::pair<std::string, Duration>> Silences(Instant now, const Part& part) const;

 private:
  struct Session;

  std::span<Session* const> Of(const Part& part) const;
  Session* Find(const AgentStream* stream);
  Session* Admit(const std::string& node);
  void Attach(Session& session, const std::shared_ptr<AgentStream>& stream,
              const agent::v1::FromAgent& first);
  void Handle(Session& session, const agent::v1::FromAgent& message, std::function<void()> next);
  void Handled(const std::string& node, std::uint64_t incarnation, std::uint64_t sequence);
  void EmitFor(Session& session, job::Event event, std::function<void()> done);
  // Sends what is due; `acknowledge`: also an acknowledgement alone.
  void Pump(Session& session, bool acknowledge = false);
  // The session ends: what was said and not acknowledged is forgotten. Its agent is unreachable, or
  // is known to have ended.
  template <typename Loss>
  void End(Session& session, const std::string& reason, Loss loss = {});
  void Miss(Session& session);
  void CloseStream(Session& session, const absl::Status& status);

  const Emit emit_;
  protocol::CoordinatorIdentity identity_;
  TakeLog take_log_ = [](const std::string&, const agent::v1::LogLines&) {};
  std::map<std::string, std::unique_ptr<Session>> sessions_;  // by node
  std::vector<Session*> roll_;  // all of them, in the order in which they came
  std::unordered_map<const AgentStream*, Session*> streams_;  // those attached
};

}  // namespace tactus::service
