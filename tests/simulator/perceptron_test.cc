#include "simulator/perceptron.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::simulator {
namespace {

using Parameters = std::vector<double>;

std::shared_ptr<const Examples> Synthetic(const SyntheticOptions& options) {
  return std::make_shared<const Examples>(MakeSyntheticExamples(options));
}

engine::Batch BatchOf(std::vector<std::uint64_t> indices) {
  engine::Batch batch;
  batch.indices = std::move(indices);
  return batch;
}

engine::Batch BatchOfFirst(std::size_t count) {
  std::vector<std::uint64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return BatchOf(std::move(indices));
}

std::vector<float> Start(const Perceptron& learner, std::uint64_t seed = 1) {
  std::vector<float> parameters(cuda::FlatLength(learner.segments()));
  learner.Initialise(seed, parameters);
  return parameters;
}

const cuda::Segment& Named(const Perceptron& learner, const std::string& name) {
  return *std::ranges::find(learner.segments(), name, &cuda::Segment::name);
}

// The slow twin: outputs of a layer, one by one, in float64.
std::vector<double> Linear(const Perceptron& learner, const Parameters& parameters, int layer,
                           const std::vector<double>& inputs) {
  const std::string name = "layers." + std::to_string(layer);
  const cuda::Segment& weight = Named(learner, name + ".weight");
  const cuda::Segment& bias = Named(learner, name + ".bias");
  std::vector<double> outputs;
  for (std::size_t o = 0; o < bias.length; ++o) {
    double sum = parameters[bias.offset + o];
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      sum += parameters[weight.offset + o * inputs.size() + k] * inputs[k];
    }
    outputs.push_back(sum);
  }
  return outputs;
}

// The slow twin's loss of one sample.
double LossOf(const Perceptron& learner, const Parameters& parameters, const Examples& examples,
              std::size_t sample) {
  const float* input = examples.inputs.data() + sample * examples.features;
  std::vector<double> values(input, input + examples.features);
  const int layers = static_cast<int>(learner.segments().size() / 2);
  for (int layer = 0; layer < layers; ++layer) {
    values = Linear(learner, parameters, layer, values);
    if (layer + 1 == layers) break;
    for (double& value : values) value = std::max(value, 0.0);
  }
  double sum = 0;
  for (const double value : values) sum += std::exp(value);
  return std::log(sum) - values[examples.labels[sample]];
}

double LossOfFirst(const Perceptron& learner, const Parameters& parameters,
                   const Examples& examples, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += LossOf(learner, parameters, examples, i);
  return sum;
}

// float32 against the slow twin: a value goes through fewer than 128 roundings of sums whose terms,
// a sample, are at most its largest input (slopes and weights are below 1).
constexpr double kTolerance = 128 * 0x1.0p-24;

void ExpectTrueGradients(const std::vector<std::size_t>& hidden) {
  constexpr std::size_t kSamples = 70;  // more than a block
  const auto examples = Synthetic({.samples = kSamples, .features = 19, .classes = 5});
  Perceptron learner({.hidden = hidden}, examples, nullptr);
  const std::vector<float> start = Start(learner);
  std::vector<float> gradients(start.size());
  const double loss = learner.ForwardBackward(BatchOfFirst(kSamples), start, gradients);
  Parameters parameters(start.begin(), start.end());

  const double largest = std::abs(
      *std::ranges::max_element(examples->inputs, {}, [](float x) { return std::abs(x); }));
  const double tolerance = kTolerance * kSamples * largest;
  EXPECT_NEAR(loss, LossOfFirst(learner, parameters, *examples, kSamples), tolerance);
  constexpr double kStep = 1e-5;  // the difference errs by 1e-10 of curvature and 1e-9 of rounding
  for (const cuda::Segment& segment : learner.segments()) {
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
      parameters[i] = start[i] + kStep;
      const double above = LossOfFirst(learner, parameters, *examples, kSamples);
      parameters[i] = start[i] - kStep;
      const double below = LossOfFirst(learner, parameters, *examples, kSamples);
      parameters[i] = start[i];
      ASSERT_NEAR(gradients[i], (above - below) / (2 * kStep), tolerance) << segment.name;
    }
  }
}

TEST(PerceptronTest, GradientsOfALinearModelAreDerivativesOfTheLoss) { ExpectTrueGradients({}); }
TEST(PerceptronTest, GradientsOfTwoLayersAreDerivativesOfTheLoss) { ExpectTrueGradients({17}); }
TEST(PerceptronTest, GradientsOfThreeLayersAreDerivativesOfTheLoss) {
  ExpectTrueGradients({17, 6});
}

TEST(PerceptronTest, LossesAndGradientsAreSumsOverTheSamples) {
  const auto examples = Synthetic({.samples = 10, .features = 8});
  Perceptron learner({}, examples, nullptr);
  const std::vector<float> parameters = Start(learner);
  std::vector<float> together(parameters.size());
  std::vector<float> apart(parameters.size());

  const double loss = learner.ForwardBackward(BatchOf({3, 7}), parameters, together);
  const double first = learner.ForwardBackward(BatchOf({3}), parameters, apart);
  const double second = learner.ForwardBackward(BatchOf({7}), parameters, apart);

  EXPECT_EQ(loss, first + second);
  EXPECT_NE(first, second);
  for (std::size_t i = 0; i < together.size(); ++i) {
    EXPECT_NEAR(together[i], apart[i], 0x1.0p-22 * std::abs(apart[i]) + 1e-6) << i;
  }
}

