// Two threads of which one runs at a time: the worker's life, and the program that it trains.
//
// A program has a loop of its own, and so has a worker's life. The life runs on a thread of the
// library's; where it needs the program it asks, and sleeps until it is answered, while the
// program's thread, which slept until then, works. So neither is turned inside out, no call goes
// from here into the program, and whoever waits can look now and then at what else may happen.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/time.h"
#include "threads/mutex.h"

namespace tactus::sdk {

// What the life asks for.
struct Request {
  enum class Kind : std::uint8_t {
    kBind,          // to keep parameters, gradients and states in this memory from now on
    kCompute,       // loss and gradients of a batch
    kStep,          // a step of the optimizer
    kTakeState,     // its states were written to
    kReadBuffers,   // to put its buffers into their memory
    kWriteBuffers,  // to take them from there
    kEnd,           // nothing: training is over
  };
  Kind kind = Kind::kEnd;

  // kBind; kStep: the gradients of the step, [FlatLength], the bound ones or as much of another's.
  std::span<float> parameters{};
  std::span<float> gradients{};
  std::vector<std::span<float>> states{};
  std::span<float> buffers{};

  // kCompute
  std::span<const std::uint64_t> indices{};
  double unit = 1;  // as engine::Batch has it, as are the next ones
  std::uint64_t epoch = 0;
  bool first_of_sum = false;
  bool last_of_round = false;
  std::span<const std::uint64_t> ahead{};  // indices that are probably asked for next
  // Where training stands, which may have begun in another process: rounds applied, epochs used
  // whole, samples used of the next one, and base steps.
  std::uint64_t rounds = 0, epochs = 0, consumed = 0;
  double base_steps = 0;

  double gain = 1;          // kStep
  std::uint64_t steps = 0;  // kTakeState

  absl::Status end{};      // kEnd: what went wrong
  std::string reason{};    // kEnd: why it is over
  bool suspended = false;  // kEnd: it goes on later, in another process
};

struct Answer {
  absl::Status status{};  // not ok: training fails
  double loss_sum = 0;    // kCompute: over the batch's samples
};

class Handoff {
 public:
  // The life's thread: waits for the answer. After Close it is an error at once.
  Answer Ask(const Request& request);

  // The program's threads, one at a time. What is asked, which stays until it is answered; null:
  // nothing was in `limit`.
  const Request* Await(Duration limit);
  // Requires: something is asked.
  void Reply(Answer answer);
  // Whatever is asked, and will be, is answered so.
  void Close(const absl::Status& status);

 private:
  threads::Mutex mutex_;
  threads::Condition changed_;
  // What the life does between two questions is mostly short, and to be woken takes longer: so the
  // program looks for the next one for a moment before it sleeps.
  std::atomic<bool> asks_ = false;
  const Request* request_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<Answer> answer_ ABSL_GUARDED_BY(mutex_);
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tactus::sdk
