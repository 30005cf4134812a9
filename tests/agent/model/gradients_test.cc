// ForwardBackward: what it adds to the flat gradients, and when it says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "agent/model/model.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

ModelOptions SmallBytesLm() {
  ModelOptions options{.builtin = "bytes-lm"};
  options.width = 16;
  options.heads = 2;
  options.layers = 2;
  options.context = 8;
  return options;
}

std::span<float> Part(const AlignedFloats& flat, const cuda::Segment& segment) {
  return flat.span().subspan(segment.offset, segment.length);
}

double SquaredNorm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return sum;
}

void AddScaled(std::span<float> values, std::span<const float> direction, double scale) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] += static_cast<float>(scale * direction[i]);
  }
}

// Moves each segment along its own gradient g by +-step: the loss must change at the rate |g|^2.
// With a movement of 0.02 the third-order term and float32's rounding of a loss near 20 both stay
// below 2 %.
void ExpectGradientsMatchDifferences(BoundModel& bound, const Examples& examples) {
  bound.Step(examples);
  for (const cuda::Segment& segment : bound.model->segments()) {
    SCOPED_TRACE(segment.name);
    const std::span<float> weights = Part(bound.parameters, segment);
    const std::span<float> gradient = Part(bound.gradients, segment);
    const std::vector<float> before(weights.begin(), weights.end());
    const double rate = SquaredNorm(gradient);
    ASSERT_GT(rate, 0);
    const double step = 0.02 / std::sqrt(rate);

    AddScaled(weights, gradient, step);
    const double above = bound.EvaluateLoss(examples);
    std::ranges::copy(before, weights.begin());
    AddScaled(weights, gradient, -step);
    const double below = bound.EvaluateLoss(examples);
    std::ranges::copy(before, weights.begin());

    const double rounding = 1e-5 / (2 * step);
    EXPECT_NEAR((above - below) / (2 * step), rate, 0.02 * rate + rounding);
  }
}

TEST(GradientsTest, MatchDifferencesOfTheLossForCrossEntropy) {
  const ScratchFolder folder;
  WriteClassifier(folder.Path("m.pt"), {});
  BoundModel bound({.torchscript = folder.Path("m.pt")});

  ExpectGradientsMatchDifferences(bound, Vectors(6, 3, 2).All());
}

TEST(GradientsTest, MatchDifferencesOfTheLossForMeanSquaredError) {
  const ScratchFolder folder;
  WriteClassifier(folder.Path("m.pt"), {});
  BoundModel bound({.torchscript = folder.Path("m.pt"), .loss = "mse"});
  const ExampleSet examples(6, {.shape = {3}}, {.shape = {2}});

  ExpectGradientsMatchDifferences(bound, examples.All());
}

TEST(GradientsTest, MatchDifferencesOfTheLossForBytesLm) {
  BoundModel bound(SmallBytesLm());

  ExpectGradientsMatchDifferences(bound, Tokens(4, 8).All());
}

TEST(GradientsTest, AreSumsOverSamplesHoweverTheyAreSplit) {
  BoundModel bound(SmallBytesLm());
  const ExampleSet examples = Tokens(16, 8);

  const double whole_loss = bound.Step(examples.All());
  const std::vector<float> whole = bound.Gradients();
  bound.ClearGradients();
  double split_loss = 0;
  std::uint64_t first = 0;
  for (const std::uint64_t count : {7, 5, 3, 1}) {
    split_loss += bound.Step(examples.Range(first, count));
    first += count;
  }
  const std::vector<float> split = bound.Gradients();

  EXPECT_NEAR(split_loss, whole_loss, 1e-5 * whole_loss);
  // Sixteen float32 sums in another order: 16 roundings of 6e-8 of the largest partial sum.
  const float bound_of_error = 1e-5F * *std::ranges::max_element(whole);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    ASSERT_NEAR(split[i], whole[i], 1e-5F * std::abs(whole[i]) + bound_of_error) << i;
  }
}

