// ForwardBackward: the gradients that it hands over, and when.

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

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

TEST(GradientsTest, OfOnePassHaveNothingOfAnother) {
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

// libtorch's own tensors change hands: nobody else has them, and they are there as long as whoever
// took them likes.
TEST(GradientsTest, AreTheTakersOwn) {
  BoundModel bound(SmallBytesLm());
  const ExampleSet examples = Tokens(3, 8);
  std::vector<SegmentGradient> taken;
  const TakeGradient take = [&taken](SegmentGradient gradient) {
    taken.push_back(std::move(gradient));
  };

  ASSERT_TRUE(bound.model->ForwardBackward(examples.All(), take).ok());
  for (float& weight : bound.parameters.span()) weight *= 2;
  bound.Step(examples.All());
  for (float& weight : bound.parameters.span()) weight /= 2;
  bound.ClearGradients();
  bound.Step(examples.All());

  ASSERT_EQ(taken.size(), bound.model->segments().size());
  for (const SegmentGradient& gradient : taken) {
    const std::span<float> expected =
        Part(bound.gradients, bound.model->segments()[gradient.segment]);
    ASSERT_NE(gradient.values, nullptr);
    EXPECT_THAT(std::vector<float>(gradient.values, gradient.values + expected.size()),
                testing::ElementsAreArray(expected));
  }
}

// Operations of libtorch since it began, by name; one at a time.
class CountedOperations {
 public:
  CountedOperations() {
    counts_.clear();
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function)
                                       -> std::unique_ptr<at::ObserverContext> {
          ++counts_[function.name()];
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~CountedOperations() { at::removeCallback(handle_); }

  int Of(const std::string& name) const { return counts_[name]; }

 private:
  static inline std::map<std::string, int> counts_;
  at::CallbackHandle handle_;
};

// Autograd neither adds what it made to something nor copies it.
TEST(GradientsTest, AreThereWithoutAnOperationATensor) {
  const ScratchFolder folder;
  WriteTorchScript(folder.Path("m.pt"),
                   {{.name = "w", .shape = {2, 3}}, {.name = "b", .shape = {2}}},
                   "def forward(self, x):\n    return torch.linear(x, self.w, self.b)\n");
  BoundModel bound({.torchscript = folder.Path("m.pt")});
  const ExampleSet examples = Vectors(4, 3, 2);
  bound.Step(examples.All());

  const CountedOperations counted;
  bound.Step(examples.All());

  EXPECT_GT(counted.Of("aten::mm"), 0);
  EXPECT_EQ(counted.Of("aten::add_"), 1);  // of the loss
  EXPECT_EQ(counted.Of("aten::clone"), 0);
}

TEST(GradientsTest, OfAParameterThatIsNotUsedAreNotThere) {
  const ScratchFolder folder;
  WriteTorchScript(folder.Path("m.pt"),
                   {{.name = "used", .shape = {2, 3}}, {.name = "unused", .shape = {5}}},
                   "def forward(self, x):\n    return torch.linear(x, self.used)\n");
  BoundModel bound({.torchscript = folder.Path("m.pt")});
  const ExampleSet examples = Vectors(4, 3, 2);
  std::vector<std::string> missing;

  const absl::Status passed =
      bound.model->ForwardBackward(examples.All(), [&](const SegmentGradient& gradient) {
        if (gradient.values != nullptr) return;
        missing.push_back(bound.model->segments()[gradient.segment].name);
      });

  EXPECT_TRUE(passed.ok()) << passed;
  EXPECT_THAT(missing, testing::ElementsAre("unused"));
}

// A sparse gradient has only the rows that were looked up; those that were not are zeros.
TEST(GradientsTest, OfASparseEmbeddingAreThoseOfADenseOne) {
  const ScratchFolder folder;
  std::vector<std::vector<float>> gradients;
  for (const std::string sparse : {"True", "False"}) {
    WriteTorchScript(
        folder.Path("m.pt"), {{.name = "table", .shape = {5, 2}}},
        "def forward(self, x):\n    return torch.embedding(self.table, x, -1, False, " + sparse +
            ")\n");
    BoundModel bound({.torchscript = folder.Path("m.pt")});
    const ExampleSet examples(6, {data::ElementType::kInt64, {}, 4},
                              {data::ElementType::kInt64, {}, 2});
    bound.Step(examples.All());
    bound.Step(examples.All());
    gradients.push_back(bound.Gradients());
  }

  EXPECT_GT(SquaredNorm(gradients[0]), 0);
  EXPECT_EQ(gradients[0], gradients[1]);
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
  for (float& value : parameters.span()) value = 7;
  bound.Step(examples.All());
  const std::vector<float> gradients = bound.Gradients();
  bound.ClearGradients();

  bound.model->Bind(parameters.span(), {&bound.loss_sum, 1});
  for (float& value : bound.parameters.span()) value = 0;

  EXPECT_EQ(bound.EvaluateLoss(examples.All()), loss);
  bound.Step(examples.All());
  EXPECT_EQ(bound.Gradients(), gradients);
  const cuda::Segment& first = bound.model->segments()[0];
  EXPECT_EQ(parameters.span()[first.offset + first.length], 0);
}

}  // namespace
}  // namespace tactus::model
