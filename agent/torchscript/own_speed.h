// How fast a worker is by itself, before anybody waits for it.

#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "agent/engine/optimizer.h"
#include "agent/torchscript/micro_batches.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::torchscript {

// The steps that are measured.
struct OwnSteps {
  std::uint64_t samples = 1;  // of a step: the first so many of the data
  engine::OptimizerOptions optimizer{};
  cuda::SegmentTable segments{};   // of the parameters
  std::span<float> parameters{};   // that the passes are bound to, FlatLength(segments)
  std::span<float> gradients{};    // as long; zeros
  double emulated_speed = 0;       // 0: none
  double emulated_cpu_factor = 1;  // >= 1
  std::function<bool()> leaves = [] { return false; };  // asked before each step, as TraineeHome's
};

// Takes steps that change nothing lasting: passes over samples, and the optimizer's step by a rate
// of 0, after which every parameter equals what it was. Needs the memory of training and no more:
// what trains fits here. Returns the speed [samples/s], from which the first round's shares are
// made; 0 when no time went by.
// Errors: those of MicroBatches::TryOut; worker::Left().
absl::StatusOr<double> MeasureOwnSpeed(MicroBatches& micro_batches, cuda::Device& device,
                                       const OwnSteps& steps);

}  // namespace tactus::torchscript
