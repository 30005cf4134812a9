// What a worker's life asks of the program that it trains, and what it is answered.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sdk/gathering.h"

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
    kEdge,          // to go on, or to offer what all members are told
    kMemory,        // so many bytes of its device, zero; 0: to keep none that it does not use
  };
  Kind kind = Kind::kEnd;

  // kBind; kStep: the gradients of the step, [FlatLength], the bound ones or as much of another's.
  std::span<float> parameters{};
  std::span<float> gradients{};
  std::vector<std::span<float>> states{};
  std::span<float> buffers{};

  // kCompute, and from `rounds` on kEdge
  std::span<const std::uint64_t> indices{};
  double unit = 1;  // as engine::Batch has it, as are the next ones
  std::uint64_t epoch = 0;
  bool first_of_sum = false;
  bool last_of_round = false;
  std::size_t early_segments = 0;          // so many, from the front, may be said to be ready
  std::span<const std::uint64_t> ahead{};  // indices that are probably asked for next
  // Where training stands, which may have begun in another process: rounds applied, epochs used
  // whole, samples used of the next one, and base steps.
  std::uint64_t rounds = 0, epochs = 0, consumed = 0;
  double base_steps = 0;

  std::size_t memory_bytes = 0;       // kMemory
  std::span<void* const> returned{};  // kMemory, kBind: memory that is no longer needed

  double gain = 1;          // kStep
  std::uint64_t steps = 0;  // kTakeState

  absl::Status end{};      // kEnd: what went wrong
  std::string reason{};    // kEnd, and kEdge where it is over: why
  bool suspended = false;  // kEnd: it goes on later, in another process

  // kEdge: training stands still between two epochs, or is over. What those who offered alike have
  // told; none: nothing was offered, or that was in a group that is lost.
  std::span<const double> gathered{};
  std::size_t members = 0, place = 0;  // as Gathered has it
  bool over = false;
};

struct Answer {
  absl::Status status{};   // not ok: training fails
  double loss_sum = 0;     // kCompute: over the batch's samples
  Offer offer{};           // kEdge
  void* memory = nullptr;  // kMemory; null: there is no room
};

}  // namespace tactus::sdk
