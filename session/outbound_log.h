// What the agent still has to say to the coordinator: numbered, kept until acknowledged, bounded.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "base/check.h"
#include "session/numbered_log.h"

namespace tactus::session {

// What may be lost when the coordinator is away for long.
enum class Importance {
  kLogLines,  // within a share of the log; dropped, oldest first, before anything else is
  kReport,    // dropped, oldest first, when the log is full
  kMessage,   // never dropped; refused when such messages alone fill the log
  kExit,      // never dropped nor refused: one a worker
  kNode,      // as kExit, of the node; every Hello tells it anew, so that it binds to nobody
};

struct OutboundLogOptions {
  std::size_t entries_max = 200'000;   // kept at once, >= 1
  std::size_t bytes_max = 64u << 20;   // of payload kept at once
  std::size_t in_flight_max = 16'384;  // sent and not acknowledged at once, >= 1
  // Of these, what workers' output may take.
  std::size_t log_entries_max = 4096;
  std::size_t log_bytes_max = 8u << 20;
};

// Entries wait, are sent in order and stay in flight until acknowledged. A sequence number is given
// when an entry is first sent, so that dropped reports leave no gap in the numbers. `Payload` has a
// size(), in bytes.
//
// Invariants: (1) numbers are consecutive from 1; (2) an entry in flight is never dropped; (3)
// entries and bytes stay within the options, but for kExit and kNode; (4) no workers' output ever
// drops or refuses anything else. Pure; one thread.
template <typename Payload>
class OutboundLog {
 public:
  struct Entry {
    std::uint64_t sequence = 0;  // 0: it waits
    Payload payload{};
    Importance importance = Importance::kReport;
  };

  explicit OutboundLog(const OutboundLogOptions& options)
      : options_(options), in_flight_(options.in_flight_max) {}

  // Appends an entry; false, and nothing is kept of it, when it found no room.
  [[nodiscard]] bool Append(Payload payload, Importance importance) {
    if (importance == Importance::kLogLines) return AppendLogLines(std::move(payload));
    while (!HasRoomFor(payload)) {
      if (DropOldest(Importance::kLogLines) || DropOldest(Importance::kReport)) continue;
      if (importance >= Importance::kExit) break;
      if (importance == Importance::kReport) ++dropped_;
      return false;
    }
    Keep(std::move(payload), importance);
    return true;
  }

  // The next entry to send, or null: all is sent, or in_flight_max is reached. Valid until the next
  // call of any other method.
  const Entry* Next() {
    if (const Entry* again = in_flight_.Next()) return again;
    if (waiting_.empty() || in_flight_.full()) return nullptr;
    TACTUS_CHECK(in_flight_.Append(std::move(waiting_.front())));
    waiting_.pop_front();
    const Entry* const first = in_flight_.Next();
    if (first->importance == Importance::kReport) --waiting_reports_;
    if (first->importance == Importance::kLogLines) --waiting_logs_;
    return first;
  }

  // The coordinator has everything up to `sequence`.
  void Acknowledge(std::uint64_t sequence) {
    in_flight_.Acknowledge(sequence, [this](const Entry& entry) { Discount(entry); });
  }

  // A new stream: what is in flight and above `acknowledged` is to be sent again, first.
  void Rewind(std::uint64_t acknowledged) {
    Acknowledge(acknowledged);
    in_flight_.Rewind();
  }

  // Reports dropped or refused since the start.
  std::uint64_t dropped() const { return dropped_; }
  // Entries and bytes kept.
  std::size_t size() const { return in_flight_.size() + waiting_.size(); }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return size() == 0; }
  // Calls `see` with every payload of that importance, oldest first.
  void ForEach(Importance importance, const auto& see) const {
    const auto look = [&](const Entry& entry) {
      if (entry.importance == importance) see(entry.payload);
    };
    std::ranges::for_each(in_flight_, look);
    std::ranges::for_each(waiting_, look);
  }
  // Something is kept that workers said and that must not be lost.
  bool HoldsWords() const {
    return Holds([](const Entry& entry) {
      return entry.importance == Importance::kMessage || entry.importance == Importance::kExit;
    });
  }
  // An entry is kept that is so.
  bool Holds(const auto& is_so) const {
    return std::ranges::any_of(in_flight_, is_so) || std::ranges::any_of(waiting_, is_so);
  }

 private:
  bool HasRoomFor(const Payload& payload) const {
    return size() < options_.entries_max && bytes_ + payload.size() <= options_.bytes_max;
  }

  bool HasLogRoomFor(const Payload& payload) const {
    return log_entries_ < options_.log_entries_max &&
           log_bytes_ + payload.size() <= options_.log_bytes_max && HasRoomFor(payload);
  }

  bool AppendLogLines(Payload payload) {
    while (!HasLogRoomFor(payload)) {
      if (!DropOldest(Importance::kLogLines)) return false;
    }
    Keep(std::move(payload), Importance::kLogLines);
    return true;
  }

  void Keep(Payload payload, Importance importance) {
    bytes_ += payload.size();
    if (importance == Importance::kReport) ++waiting_reports_;
    if (importance == Importance::kLogLines) {
      ++waiting_logs_;
      ++log_entries_;
      log_bytes_ += payload.size();
    }
    waiting_.push_back({.payload = std::move(payload), .importance = importance});
  }

  void Discount(const Entry& entry) {
    bytes_ -= entry.payload.size();
    if (entry.importance != Importance::kLogLines) return;
    log_bytes_ -= entry.payload.size();
    --log_entries_;
  }

  // False when none of this importance waits.
  bool DropOldest(Importance importance) {
    std::size_t& waiting = importance == Importance::kLogLines ? waiting_logs_ : waiting_reports_;
    if (waiting == 0) return false;
    const auto oldest = std::ranges::find(waiting_, importance, &Entry::importance);
    Discount(*oldest);
    waiting_.erase(oldest);
    --waiting;
    if (importance == Importance::kReport) ++dropped_;
    return true;
  }

  const OutboundLogOptions options_;
  NumberedLog<Entry> in_flight_;
  std::deque<Entry> waiting_;
  std::size_t waiting_reports_ = 0;
  std::size_t waiting_logs_ = 0;
  std::size_t log_entries_ = 0;  // kept
  std::size_t log_bytes_ = 0;    // kept
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace tactus::session
