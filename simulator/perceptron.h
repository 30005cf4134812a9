// A small model that really learns: a multi-layer perceptron on data in memory.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/ops/segments.h"
#include "simulator/examples.h"
#include "simulator/learner.h"

namespace tactus::simulator {

struct PerceptronOptions {
  std::vector<std::size_t> hidden{64};  // widths of the hidden layers, each >= 1; empty: linear
};

// Linear layers with ReLU between them, softmax cross-entropy at the end:
//
//   a_0 = input,   a_l = max(0, W_l a_(l-1) + b_l),   logits z = W_L a_(L-1) + b_L
//   loss = ln(sum_c e^(z_c)) - z_label
//
// Parameters are named and initialised as those of torch.nn.Sequential's Linear layers: weights
// [outputs, inputs] and biases uniform in +-1/sqrt(inputs). Segments stand in reverse order of the
// layers, a bias before its weight, as in agent/model: the order in which a backward pass completes
// them.
//
// float32 as on a device; losses are summed up in float64. A sum over a batch depends on the order
// of its samples by rounding alone.
class Perceptron final : public Learner {
 public:
  // The learners of a scenario's jobs on the same data share the examples. validation may be null;
  // features and classes are those of training.
  Perceptron(const PerceptronOptions& options, std::shared_ptr<const Examples> training,
             std::shared_ptr<const Examples> validation);

  const cuda::SegmentTable& segments() const override { return segments_; }
  std::uint64_t train_samples() const override { return training_->size(); }

  void Initialise(std::uint64_t seed, std::span<float> parameters) const override;

  double ForwardBackward(const engine::Batch& batch, std::span<const float> parameters,
                         std::span<float> gradients) override;

  std::optional<double> Validate(std::span<const float> parameters) override;

 private:
  // Samples that pass through the layers together: their activations fit into the cache.
  static constexpr std::size_t kBlock = 64;

  struct Layer {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    std::size_t weight = 0;            // offset in the flat buffer
    std::size_t bias = 0;              // offset in the flat buffer
    std::vector<float> activations{};  // [kBlock, outputs]; of the last layer: logits
    std::vector<float> slopes{};       // [kBlock, outputs], of the loss by what enters the ReLU
  };

  void Load(const Examples& examples, std::span<const std::uint64_t> indices);
  void Forward(std::span<const float> parameters);
  double LossAndSlopes();
  void Backward(std::span<const float> parameters, std::span<float> gradients);
  const std::vector<float>& InputsOf(std::size_t layer) const;

  const std::shared_ptr<const Examples> training_;
  const std::shared_ptr<const Examples> validation_;
  cuda::SegmentTable segments_;
  std::vector<Layer> layers_;

  // The block that is under way.
  std::size_t count_ = 0;
  std::vector<float> inputs_;                   // [kBlock, features]
  std::array<std::uint32_t, kBlock> labels_{};  // the first count_ are set
};

}  // namespace tactus::simulator
