// What the agent still has to say to the coordinator: numbered, kept until acknowledged, bounded.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

namespace tactus::agent {

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
// when an entry is first sent, so that dropped reports leave no gap in the numbers.
//
// Invariants: (1) numbers are consecutive from 1; (2) an entry in flight is never dropped; (3)
// entries and bytes stay within the options, but for kExit and kNode; (4) no workers' output ever
// drops or refuses anything else. Pure; one thread.
class OutboundLog {
 public:
  struct Entry {
    std::uint64_t sequence = 0;
    std::string payload;
    Importance importance = Importance::kReport;
  };

  explicit OutboundLog(const OutboundLogOptions& options) : options_(options) {}

  // Appends an entry; false, and nothing is kept of it, when it found no room.
  [[nodiscard]] bool Append(std::string payload, Importance importance);

  // The next entry to send, or null: all is sent, or in_flight_max is reached. Valid until the next
  // call of any other method.
  const Entry* Next();

  // The coordinator has everything up to `sequence`.
  void Acknowledge(std::uint64_t sequence);

  // A new stream: what is in flight and above `acknowledged` is to be sent again, first.
  void Rewind(std::uint64_t acknowledged);

  // Reports dropped or refused since the start.
  std::uint64_t dropped() const { return dropped_; }
  // Entries and bytes kept.
  std::size_t size() const { return in_flight_.size() + waiting_.size(); }
  std::size_t bytes() const { return bytes_; }
  bool empty() const { return size() == 0; }
  // Calls `see` with every payload of that importance, oldest first.
  void ForEach(Importance importance, const std::function<void(const std::string&)>& see) const;
  // Something is kept that workers said and that must not be lost.
  bool HoldsWords() const;

 private:
  struct Waiting {
    std::string payload;
    Importance importance = Importance::kReport;
  };

  bool HasRoomFor(std::size_t payload_bytes) const;
  bool HasLogRoomFor(std::size_t payload_bytes) const;
  bool AppendLogLines(std::string payload);
  void Keep(std::string payload, Importance importance);
  void Count(const std::string& payload, Importance importance);
  void Discount(const std::string& payload, Importance importance);
  // False when none of this importance waits.
  bool DropOldest(Importance importance);

  const OutboundLogOptions options_;
  std::deque<Entry> in_flight_;
  std::size_t resend_ = 0;  // entries of in_flight_ before this one are sent on the present stream
  std::deque<Waiting> waiting_;
  std::size_t waiting_reports_ = 0;
  std::size_t waiting_logs_ = 0;
  std::size_t log_entries_ = 0;  // kept
  std::size_t log_bytes_ = 0;    // kept
  std::uint64_t last_sequence_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace tactus::agent
