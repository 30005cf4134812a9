// The agents at the coordinator: who is admitted, what each was told and has said, and since when
// it is not heard.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "protocol/allegiance.h"
#include "session/session.h"

namespace tactus::session {

// The first message of a stream.
struct Opening {
  job::NodeJoined joined{};
  std::uint64_t acknowledged = 0;          // what the agent has of what it was told
  protocol::CoordinatorIdentity obeyed{};  // whose workers it runs; nobody's: it does not say
  AgentFacts facts{};
};

// Why an agent was not admitted.
struct Refusal {
  enum class Kind {
    kOtherCoordinator,  // it runs another one's workers, and would not obey
    kNodes,             // there is no room for another
    kName,              // another agent that is alive has the name
    kUnfinished,        // too much of it is not durable yet; it may try again later
  };
  Kind kind = Kind::kName;
  std::string reason{};
};

// Why the coordinator ends a stream.
enum class Ending {
  kReplaced,  // by another stream of the agent
  kGap,       // in the numbers
  kAway,      // the agent is not heard, or its session ended
};

// A session is an agent process (its incarnation), over as many streams as it takes: messages are
// numbered in both directions and each is handled once. An agent unheard for kMissedMax beats is
// called unreachable, which ends its stream and nothing else: what it is told waits for it, and the
// same incarnation goes on where it was, however long it was away. Beats are counted by calls of
// Beat(), not by the clock, so that a coordinator that was itself stopped misses nobody on waking.
// While a message of an agent is being dealt with, its silence is ours.
//
// `Message` is what agents are told; of a `Stream` only its place in memory is known. One thread.
template <typename Stream, typename Message>
class Sessions {
 public:
  using Session = session::Session<Stream, Message>;

  static constexpr int kMissedMax = 5;
  static constexpr std::size_t kNodesMax = 16384;
  static constexpr Duration kBeat = Seconds(2);
  // Of one agent's events, those whose consequences are not durable yet. Each of its streams adds
  // two at most, so that an agent that dials again and again while the disk is full is held off.
  static constexpr std::size_t kUnfinishedMax = 64;

  struct Hooks {
    // Handles an event and calls `done` when its consequences are durable.
    std::function<void(job::Event event, std::function<void()> done)> emit;
    // Writes; to be followed by Sent().
    std::function<void(Stream& stream, const Outgoing<Message>& outgoing)> send;
    // Ends the stream; nothing of it is heard any more.
    std::function<void(Stream& stream, Ending ending, const std::string& reason)> close;
  };

  explicit Sessions(Hooks hooks) : hooks_(std::move(hooks)) {}

  // Who this coordinator is. Before the first agent.
  void SetIdentity(protocol::CoordinatorIdentity identity) { identity_ = std::move(identity); }
  const protocol::CoordinatorIdentity& identity() const { return identity_; }

  // The stream is part of the agent's session, unless it is refused: then the caller closes it.
  std::optional<Refusal> Open(const std::shared_ptr<Stream>& stream, Opening opening, Instant now) {
    job::NodeJoined& joined = opening.joined;
    if (std::string why = Objection(opening); !why.empty()) {
      return Refusal{Refusal::Kind::kOtherCoordinator, std::move(why)};
    }
    Session* const session = Admit(joined.node);
    if (session == nullptr) {
      return Refusal{Refusal::Kind::kNodes,
                     "nodes: this coordinator holds " + std::to_string(kNodesMax)};
    }
    const bool elsewhere = WasElsewhere(*session, opening);
    const bool same = session->incarnation == joined.incarnation && !elsewhere;
    const bool other = session->incarnation != joined.incarnation;
    if (other && session->stream != nullptr && session->missed <= 1) {
      return Refusal{Refusal::Kind::kName, "hello.node: another agent is connected as " +
                                               joined.node + "; names are unique"};
    }
    if (session->unfinished >= kUnfinishedMax) {
      return Refusal{Refusal::Kind::kUnfinished, "session: " + std::to_string(kUnfinishedMax) +
                                                     " events of " + joined.node +
                                                     " are not durable yet; try again later"};
    }
    joined.same_incarnation = same && !session->ended;
    if (!same && !session->ended) {
      End<job::NodeLost>(*session,
                         elsewhere ? "the agent obeyed another coordinator meanwhile"
                                   : "the agent was started again",
                         {.ended_workers = joined.ended_workers});
    }
    session->devices = joined.devices;
    session->traits = joined.traits;
    session->facts = std::move(opening.facts);
    Detach(*session, Ending::kReplaced, "replaced by a newer stream of this agent");
    if (!same) session->Forget();
    session->Attach(stream, joined.incarnation, opening.acknowledged, now);
    streams_[stream.get()] = session;
    Emit(*session, std::move(joined), [] {});
    Pump(*session);
    return {};
  }