TEST(GradientsTest, LossIsTheMeanOverPositionsSummedOverSamples) {
  ModelOptions options = SmallBytesLm();
  BoundModel bound(options);
  for (float& weight : bound.parameters.span()) weight = 0;

  const double loss = bound.Step(Tokens(5, 8).All());

  EXPECT_NEAR(loss, 5 * std::log(256.0), 1e-4);
}

TEST(GradientsTest, StandInTheFlatBufferAndAddUp) {
  BoundModel bound(SmallBytesLm());
  const ExampleSet examples = Tokens(3, 8);

  bound.Step(examples.All());
  const std::vector<float> once = bound.Gradients();
  bound.Step(examples.All());
  const std::vector<float> twice = bound.Gradients();

  for (const cuda::Segment& segment : bound.model->segments()) {
    EXPECT_GT(SquaredNorm(Part(bound.gradients, segment)), 0) << segment.name;
  }
  for (std::size_t i = 0; i < once.size(); ++i) ASSERT_FLOAT_EQ(twice[i], 2 * once[i]) << i;
}

TEST(GradientsTest, OfAnEmptyBatchAreNothing) {
  BoundModel bound(SmallBytesLm());
  const ExampleSet examples = Tokens(1, 8);
  std::size_t reported = 0;

  const double loss = bound.Step(examples.Range(0, 0), [&reported](std::size_t) { ++reported; });

  EXPECT_EQ(loss, 0);
  EXPECT_EQ(SquaredNorm(bound.gradients.span()), 0);
  EXPECT_EQ(reported, bound.model->segments().size());
}

TEST(GradientsTest, FollowTheFlatWeights) {
  BoundModel bound(SmallBytesLm());
  const ExampleSet examples = Tokens(3, 8);

  const double before = bound.EvaluateLoss(examples.All());
  bound.Step(examples.All());
  AddScaled(bound.parameters.span(), bound.gradients.span(), -0.05);

  EXPECT_LT(bound.EvaluateLoss(examples.All()), before);
}

TEST(SegmentReadyTest, CoversAllSegmentsOnceFromTheFrontOfTheBuffer) {
  BoundModel bound(SmallBytesLm());
  const ExampleSet examples = Tokens(3, 8);
  std::vector<std::size_t> order;

  bound.Step(examples.All(), [&order](std::size_t segment) { order.push_back(segment); });

  std::vector<std::size_t> every(bound.model->segments().size());
  std::iota(every.begin(), every.end(), 0);
  EXPECT_THAT(order, testing::UnorderedElementsAreArray(every));
  // Weight and bias of one layer may come in either order; nothing is further from its place.
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_LE(std::max(order[i], i) - std::min(order[i], i), 2U) << i;
  }
}

TEST(SegmentReadyTest, ComesWhenTheGradientIsComplete) {
  BoundModel bound(SmallBytesLm());
  const ExampleSet examples = Tokens(3, 8);
  const cuda::SegmentTable& segments = bound.model->segments();
  std::vector<std::vector<float>> seen(segments.size());

  bound.Step(examples.All(), [&](std::size_t segment) {
    const std::span<float> part = Part(bound.gradients, segments[segment]);
    seen[segment].assign(part.begin(), part.end());
  });

  for (std::size_t i = 0; i < segments.size(); ++i) {
    EXPECT_THAT(Part(bound.gradients, segments[i]), testing::ElementsAreArray(seen[i]));
  }
}

TEST(SegmentReadyTest, ComesAtTheEndForAParameterThatIsNotUsed) {
  const ScratchFolder folder;
  WriteTorchScript(folder.Path("m.pt"),
                   {{.name = "used", .shape = {2, 3}}, {.name = "unused", .shape = {5}}},
                   "def forward(self, x):\n    return torch.linear(x, self.used)\n");
  BoundModel bound({.torchscript = folder.Path("m.pt")});
  const ExampleSet examples = Vectors(4, 3, 2);
  std::vector<std::string> order;

  bound.Step(examples.All(),
             [&](std::size_t segment) { order.push_back(bound.model->segments()[segment].name); });

  EXPECT_THAT(order, testing::ElementsAre("used", "unused"));
}

