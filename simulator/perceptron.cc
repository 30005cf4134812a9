#include "simulator/perceptron.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "simulator/elementary.h"
#include "simulator/matrix_product.h"

namespace tactus::simulator {
namespace {

MatrixView Rows(const float* values, std::size_t columns) { return {values, columns, 1}; }

// The loss of one sample; slopes [logits] becomes its derivative, softmax minus the label's unit
// vector.
double CrossEntropy(std::span<const float> logits, std::uint32_t label, std::span<float> slopes) {
  // Taken off all, which changes no share and keeps the powers from overflowing.
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const double power = Exponential(static_cast<double>(logits[c]) - largest);
    sum += power;
    slopes[c] = static_cast<float>(power);
  }
  for (float& slope : slopes) slope = static_cast<float>(slope / sum);
  slopes[label] -= 1;
  return Logarithm(sum) - (static_cast<double>(logits[label]) - largest);
}

bool Fits(const Examples& examples, std::size_t features, std::uint32_t classes) {
  return examples.features == features && examples.classes == classes &&
         examples.inputs.size() == examples.size() * features;
}

}  // namespace

Perceptron::Perceptron(const PerceptronOptions& options, std::shared_ptr<const Examples> training,
                       std::shared_ptr<const Examples> validation)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      inputs_(kBlock * training_->features) {
  TACTUS_CHECK(training_->size() > 0 && Fits(*training_, training_->features, training_->classes));
  TACTUS_CHECK(!validation_ || Fits(*validation_, training_->features, training_->classes));
  std::vector<std::size_t> widths = options.hidden;
  widths.push_back(training_->classes);
  std::size_t inputs = training_->features;
  for (const std::size_t outputs : widths) {
    Layer layer{.inputs = inputs, .outputs = outputs};
    layer.activations.resize(kBlock * outputs);
    layer.slopes.resize(kBlock * outputs);
    layers_.push_back(std::move(layer));
    inputs = outputs;
  }
  // From the last layer on, the order in which a backward pass finishes gradients.
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const std::string name = "layers." + std::to_string(l);
    const auto rows = static_cast<std::int64_t>(layers_[l].outputs);
    const auto columns = static_cast<std::int64_t>(layers_[l].inputs);
    segments_.push_back({.name = name + ".bias", .length = layers_[l].outputs, .shape = {rows}});
    segments_.push_back({.name = name + ".weight",
                         .length = layers_[l].outputs * layers_[l].inputs,
                         .shape = {rows, columns}});
  }
  cuda::AssignOffsets(segments_);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const std::size_t first = 2 * (layers_.size() - 1 - l);
    layers_[l].bias = segments_[first].offset;
    layers_[l].weight = segments_[first + 1].offset;
  }
}

void Perceptron::Initialise(std::uint64_t seed, std::span<float> parameters) const {
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const cuda::Segment& segment = segments_[s];
    const double inputs = static_cast<double>(layers_[layers_.size() - 1 - s / 2].inputs);
    const double bound = 1 / std::sqrt(inputs);
    Rng rng = Rng(seed).Fork(segment.name);
    for (float& value : parameters.subspan(segment.offset, segment.length)) {
      value = static_cast<float>((2 * rng.Uniform() - 1) * bound);
    }
  }
}

double Perceptron::ForwardBackward(const engine::Batch& batch, std::span<const float> parameters,
                                   std::span<float> gradients) {
  const std::span<const std::uint64_t> indices(batch.indices);
  double loss = 0;
  for (std::size_t first = 0; first < indices.size(); first += kBlock) {
    Load(*training_, indices.subspan(first, std::min(kBlock, indices.size() - first)));
    Forward(parameters);
    loss += LossAndSlopes();
    Backward(parameters, gradients);
  }
  return loss;
}

std::optional<double> Perceptron::Validate(std::span<const float> parameters) {
  if (!validation_ || validation_->size() == 0) return std::nullopt;
  std::array<std::uint64_t, kBlock> indices{};
  double loss = 0;
  for (std::size_t first = 0; first < validation_->size(); first += kBlock) {
    std::iota(indices.begin(), indices.end(), first);
    Load(*validation_, std::span(indices).first(std::min(kBlock, validation_->size() - first)));
    Forward(parameters);
    loss += LossAndSlopes();
  }
  return loss / static_cast<double>(validation_->size());
}

void Perceptron::Load(const Examples& examples, std::span<const std::uint64_t> indices) {
  count_ = indices.size();
  for (std::size_t i = 0; i < count_; ++i) {
    std::copy_n(examples.inputs.data() + indices[i] * examples.features, examples.features,
                inputs_.data() + i * examples.features);
    labels_[i] = examples.labels[indices[i]];
  }
}

const std::vector<float>& Perceptron::InputsOf(std::size_t layer) const {
  return layer == 0 ? inputs_ : layers_[layer - 1].activations;
}

void Perceptron::Forward(std::span<const float> parameters) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    Layer& layer = layers_[l];
    const float* bias = parameters.data() + layer.bias;
    for (std::size_t i = 0; i < count_; ++i) {
      std::copy_n(bias, layer.outputs, layer.activations.data() + i * layer.outputs);
    }
    const MatrixView weight = Rows(parameters.data() + layer.weight, layer.inputs);
    AddProduct({.rows = count_, .terms = layer.inputs, .columns = layer.outputs},
               Rows(InputsOf(l).data(), layer.inputs), weight.Transposed(),
               layer.activations.data());
    if (l + 1 == layers_.size()) return;
    // A NaN stays one.
    for (float& value : layer.activations) value = value < 0 ? 0 : value;
  }
}

double Perceptron::LossAndSlopes() {
  Layer& last = layers_.back();
  double loss = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    loss +=
        CrossEntropy(std::span(last.activations).subspan(i * last.outputs, last.outputs),
                     labels_[i], std::span(last.slopes).subspan(i * last.outputs, last.outputs));
  }
  return loss;
}

void Perceptron::Backward(std::span<const float> parameters, std::span<float> gradients) {
  for (std::size_t l = layers_.size(); l-- > 0;) {
    const Layer& layer = layers_[l];
    const MatrixView slopes = Rows(layer.slopes.data(), layer.outputs);
    float* bias = gradients.data() + layer.bias;
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        bias[o] += layer.slopes[i * layer.outputs + o];
      }
    }
    AddProduct({.rows = layer.outputs, .terms = count_, .columns = layer.inputs},
               slopes.Transposed(), Rows(InputsOf(l).data(), layer.inputs),
               gradients.data() + layer.weight);
    if (l == 0) return;
    Layer& below = layers_[l - 1];
    std::ranges::fill(below.slopes, 0.0F);
    AddProduct({.rows = count_, .terms = layer.outputs, .columns = layer.inputs}, slopes,
               Rows(parameters.data() + layer.weight, layer.inputs), below.slopes.data());
    for (std::size_t k = 0; k < below.slopes.size(); ++k) {
      if (!(below.activations[k] > 0)) below.slopes[k] = 0;
    }
  }
}

}  // namespace tactus::simulator