  // A later message, by the numbers on it. `event_of(node)` says what it means, if it is one that
  // was not handled before; nothing: it is no event. `next` is called when the stream may read on,
  // unless it is closed.
  struct Numbers {
    std::uint64_t sequence = 0;  // 0: there is nothing to handle
    std::uint64_t acknowledged = 0;
  };
  void Receive(const Stream* stream, const Numbers& numbers, Instant now, const auto& event_of,
               std::function<void()> next) {
    Session* const session = Find(stream);
    if (session == nullptr) return;
    session->Hear(now);
    session->obeys = true;
    session->outbox.Acknowledge(numbers.acknowledged);
    const std::uint64_t before = session->receiver.received();
    const Receiver::Verdict verdict = session->receiver.Take(numbers.sequence);
    if (verdict == Receiver::Verdict::kGap) {
      return Detach(
          *session, Ending::kGap,
          "message " + std::to_string(numbers.sequence) + " came after " + std::to_string(before));
    }
    if (verdict == Receiver::Verdict::kKnown) return next();
    std::optional<job::Event> event = event_of(session->node);
    if (event) return Handle(*session, numbers.sequence, *std::move(event), std::move(next));
    AcknowledgeIfDue(*session);
    next();
  }

  // The last `send` is written.
  void Sent(const Stream* stream) {
    Session* const session = Find(stream);
    if (session == nullptr) return;
    session->writing = false;
    Pump(*session);
  }

  // Who is at the other end of the stream is not heard any more, whatever it says, and its node's
  // workers are given up. The caller closes the stream.
  void Expel(const Stream* stream, const std::string& reason) {
    Session* const session = Find(stream);
    if (session == nullptr) return;
    streams_.erase(stream);
    session->stream.reset();
    session->busy = false;
    End<job::NodeLost>(*session, reason);
  }

  // The stream is gone. The session waits for another.
  void Closed(const Stream* stream) {
    Session* const session = Find(stream);
    if (session == nullptr) return;
    streams_.erase(stream);
    session->stream.reset();
    session->busy = false;  // what is dealt with now is nobody's silence
  }

  // Sessions in `count` parts of about one size, so that ten thousand acknowledgements do
  // not leave at once.
  struct Part {
    std::size_t index = 0;  // < count
    std::size_t count = 1;
  };

  // Each part once every kBeat.
  void Beat(const Part& part = {0, 1}) {
    std::vector<Session*> silent;
    for (Session* const session : Of(part)) {
      if (!session->Expected()) continue;
      if (session->Miss(kMissedMax)) silent.push_back(session);
      Pump(*session, true);
    }
    for (Session* session : silent) {
      session->missing = true;
      // The stream goes, so that the agent says anew what runs there before anything else is heard.
      Lose<job::NodeUnreachable>(*session, "",
                                 "not heard for " + std::to_string(kMissedMax) + " heartbeats of " +
                                     std::to_string(static_cast<int>(ToSeconds(kBeat))) + " s");
    }
  }

  // Tells the agent, now or when it is back; without effect for a node that has no session.
  void Tell(const std::string& node, Message message) {
    const auto found = sessions_.find(node);
    if (found == sessions_.end() || found->second->ended) return;
    Session& session = *found->second;
    if (session.outbox.Append({.message = std::move(message)})) return Pump(session);
    // It reads nothing: what is bounded cannot wait for it any longer. Its workers may live all the
    // same; when it comes again, it is told anew what is so.
    End<job::NodeUnreachable>(
        session, std::to_string(Session::kOutboxMax) + " messages wait for its acknowledgement");
  }

  // The node's session is no more. If its agent comes back, it tells what runs there as it does a
  // coordinator that restarted. Requires: it has no stream.
  void Forget(const std::string& node) {
    const auto found = sessions_.find(node);
    if (found == sessions_.end()) return;
    TACTUS_CHECK(found->second->stream == nullptr);
    std::erase(roll_, found->second.get());
    sessions_.erase(found);
  }

  // All streams, by node, to be ended by the caller; sessions stay.
  std::vector<std::shared_ptr<Stream>> TakeStreams() {
    std::vector<std::shared_ptr<Stream>> streams;
    streams_.clear();
    for (const auto& [node, session] : sessions_) {
      if (session->stream != nullptr) streams.push_back(std::exchange(session->stream, nullptr));
      session->busy = false;
    }
    return streams;
  }

  const std::map<std::string, std::unique_ptr<Session>>& all() const { return sessions_; }

  // How long each node was not heard, for those of the part that are not called unreachable.
  std::vector<std::pair<std::string, Duration>> Silences(Instant now, const Part& part) const {
    std::vector<std::pair<std::string, Duration>> silences;
    for (const Session* session : Of(part)) {
      if (session->Expected()) silences.emplace_back(session->node, now - session->last_heard);
    }
    return silences;
  }

