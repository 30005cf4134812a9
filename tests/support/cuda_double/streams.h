// The double's streams: queues of operations, and when these are done.
//
// CUDA promises an order within a stream and what events add to it, and nothing else: an operation
// may run at the call that queues it or not before somebody waits. Code that is right under every
// schedule relies on no more than was promised.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "tests/support/cuda_double/cuda_runtime.h"

// True when the operation is done, false when it cannot go on yet.
using Operation = std::function<bool()>;

struct CUstream_st {
  std::deque<Operation> queue{};
  int device = 0;
  std::uint64_t done = 0;  // operations so far: its time
  bool blocking = false;   // runs in the order of the queueing with what is on the default stream
  bool advancing = false;  // against cycles of streams that wait for each other
  int breaks_in = 0;       // operations until one that breaks the device; 0: none does
  cudaError_t breaks_with = cudaSuccess;
};

namespace tactus::cuda_double {

// The state of an event; operations that wait for one keep it beyond its destruction.
struct EventState {
  std::uint64_t recorded = 0;     // the last record's number; 0: none
  std::uint64_t reached = 0;      // the last record that its stream has passed
  CUstream_st* stream = nullptr;  // where it was recorded
  std::uint64_t at = 0;           // that stream's time when it was reached last
};

// Does a stream's operations, and those of others that it waits for, until `enough` holds or the
// next one cannot go on. Returns whether anything was done. Under the runtime's lock.
bool Advance(CUstream_st* stream, const std::function<bool()>& enough);

// What streams do by themselves at a call, as the schedule has it. Under the runtime's lock.
void Proceed();

// Operations for Advance.
Operation Record(const std::shared_ptr<EventState>& event);
Operation Wait(const std::shared_ptr<EventState>& event);

}  // namespace tactus::cuda_double

struct CUevent_st {
  std::shared_ptr<tactus::cuda_double::EventState> state =
      std::make_shared<tactus::cuda_double::EventState>();
  bool timed = true;
  int device = 0;
};