TEST(PerceptronTest, LossFallsAsItLearns) {
  const auto training = Synthetic({.samples = 5000});
  const auto validation = Synthetic({.samples = 1000, .first = 5000});
  Perceptron learner({}, training, validation);
  std::vector<float> parameters = Start(learner);
  constexpr std::size_t kCount = 64;

  const double before = learner.Validate(parameters).value();
  for (std::size_t step = 0; step < 200; ++step) {
    engine::Batch batch = BatchOfFirst(kCount);
    for (std::uint64_t& index : batch.indices) index = (index + step * kCount) % 5000;
    std::vector<float> gradients(parameters.size());
    learner.ForwardBackward(batch, parameters, gradients);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] -= 0.1F / kCount * gradients[i];
    }
  }

  EXPECT_NEAR(before, std::log(10), 0.3);  // chance
  EXPECT_LT(learner.Validate(parameters).value(), 0.8);
}

TEST(PerceptronTest, ValidatesOnTheMeanOfItsOwnSamples) {
  const auto training = Synthetic({.samples = 10, .features = 6});
  const auto validation = Synthetic({.samples = 130, .features = 6, .first = 10});
  Perceptron learner({}, training, validation);
  Perceptron blind({}, training, nullptr);
  const std::vector<float> parameters = Start(learner);

  const Parameters exact(parameters.begin(), parameters.end());
  EXPECT_NEAR(learner.Validate(parameters).value(),
              LossOfFirst(learner, exact, *validation, 130) / 130, 1e-5);
  EXPECT_FALSE(blind.Validate(parameters).has_value());
  EXPECT_EQ(learner.train_samples(), 10);
}

TEST(PerceptronTest, SegmentsStandInTheOrderOfTheBackwardPassWithoutOverlap) {
  const Perceptron learner({.hidden = {3, 5}}, Synthetic({.features = 7, .classes = 2}), nullptr);

  const cuda::SegmentTable& segments = learner.segments();
  std::vector<std::string> names;
  std::size_t end = 0;
  for (const cuda::Segment& segment : segments) {
    names.push_back(segment.name);
    EXPECT_GE(segment.offset, end);
    EXPECT_EQ(segment.offset % cuda::kSegmentAlignment, 0);
    end = segment.offset + segment.length;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"layers.2.bias", "layers.2.weight", "layers.1.bias",
                                      "layers.1.weight", "layers.0.bias", "layers.0.weight"}));
  EXPECT_EQ(Named(learner, "layers.1.weight").shape, (std::vector<std::int64_t>{5, 3}));
  EXPECT_EQ(Named(learner, "layers.0.weight").length, 21);
}

TEST(PerceptronTest, StartsWithinTheBoundOfTheLayersInputsAndZeroPadding) {
  const Perceptron learner({.hidden = {50}}, Synthetic({.features = 25}), nullptr);
  const std::vector<float> parameters = Start(learner);

  std::size_t nonzero = 0;
  std::size_t length = 0;
  for (const cuda::Segment& segment : learner.segments()) {
    const bool first = segment.name.starts_with("layers.0");
    const double bound = 1 / std::sqrt(first ? 25.0 : 50.0);
    double largest = 0;
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(parameters[i])));
    }
    EXPECT_LE(largest, bound * (1 + 1e-6)) << segment.name;
    EXPECT_GE(largest, 0.5 * bound) << segment.name;
    length += segment.length;
  }
  for (const float value : parameters) nonzero += value != 0 ? 1 : 0;
  EXPECT_LE(nonzero, length);
  EXPECT_GE(nonzero, length - 1);
}

TEST(PerceptronTest, EqualCallsGiveEqualBitsWhateverCameBefore) {
  const auto examples = Synthetic({.samples = 200});
  Perceptron learner({}, examples, nullptr);
  Perceptron other({}, examples, nullptr);
  const std::vector<float> parameters = Start(learner);
  std::vector<float> gradients(parameters.size());
  std::vector<float> again(parameters.size());
  std::vector<float> dropped(parameters.size());
  other.ForwardBackward(BatchOfFirst(150), parameters, dropped);

  const double loss = learner.ForwardBackward(BatchOf({9, 4, 180}), parameters, gradients);

  EXPECT_EQ(other.ForwardBackward(BatchOf({9, 4, 180}), parameters, again), loss);
  EXPECT_EQ(again, gradients);
  EXPECT_EQ(Start(learner, 1), Start(other, 1));
  EXPECT_NE(Start(learner, 1), Start(other, 2));
}

TEST(PerceptronTest, LossOfParametersThatAreNoNumbersIsNone) {
  Perceptron learner({}, Synthetic({.samples = 4}), nullptr);
  std::vector<float> parameters = Start(learner);
  std::ranges::fill(parameters, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> gradients(parameters.size());

  EXPECT_TRUE(std::isnan(learner.ForwardBackward(BatchOfFirst(4), parameters, gradients)));
  EXPECT_TRUE(std::isnan(gradients[0]));
}

}  // namespace
}  // namespace tactus::simulator