 private:
  // Why an agent that runs another coordinator's workers is not ours. One of before identities were
  // told does not say whose they are.
  std::string Objection(const Opening& opening) const {
    if (opening.joined.running_workers.empty() || opening.obeyed.server.empty()) return {};
    return protocol::Allegiance::Objection(opening.obeyed, identity_);
  }

  // One that obeyed us was another's in between, of another store or a later one of ours, and has no
  // worker of ours any more: numbers that it took and gave there mean nothing here. It obeyed us if
  // it has heard Welcome, or has more than we told it.
  bool WasElsewhere(const Session& session, const Opening& opening) const {
    const protocol::CoordinatorIdentity& obeyed = opening.obeyed;
    if (obeyed.server.empty()) return false;
    const bool others = obeyed.server != identity_.server || obeyed.epoch > identity_.epoch;
    return others && (session.obeys || opening.acknowledged > session.outbox.last());
  }

  // The session of a node, made when there is none; null when there is no room. Room is that of who
  // is not here.
  Session* Admit(const std::string& node) {
    const auto found = sessions_.find(node);
    if (found != sessions_.end()) return found->second.get();
    if (sessions_.size() >= kNodesMax) {
      const auto gone = std::ranges::find_if(sessions_, [](const auto& entry) {
        return !entry.second->Expected() && entry.second->stream == nullptr;
      });
      if (gone == sessions_.end()) return nullptr;
      Forget(gone->first);
    }
    auto session = std::make_unique<Session>();
    session->node = node;
    roll_.push_back(session.get());
    return (sessions_[node] = std::move(session)).get();
  }

  std::span<Session* const> Of(const Part& part) const {
    const std::size_t begin = roll_.size() * part.index / part.count;
    const std::size_t end = roll_.size() * (part.index + 1) / part.count;
    return std::span(roll_).subspan(begin, end - begin);
  }

  Session* Find(const Stream* stream) {
    const auto found = streams_.find(stream);
    return found == streams_.end() ? nullptr : found->second;
  }

  // The consequences of a message are durable later; the session may have changed by then.
  void Handle(Session& session, std::uint64_t sequence, job::Event event,
              std::function<void()> next) {
    session.busy = true;
    session.pending.insert(sequence);
    Emit(session, std::move(event),
         [this, node = session.node, incarnation = session.incarnation, sequence,
          stream = session.stream, next = std::move(next)] {
           const auto found = sessions_.find(node);
           if (found != sessions_.end() && found->second->incarnation == incarnation) {
             found->second->pending.erase(sequence);
             AcknowledgeIfDue(*found->second);
           }
           Session* const current = Find(stream.get());
           if (current == nullptr) return;
           current->busy = false;
           next();
         });
  }

  void AcknowledgeIfDue(Session& session) {
    if (session.Handled() >= session.acknowledged + Session::kUnacknowledgedMax) {
      Pump(session, true);
    }
  }

  // Hands an event of the session's node on and counts it until it is dealt with. The session may
  // be another one, or none, by then.
  void Emit(Session& session, job::Event event, std::function<void()> done) {
    ++session.unfinished;
    hooks_.emit(std::move(event), [this, node = session.node, done = std::move(done)] {
      const auto found = sessions_.find(node);
      if (found != sessions_.end() && found->second->unfinished > 0) --found->second->unfinished;
      done();
    });
  }

  void Pump(Session& session, bool acknowledge = false) {
    if (const auto next = session.Next(acknowledge)) hooks_.send(*session.stream, *next);
  }

  void Detach(Session& session, Ending ending, const std::string& reason) {
    session.busy = false;
    if (session.stream == nullptr) return;
    const std::shared_ptr<Stream> stream = std::move(session.stream);
    session.stream.reset();
    streams_.erase(stream.get());
    hooks_.close(*stream, ending, reason);
  }

  // The session ends: what was said and not acknowledged is forgotten. Its agent is unreachable, or
  // is known to have ended.
  template <typename Loss>
  void End(Session& session, const std::string& reason, Loss loss = {}) {
    session.ended = true;
    session.missing = false;
    session.outbox.Restart(0);
    Lose<Loss>(session, "ended, ", reason, std::move(loss));
  }

  template <typename Loss>
  void Lose(Session& session, const std::string& prefix, const std::string& reason,
            Loss loss = {}) {
    Detach(session, Ending::kAway, prefix + reason);
    loss.node = session.node;
    loss.reason = reason;
    Emit(session, std::move(loss), [] {});
  }

  const Hooks hooks_;
  protocol::CoordinatorIdentity identity_;
  std::map<std::string, std::unique_ptr<Session>> sessions_;  // by node
  std::vector<Session*> roll_;                 // all of them, in the order in which they came
  std::map<const Stream*, Session*> streams_;  // those attached
};

}  // namespace tactus::session
