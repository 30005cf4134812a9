// Virtual time: what happens next, and nothing in between.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/time.h"

namespace tactus::simulator {

// Runs callbacks in the order of their times; equal times run in the order in which they were
// scheduled. Time stands still while a callback runs and then jumps to the next one. One thread.
class Scheduler {
 public:
  using Callback = std::function<void()>;

  // The present: zero at first, then the time of the callback that runs or ran last.
  Instant now() const { return now_; }

  // Calls back at `time`, or now, behind what is due already, when that has passed.
  void At(Instant time, Callback callback);
  void After(Duration delay, Callback callback) { At(now_ + delay, std::move(callback)); }

  // Runs the next callback; false when there is none.
  bool RunNext();

  std::uint64_t events() const { return sequence_; }  // scheduled so far

 private:
  struct Entry {
    Instant time;
    std::uint64_t sequence;
    std::size_t slot;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }

  Instant now_{};
  std::uint64_t sequence_ = 0;
  std::vector<Entry> heap_;  // by Later
  // Callbacks stay where they are while the heap moves its small entries.
  std::vector<Callback> slots_;
  std::vector<std::size_t> free_slots_;
};

}  // namespace tactus::simulator
