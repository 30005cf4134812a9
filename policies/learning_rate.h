// The learning rate of the next update: a schedule over base steps times the gain of a rule.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/adascale.h"
#include "policies/plan.h"

namespace tactus::policies {

// A learning rate for each base step, as chosen for updates of the base batch.
struct Schedule {
  enum class Shape { kConstant, kStep, kCosine };

  double base = 0.1;  // > 0
  // w base steps, rising linearly from base / (w + 1) to base; 0: none.
  std::uint32_t warmup_steps = 0;
  Shape shape = Shape::kConstant;
  std::vector<std::uint64_t> boundaries{};  // kStep: base steps, ascending
  double factor = 0.1;                      // kStep: of the rate at each boundary, > 0
  std::uint64_t steps = 1;                  // kCosine: base step at which it has come down
  double final_rate = 0;                    // kCosine: from there on, >= 0
};

// The rate at base step k = floor(progress):
//
//   ramp(k) shape(k),   ramp(k) = min(1, (k + 1) / (w + 1))
//   kConstant:  base
//   kStep:      base factor^j, j = boundaries <= k
//   kCosine:    final + (base - final) (1 + cos(pi u)) / 2, u = (k - w) / (steps - w) in [0, 1]
//
// progress  [base steps]  >= 0
// The same bits on every member: made of operations that IEEE 754 rounds correctly, which a
// library's cosine is not.
//
// Source: design.
double ScheduledRate(const Schedule& schedule, double progress);

// The first base step k, once the rate has risen, with ScheduledRate(k) <= fraction base. Nothing
// if it never comes down that far.
std::optional<std::uint64_t> StepOfFall(const Schedule& schedule, double fraction);

struct LearningRateOptions {
  Schedule schedule{};
  std::uint32_t base_batch = 32;  // [samples] B_0 >= 1, that the schedule was chosen for
  // In [0, 1), of an optimizer that bends gradients (optimizers.h) by an average of their squares:
  // how much of that average a step leaves; 0: it goes by the latest alone. Nothing: it bends none.
  std::optional<double> bending_decay{};
};

// The learning rate of a job, computed by every member from equal facts, with equal bits.
//
// Progress counts base steps, i.e. updates of the base batch: an update of S = samples / B_0 base
// batches is worth S of them, under AdaScale as many as its gain. It indexes the schedule; an
// update that jumps over a boundary uses the rate from before it.
//
//   rule       gain              progress of an update
//   constant   1                 S
//   linear     S                 S
//   sqrt       sqrt(S)           S
//   adascale   Adascale, lagged  gain
//
// A window of local steps ends where the mean of its members does, which is a course of steps of
// all their samples B: each local step takes the gain of B. So that the mean goes as far, sqrt is
// of optimizers that bend gradients further multiplied by
//
//   f = sqrt(q),   q <- d q + (1 - d) (1 + phi / b) / (1 + phi / B)   with each local step
//                  q <- d q + (1 - d)                                 with each of B samples
//
// without the bias of its beginning, d = bending_decay: their step is the gradient over its root
// mean square, an average over the latest steps, which the noise of the member's own b samples
// makes longer than that of B. phi, and AdaScale's gain, are those that windows showed, by how far
// the members' changes differed; before the first, AdaScale's that steps showed, and f = 1.
//
// Source: design; progress under adascale: [adascale]; f: algebra, from the second moment of a
// gradient of b samples, ||G||^2 (1 + phi / b).
class LearningRate {
 public:
  struct Rate {
    double rate = 0;  // scheduled rate times gain
    double gain = 1;
  };

  // Plain data, for checkpoints.
  struct State {
    double progress = 0;         // [base steps]
    Adascale::State adascale{};  // of gradients at common parameters
    Adascale::State windows{};   // of the changes that windows of local steps made
    double bending = 0;          // q as it is averaged, from 0
    double bending_weight = 0;   // and 1 likewise

    friend bool operator==(const State&, const State&) = default;
  };

  explicit LearningRate(const LearningRateOptions& options);

  // For an update made of so many samples, > 0.
  Rate Next(LearningRateRule rule, double samples) const;

  // For each step of a window of local steps.
  struct LocalStep {
    double samples = 0;              // B > 0, of all members
    std::uint32_t contributors = 0;  // members with samples, >= 1
    double own = 0;                  // b in (0, B], of one: their mean, weighted by samples
  };
  // The gain of AdaScale is for a mean of several: of a single member's steps it is 1.
  Rate NextOfWindow(LearningRateRule rule, const LocalStep& step) const;

  // An update was made with the Rate that Next gave for its samples. Progress advances, and the
  // moments are folded in under every rule, so that a change to adascale finds them. Facts that are
  // not Usable are those of a skipped update: nothing changes.
  void Applied(LearningRateRule rule, const UpdateFacts& facts);

  struct Window {
    LocalStep step{};
    double samples = 0;         // of all its steps and members: those of an epoch's last are fewer
    std::uint32_t updates = 1;  // >= 1, of one member
  };
  // A window was made, with NextOfWindow's. The facts are of its mean gradient, or step, and those
  // without an estimate where it tells nothing but who contributed.
  void AppliedWindow(LearningRateRule rule, const Window& window, const UpdateFacts& facts);

  // What gradients have shown of their noise no longer holds: both averages begin anew.
  void ForgetNoise();

  double progress() const { return progress_; }  // [base steps]

  // What AdaScale knows: averaged moments, and the gain for any batch.
  const Adascale& adascale() const { return adascale_; }

  State state() const {
    return {.progress = progress_,
            .adascale = adascale_.state(),
            .windows = windows_.state(),
            .bending = bending_,
            .bending_weight = bending_weight_};
  }

  // Goes on from a state. If its base batch was another, progress is re-expressed in the new base
  // steps, at equal samples.
  void Restore(const State& state);

 private:
  const Adascale& OfWindows() const { return windows_.estimated() ? windows_ : adascale_; }
  void Bend(double length2, std::uint32_t steps);
  Rate Bent(LearningRateRule rule, Rate rate) const;

  const LearningRateOptions options_;
  Adascale adascale_;
  Adascale windows_;
  double progress_ = 0;
  double bending_ = 0;  // as State has them
  double bending_weight_ = 0;
};

}  // namespace tactus::policies
