// Average or Adasum, by how far the members' gradients agree.

#pragma once

#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/axis_policy.h"

namespace tactus::policies {

// Where the orthogonality o of P members lies between equal and orthogonal gradients:
//
//   u = (o - 1/P) / (1 - 1/P), within [0, 1]
//
// Returns 0 for one member.
double Disagreement(double orthogonality, std::uint32_t members);

// Samples of base batches whose updates lower the loss as much as one update combined by Adasum,
// which keeps the rate of the schedule and lengthens the step itself:
//
//   U = B_0 (2 m - m^2 / r),   m = 1 + (P - 1) u
//
// r  AdaScale's gain for the batch, as in UsefulSamples
// m  length of the step against the mean gradient's: 1 where all agree, P (a sum) where none do
//
// batch  [samples]  > 0;  base_batch  [samples]  > 0;  noise_scale  [samples]  >= 0
// Returns U, below 0 where the step is more than twice too long.
//
// Source: design; the quadratic model of UsefulSamples. Linear between the two ends.
struct AdasumStep {
  double batch = 32;
  double base_batch = 32;
  double noise_scale = 0;
  double disagreement = 0;  // u
  std::uint32_t members = 1;
};
double UsefulSamplesOfAdasum(const AdasumStep& step);

// Starts with average. Adasum once u was above kAbove, and Adasum promised kGainMin more useful
// samples a second, its exchange taking kTransfer times that of dense averages, in so many rounds
// running; average again once u was below kBelow in as many.
// They are kRounds at first and double with every change up to kRoundsMax, so that a quantity at a
// threshold moves it ever less often.
//
// Adasum is proposed only where the learning rate rule in force may stay and is not `auto`, which
// does the same by a measured gain.
//
// Source: design.
class AutoAggregation final : public RememberingPolicy<AutoAggregation> {
 public:
  static constexpr double kAbove = 0.6;
  static constexpr double kBelow = 0.3;
  static constexpr double kGainMin = 0.10;
  // Adasum sends what a dense mean sends, in more and dependent pieces, with sums of products
  // between: 1.2 times for 16 MiB to 1.8 for 1 MiB, measured (docs/benchmarks.md).
  static constexpr double kTransfer = 1.5;
  static constexpr int kRounds = 20;
  static constexpr int kRoundsMax = 1280;

  // base_batch: [samples] > 0. rate_is_auto: the learning rate rule is `auto`.
  AutoAggregation(double base_batch, bool rate_is_auto)
      : base_batch_(base_batch), rate_is_auto_(rate_is_auto) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;

  friend void Fields(auto& archive, Of<AutoAggregation> auto& policy) {
    archive("rounds_wanted", policy.rounds_wanted_);
    archive("rounds_seen", policy.rounds_seen_);
  }

 private:
  // Useful samples a second of Adasum over those of average, less 1, when the noise scale, speeds
  // and the transfer are known.
  std::optional<double> GainOfAdasum(const Situation& situation, double disagreement) const;
  Proposal Change(const Situation& situation, double disagreement, double gain);

  const double base_batch_;
  const bool rate_is_auto_;
  int rounds_wanted_ = kRounds;
  int rounds_seen_ = 0;  // running, in which a change was called for
};

}  // namespace tactus::policies
