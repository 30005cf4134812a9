#include "agent/torchscript/own_speed.h"

#include <numeric>
#include <vector>

#include "agent/worker/clock.h"
#include "agent/worker/speed_emulation.h"
#include "agent/worker/trainee.h"

namespace tactus::torchscript {
namespace {

// Enough that a device's clock, a compiler's warm-up and a scheduler's quota have little part in
// it.
constexpr int kWarmUpPasses = 3;
constexpr int kTimedPassesMax = 20;
constexpr Duration kTimedLeast = std::chrono::milliseconds(500);

}  // namespace

absl::StatusOr<double> MeasureOwnSpeed(MicroBatches& micro_batches, cuda::Device& device,
                                       const OwnSteps& steps) {
  std::vector<std::uint64_t> indices(steps.samples);
  std::iota(indices.begin(), indices.end(), 0);
  engine::Optimizer optimizer(steps.optimizer, device, steps.segments);
  worker::SpeedEmulation emulation(steps.emulated_speed, steps.emulated_cpu_factor);
  Duration taken{};
  int timed = 0;
  for (int pass = 0; timed < kTimedPassesMax && taken < kTimedLeast; ++pass) {
    if (steps.leaves()) return worker::Left();
    const Instant started = worker::Now();
    emulation.Begin();
    if (absl::Status s = micro_batches.TryOut(indices); !s.ok()) return s;
    optimizer.Step(steps.gradients, {.gradient = 1, .learning_rate = 0}, steps.parameters);
    device.Synchronize();
    const Duration duration = emulation.AwaitEnd() - started;
    if (pass < kWarmUpPasses) continue;
    taken += duration;
    ++timed;
  }
  const double samples = static_cast<double>(indices.size()) * timed;
  return taken > Duration{} ? samples / ToSeconds(taken) : 0;
}

}  // namespace tactus::torchscript
