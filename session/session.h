// One agent at the coordinator: how far both have heard one another, and what that allows.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "coordinator/job/actions.h"
#include "session/numbered_log.h"
#include "session/receiver.h"

namespace tactus::session {

// A message to an agent, by number.
template <typename Message>
struct Told {
  std::uint64_t sequence = 0;
  Message message{};
};

// What is written on a stream at once.
template <typename Message>
struct Outgoing {
  bool welcome = false;                 // the first of a stream
  const Told<Message>* told = nullptr;  // null: nothing
  std::uint64_t acknowledged = 0;       // up to here the agent's words are durable
};

// What the agent says of itself, for a listing.
struct AgentFacts {
  std::string agent_version{};
  std::string metrics_address{};
  std::string peer{};  // from where it was dialled; empty: not known
};

// The state of one session and what each step makes of it; see Sessions, which owns it. One thread.
template <typename Stream, typename Message>
struct Session {
  // Messages that wait for the agent's acknowledgement.
  static constexpr std::size_t kOutboxMax = 4096;
  // Acknowledgements ride on other messages, and alone on every beat or after so many.
  static constexpr std::uint64_t kUnacknowledgedMax = 256;

  std::string node{};
  std::uint64_t incarnation = 0;
  std::vector<job::DeviceRecord> devices{};
  job::NodeTraits traits{};
  AgentFacts facts{};

  // Shared with the call that it is; null: not connected.
  std::shared_ptr<Stream> stream{};
  bool welcome = false;  // is to be sent first
  bool writing = false;
  bool busy = false;  // a message of the present stream is being dealt with

  NumberedLog<Told<Message>> outbox{kOutboxMax};
  Receiver receiver{};
  std::set<std::uint64_t> pending{};  // of those received: the consequences are not durable yet
  std::uint64_t acknowledged = 0;     // up to here the agent was told that they are
  std::size_t unfinished = 0;         // events of this node that are being dealt with

  bool ended = true;     // or has not begun: nothing that was said waits for the agent
  bool obeys = false;    // it has heard Welcome
  bool missing = false;  // it was called unreachable and is not back
  bool heard = false;
  int missed = 0;
  Instant last_heard{};

  // Its agent is here, or may be back within moments: it was not called unreachable.
  bool Expected() const { return !ended && !missing; }

  // Up to here the consequences are durable, or there are none.
  std::uint64_t Handled() const {
    return pending.empty() ? receiver.received() : *pending.begin() - 1;
  }

  // Whatever the agent says next is the first that is heard of it.
  void Forget() {
    receiver = {};
    pending.clear();
    acknowledged = 0;
    obeys = false;
  }

  // Binds a new stream and works out where both directions resume. `has`: up to here the agent has
  // what it was told.
  void Attach(std::shared_ptr<Stream> to, std::uint64_t process, std::uint64_t has, Instant now) {
    if (ended) {
      outbox.Restart(has);
    } else {
      outbox.Acknowledge(has);
      outbox.Rewind();
    }
    incarnation = process;
    stream = std::move(to);
    welcome = true;
    writing = busy = ended = missing = false;
    missed = 0;
    Hear(now);
  }

  void Hear(Instant now) {
    heard = true;
    last_heard = now;
  }

  // What to write now; `acknowledge`: also an acknowledgement alone.
  std::optional<Outgoing<Message>> Next(bool acknowledge) {
    if (stream == nullptr || writing) return {};
    Outgoing<Message> next{.welcome = std::exchange(welcome, false)};
    if (!next.welcome) next.told = outbox.Next();
    if (!next.welcome && next.told == nullptr && (!acknowledge || Handled() <= acknowledged)) {
      return {};
    }
    acknowledged = std::max(acknowledged, Handled());
    next.acknowledged = acknowledged;
    writing = true;
    return next;
  }

  // True: it is silent for `most` beats.
  bool Miss(int most) {
    missed = std::exchange(heard, false) || busy ? 0 : missed + 1;
    return missed >= most;
  }
};

}  // namespace tactus::session
