// The losses of a run that was recorded, for the question how long it takes elsewhere.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cuda/ops/segments.h"
#include "simulator/learner.h"
#include "simulator/power_law.h"

namespace tactus::simulator {

struct RecordedCurveOptions {
  std::vector<LossPoint> points{};  // at least one, by rising samples
  std::uint64_t train_samples = 1;  // in an epoch, >= 1
  // Beyond the recording the losses of a round vary around the law by its residual, as the recorded
  // ones did around it; the same for all members, so that their mean varies as much.
  bool noise = false;
  std::uint64_t seed = 1;  // of the noise
};

// Assumes that the loss depends on the number of samples seen, and on nothing else: not on batch
// sizes, learning rate or parameters. Gradients are zero, parameters a segment in name only.
//
// Has a state, unlike what Learner promises: it counts the samples that it was asked for, over all
// members of a job, and so serves one job. Samples of a round that was lost and repeated count
// twice.
//
// The loss after n samples lies on a straight line between the recorded points around n, so between
// their losses; before the first point it is that point's. After the last it is that of a power law
// fitted to the last two thirds of the points (of a few, to kFitPointsMin), which need not continue
// the last one: that one has its own noise.
class RecordedCurve final : public Learner {
 public:
  explicit RecordedCurve(RecordedCurveOptions options);

  const cuda::SegmentTable& segments() const override { return segments_; }
  std::uint64_t train_samples() const override { return options_.train_samples; }
  void Initialise(std::uint64_t seed, std::span<float> parameters) const override;
  double ForwardBackward(const engine::Batch& batch, std::span<const float> parameters,
                         std::span<float> gradients) override;

  // Nothing: a recording holds training losses.
  std::optional<double> Validate(std::span<const float> parameters) override;

  // The loss after `samples` >= 0, without noise.
  double LossAt(double samples) const;

  const PowerLaw& law() const { return law_; }

 private:
  const RecordedCurveOptions options_;
  const PowerLaw law_;
  cuda::SegmentTable segments_;
  std::uint64_t samples_ = 0;  // asked for
};

}  // namespace tactus::simulator