TEST(SegmentReadyTest, ComesOnceForTiedParametersWithTheSumOfBothUses) {
  const ScratchFolder folder;
  WriteTorchScript(folder.Path("tied.pt"),
                   {{.name = "a", .shape = {2, 2}}, {.name = "b", .tied_to = "a"}},
                   "def forward(self, x):\n"
                   "    return torch.linear(torch.tanh(torch.linear(x, self.a)), self.b)\n");
  WriteTorchScript(folder.Path("apart.pt"),
                   {{.name = "a", .shape = {2, 2}}, {.name = "b", .shape = {2, 2}}},
                   "def forward(self, x):\n"
                   "    return torch.linear(torch.tanh(torch.linear(x, self.a)), self.b)\n");
  BoundModel tied({.torchscript = folder.Path("tied.pt")});
  BoundModel apart({.torchscript = folder.Path("apart.pt")});
  const ExampleSet examples = Vectors(4, 2, 2);
  int calls = 0;

  tied.Step(examples.All(), [&calls](std::size_t) { ++calls; });
  apart.Step(examples.All());

  EXPECT_EQ(calls, 1);
  ASSERT_EQ(tied.model->segments().size(), 1U);
  ASSERT_EQ(apart.model->segments().size(), 2U);
  const std::span<float> first = Part(apart.gradients, apart.model->segments()[0]);
  const std::span<float> second = Part(apart.gradients, apart.model->segments()[1]);
  const std::span<float> sum = Part(tied.gradients, tied.model->segments()[0]);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(sum[i], first[i] + second[i], 1e-6);
}

TEST(SegmentsTest, StandInReverseOrderWithoutThoseThatNeedNoGradient) {
  const ScratchFolder folder;
  WriteTorchScript(folder.Path("m.pt"),
                   {{.name = "first", .shape = {2, 3}},
                    {.name = "frozen", .shape = {2}, .needs_gradient = false},
                    {.name = "last", .shape = {2}}},
                   "def forward(self, x):\n"
                   "    return torch.linear(x, self.first, self.frozen) * self.last\n");
  const BoundModel bound({.torchscript = folder.Path("m.pt")});

  const cuda::SegmentTable& segments = bound.model->segments();

  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].name, "last");
  EXPECT_EQ(segments[0].offset, 0U);
  EXPECT_EQ(segments[1].name, "first");
  EXPECT_EQ(segments[1].offset, 16U);
  EXPECT_THAT(segments[1].shape, testing::ElementsAre(2, 3));
}

TEST(BindTest, KeepsWeightsAndPutsZerosIntoTheGaps) {
  const ScratchFolder folder;
  WriteClassifier(folder.Path("m.pt"), {});
  BoundModel bound({.torchscript = folder.Path("m.pt")});
  const ExampleSet examples = Vectors(4, 3, 2);
  const double loss = bound.EvaluateLoss(examples.All());
  AlignedFloats parameters(bound.parameters.span().size());
  AlignedFloats gradients(bound.gradients.span().size());
  for (float& value : parameters.span()) value = 7;
  for (float& value : gradients.span()) value = 0;

  bound.model->Bind(parameters.span(), gradients.span(), {&bound.loss_sum, 1});
  for (float& value : bound.parameters.span()) value = 0;

  EXPECT_EQ(bound.EvaluateLoss(examples.All()), loss);
  bound.Step(examples.All());
  EXPECT_GT(SquaredNorm(gradients.span()), 0);
  EXPECT_EQ(SquaredNorm(bound.gradients.span()), 0);
  const cuda::Segment& first = bound.model->segments()[0];
  EXPECT_EQ(parameters.span()[first.offset + first.length], 0);
}

}  // namespace
}  // namespace tactus::model
