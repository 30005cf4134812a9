// An optimizer that is not the engine's: that of a user's framework, which steps on the engine's
// buffers.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policies/delta_weights.h"

namespace tactus::engine {

// What the engine asks of it. All calls come from the engine's thread, between two batches.
class ForeignOptimizer {
 public:
  virtual ~ForeignOptimizer() = default;

  // One step by the mean gradient, which may be used up, of a rate that is `gain` times its own.
  // gradients [the segments' layout, FlatLength]: the memory that passes add to, or as much of
  // another's. Parameters are changed in place.
  virtual void Step(std::span<float> gradients, double gain) = 0;

  // What steps go by besides the parameters, buffer by buffer in the parameters' layout, that is
  // averaged or handed over where members' states differ. As many at all times, zeros where a
  // parameter has none yet.
  virtual std::vector<std::span<float>> State() = 0;

  // State() was written to: it is as after `steps` steps.
  virtual void TakeState(std::uint64_t steps) = 0;
};

// As a variant of OptimizerOptions, whose words these are; equal on all members but for `steps`.
struct ForeignOptions {
  ForeignOptimizer* steps = nullptr;  // outlives the engine's optimizer
  std::string kind = "other";         // as policies/optimizers.h has it
  std::size_t state_buffers = 0;      // ForeignOptimizer::State()
  bool is_linear = false;
  bool has_step_counts = true;                                // counts_steps()
  std::optional<double> bending_decay{};                      // BendingDecay
  std::optional<policies::WindowMomentum> window_momentum{};  // WindowMomentumOf

  // The rate is the framework's: what the engine's schedule and rules say is a factor of it.
  static constexpr double learning_rate = 1;
  const std::string& name() const { return kind; }
  std::size_t buffers() const { return state_buffers; }
  bool linear() const { return is_linear; }
  bool counts_steps() const { return has_step_counts; }
  static constexpr double known() { return 0; }
  static constexpr bool elementwise() { return false; }  // nobody knows
};

}  // namespace tactus::engine
