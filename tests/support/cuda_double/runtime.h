// The state behind the double's calls.

#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/cuda_double/memory.h"
#include "tests/support/cuda_double/streams.h"

namespace tactus::cuda_double {

struct Fault {
  int at = 0;  // the call that fails, by the count of calls
  cudaError_t error = cudaSuccess;
};

// One for the process, as there is one runtime; everything under its lock.
struct Runtime {
  std::mutex mutex{};
  std::condition_variable changed{};
  Machine machine{};
  Memory memory{};
  std::map<std::string, int> calls{};
  std::map<std::string, Fault> faults{};
  cudaError_t broken = cudaSuccess;
  Timing timing{};                      // of tests that do not name their own
  Schedule schedule = Schedule::kLazy;  // of this one
  Rng rng{0};                           // of Schedule::kRandom
  CUstream_st legacy{};                 // the stream whose name is null
  int legacy_uses = 0;
  std::vector<CUstream_st*> streams{};  // in the order of their creation
  std::set<CUevent_st*> events{};
};

Runtime& TheRuntime();

// Queues an operation; under the lock. Where it must not overtake what is on the default stream, or
// on those that wait for that one, it waits.
void Enqueue(CUstream_st* stream, Operation operation);

// One call of the runtime: holds the lock, counts, and says whether the call is to fail. Before and
// after it streams go on as the schedule has it.
class Call {
 public:
  explicit Call(const char* function);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  // What an injected fault, a broken device or a machine without devices makes of the call.
  cudaError_t error() const { return error_; }
  // The call's result, kept for cudaGetLastError if it is an error.
  cudaError_t Return(cudaError_t error) const;

  // Null for a stream that does not exist.
  CUstream_st* StreamOf(cudaStream_t stream) const;

  // Does the queued operations until `done` holds, waiting for other threads where they must act.
  // What broke the devices before that.
  cudaError_t Await(CUstream_st* stream, const std::function<bool()>& done);
  cudaError_t Drain(CUstream_st* stream);
  cudaError_t DrainDevice(int device);  // and the default stream

 private:
  std::unique_lock<std::mutex> lock_;
  cudaError_t error_ = cudaSuccess;
  bool waits_ = false;  // it is among the thread's waits
};

// The device of the calling thread.
int& CurrentDevice();
cudaError_t& LastError();

}  // namespace tactus::cuda_double
