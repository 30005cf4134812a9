// What one end of a session still has to say to the other: numbered, and kept until acknowledged.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

namespace tactus::session {

// Entries go out in order and stay until acknowledged, so that a new stream can resume where the
// former one broke. Numbers are consecutive, from 1. `Entry` has a `sequence`. One thread.
template <typename Entry>
class NumberedLog {
 public:
  explicit NumberedLog(std::size_t entries_max) : entries_max_(entries_max) {}

  // Appends an entry and numbers it; false, and nothing changed, when the log is full.
  [[nodiscard]] bool Append(Entry entry) {
    if (full()) return false;
    entry.sequence = ++last_sequence_;
    entries_.push_back(std::move(entry));
    return true;
  }

  // The next entry to send on the present stream, or null. Valid until the next call of another
  // method.
  const Entry* Next() { return sent_ == entries_.size() ? nullptr : &entries_[sent_++]; }

  // The other end has everything up to `sequence`; `forget` is called with each that goes.
  void Acknowledge(std::uint64_t sequence, const auto& forget) {
    while (!entries_.empty() && entries_.front().sequence <= sequence) {
      forget(entries_.front());
      entries_.pop_front();
      if (sent_ > 0) --sent_;
    }
  }
  void Acknowledge(std::uint64_t sequence) {
    Acknowledge(sequence, [](const Entry&) {});
  }

  // A new stream to the same end: what was not acknowledged goes out again.
  void Rewind() { sent_ = 0; }

  // Forgets all entries and numbers the next one `sequence` + 1: the other end remembers more of
  // the past than this process does.
  void Restart(std::uint64_t sequence) {
    entries_.clear();
    sent_ = 0;
    last_sequence_ = sequence;
  }

  // The number of the newest entry that there ever was.
  std::uint64_t last() const { return last_sequence_; }
  bool full() const { return entries_.size() >= entries_max_; }
  std::size_t size() const { return entries_.size(); }
  // Those that are not acknowledged, oldest first.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  const std::size_t entries_max_;
  std::deque<Entry> entries_;
  std::size_t sent_ = 0;  // of entries_, on the present stream
  std::uint64_t last_sequence_ = 0;
};

}  // namespace tactus::session
