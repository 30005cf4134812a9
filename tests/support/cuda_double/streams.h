// The double's streams: queues of operations that do nothing until somebody waits for them. So
// whoever reads a result without having waited, or reuses staging too early, is found out at once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

// True when the operation is done, false when it cannot go on yet.
using Operation = std::function<bool()>;

struct CUstream_st {
  std::deque<Operation> queue{};
  bool blocking = false;  // runs in the order of the queueing with what is on the default stream
  int device = 0;
  bool advancing = false;  // against cycles of streams that wait for each other
};

namespace tactus::cuda_double {

// The state of an event; operations that wait for one keep it beyond its destruction.
struct EventState {
  std::uint64_t recorded = 0;     // the last record's number; 0: none
  std::uint64_t reached = 0;      // the last record that its stream has passed
  CUstream_st* stream = nullptr;  // where it was recorded
};

// Does what it can of a stream, and of those that it waits for. Returns whether anything was done.
bool Advance(CUstream_st* stream);

// Operations for Advance.
Operation Record(const std::shared_ptr<EventState>& event);
Operation Wait(const std::shared_ptr<EventState>& event);

}  // namespace tactus::cuda_double

struct CUevent_st {
  std::shared_ptr<tactus::cuda_double::EventState> state =
      std::make_shared<tactus::cuda_double::EventState>();
};
