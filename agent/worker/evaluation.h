// The validation loss of common parameters, shared out over the members.

#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "agent/collective/transport.h"
#include "agent/engine/validations.h"
#include "agent/worker/trainee.h"

namespace tactus::worker {

// Averages the buffers that training changes on each member (running statistics) over all of them,
// weighted by the samples that each has seen, so that all members, and the result, hold the same.
// Errors: Unavailable, the group was lost.
absl::Status AverageBuffers(Trainee& trainee, collective::Transport& transport, double own_samples);

// What is evaluated: the first `samples_max` samples of the validation data.
struct EvaluationOptions {
  std::uint64_t samples_max = 10000;
  // By rank, the same on all members: how the samples are shared out, as the plan's batch sizes
  // are, which follow the members' speeds. Empty: evenly.
  std::span<const std::uint32_t> shares{};
  std::function<void()> beside = [] {};  // called before each batch
};

// Every member evaluates a contiguous share; all return the means over all samples. The end is the
// caller's to say. Errors: Unavailable, the group was lost; those of Trainee::Evaluate.
absl::StatusOr<engine::Validation> Evaluate(Trainee& trainee, collective::Transport& transport,
                                            const EvaluationOptions& options);

}  // namespace tactus::worker
