// A statistical stand-in for model and data: a quadratic bowl with gradient noise of known size.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cuda/ops/segments.h"
#include "simulator/learner.h"

namespace tactus::simulator {

struct NoisyQuadraticOptions {
  std::size_t dimension = 16;           // >= segments
  std::size_t segments = 1;             // pieces of the flat buffer, of nearly equal length, >= 1
  double condition = 100;               // largest over smallest eigenvalue, in [1, 1e12]
  double initial_loss = 2.3;            // expected at the start, >= loss_floor
  double loss_floor = 0;                // expected loss at the minimum
  double gradient_noise = 1;            // tr(Sigma) of one sample [gradient^2], >= 0
  double loss_noise = 0;                // standard deviation of one sample's loss, >= 0
  std::uint64_t train_samples = 50000;  // in an epoch, >= 1
  std::uint64_t seed = 1;               // of the noise
};

// The expected loss of parameters x [d] and the gradient of one sample are
//
//   L(x) = floor + 1/2 sum_k h_k x_k^2,    g(x) = h x + e,    e ~ (0, sigma^2 I)
//
// h_k         eigenvalues, evenly spaced in their logarithm from 1 / condition to 1; of d = 1: 1
// sigma^2     [gradient^2]  gradient_noise / d, the same everywhere: tr(Sigma) = gradient_noise
//
// So the simple noise scale, the batch at which noise and gradient of a step are equally long, is
// tr(Sigma) / sum_k (h_k x_k)^2; it grows as the loss falls. Plain SGD at rate eta on batches of n
// ends up, where eta < 2, at the mean loss
//
//   floor + sum_k eta sigma^2 / (2 n (2 - eta h_k))
//
// The noise of a batch is drawn at once, by (seed, epoch, first sample, number of samples), so that
// a call costs O(d) whatever the batch. Equal batches have equal noise; different ones independent
// noise, though they may share samples.
//
// Source: memory, unverified: [mccandlish] equation 2.9 for the noise scale; the mean loss is the
// stationary variance of x <- (1 - eta h) x - eta e, eta^2 sigma^2 / n / (1 - (1 - eta h)^2).
class NoisyQuadratic final : public Learner {
 public:
  explicit NoisyQuadratic(const NoisyQuadraticOptions& options);

  const cuda::SegmentTable& segments() const override { return segments_; }
  std::uint64_t train_samples() const override { return options_.train_samples; }

  // All |x_k| are equal; the seed chooses the signs.
  void Initialise(std::uint64_t seed, std::span<float> parameters) const override;

  double ForwardBackward(const engine::Batch& batch, std::span<const float> parameters,
                         std::span<float> gradients) override;

  // The expected loss, without noise.
  std::optional<double> Validate(std::span<const float> parameters) override;

  // h [d], rising, in the order of the segments' elements.
  std::span<const float> eigenvalues() const { return eigenvalues_; }

 private:
  const NoisyQuadraticOptions options_;
  const double sigma_;  // of an element of a sample's gradient
  std::vector<float> eigenvalues_;
  cuda::SegmentTable segments_;
};

}  // namespace tactus::simulator
