// The agent's end of its session with the coordinator, over as many streams as it takes.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "protocol/allegiance.h"
#include "session/outbound_log.h"
#include "session/receiver.h"

namespace tactus::session {

// Who drives it dials, says Hello, and from Welcome on writes what Next() gives, one at a time. A
// stream that ends is dialled again; what was not acknowledged is then sent again, and what was
// received before is not handed on twice. A coordinator that is not to be obeyed (see
// protocol::Allegiance) is heard no further. `Payload` as OutboundLog has it. One thread.
template <typename Payload>
class AgentLink {
 public:
  using Entry = typename OutboundLog<Payload>::Entry;

  // What is written at once: a heartbeat, an entry, or an acknowledgement alone.
  struct Outgoing {
    bool heartbeat = false;
    const Entry* entry = nullptr;
    std::uint64_t acknowledged = 0;  // up to here it has what the coordinator said
  };

  explicit AgentLink(const OutboundLogOptions& options) : log_(options) {}

  // A stream begins, with Hello, which is being written from now on and acknowledges that much.
  std::uint64_t Dial() {
    welcomed_ = acknowledgement_due_ = heartbeat_due_ = false;
    writing_ = true;
    return receiver_.received();
  }

  // The coordinator's first message. `has_workers`: as Allegiance has it, words of theirs apart.
  // Returns why it is not obeyed; empty: it is, and the stream is on.
  std::string Welcome(const protocol::CoordinatorIdentity& coordinator, std::uint64_t acknowledged,
                      bool has_workers) {
    std::string objection = allegiance_.Meet(coordinator, has_workers || log_.HoldsWords());
    if (!objection.empty()) return objection;
    welcomed_ = true;
    log_.Rewind(acknowledged);
    return {};
  }

  // A later message. kGap: the stream is to be ended.
  Receiver::Verdict Receive(std::uint64_t sequence, std::uint64_t acknowledged) {
    log_.Acknowledge(acknowledged);
    // What comes again is acknowledged again.
    if (sequence > 0) acknowledgement_due_ = true;
    return receiver_.Take(sequence);
  }

  // A heartbeat is due.
  void Beat() { heartbeat_due_ = true; }

  // The last one is written.
  void Sent() { writing_ = false; }

  // What to write now; nothing: there is nothing to say, or the stream is not ready.
  std::optional<Outgoing> Next() {
    if (!welcomed_ || writing_) return {};
    Outgoing next{.heartbeat = std::exchange(heartbeat_due_, false)};
    if (!next.heartbeat) next.entry = log_.Next();
    const bool acknowledge = std::exchange(acknowledgement_due_, false);
    if (!next.heartbeat && next.entry == nullptr && !acknowledge) return {};
    next.acknowledged = receiver_.received();
    writing_ = true;
    return next;
  }

  // The stream is gone. True: it was on.
  bool Closed() { return std::exchange(welcomed_, false); }

  bool welcomed() const { return welcomed_; }
  OutboundLog<Payload>& log() { return log_; }
  const OutboundLog<Payload>& log() const { return log_; }
  const std::optional<protocol::CoordinatorIdentity>& obeyed() const {
    return allegiance_.obeyed();
  }

 private:
  OutboundLog<Payload> log_;
  Receiver receiver_;
  protocol::Allegiance allegiance_;
  bool welcomed_ = false;  // on the present stream
  bool writing_ = false;
  bool acknowledgement_due_ = false;
  bool heartbeat_due_ = false;
};

}  // namespace tactus::session
