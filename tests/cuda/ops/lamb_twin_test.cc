// LAMB against its formula in float64, within the bound that its header derives.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "cuda/ops/lamb.h"
#include "tests/cuda/ops/lamb_state.h"

namespace tactus::cuda {
namespace {

// What one rounding to float32 does to a number of size 1, and a little for its second order.
constexpr double kRounding = 1.001 * 0x1p-24;

// The formula of the header over one segment in float64: the state after, and the terms of which u
// is made, added up in magnitude.
struct Naive {
  std::vector<double> parameters{};
  std::vector<double> first{};
  std::vector<double> second{};
  std::vector<double> direction{};
  std::vector<double> terms{};
  double rate = 0;  // learning rate times ratio
};

Naive NaiveLamb(const LambStep& step, const LambBuffers& before) {
  const double t = static_cast<double>(step.step);
  Naive naive;
  double parameter_norm2 = 0;
  double direction_norm2 = 0;
  for (std::size_t i = 0; i < before.parameters.size(); ++i) {
    const double x = before.parameters[i];
    const double g = static_cast<double>(step.gradient_scale) * before.gradients[i];
    const double m = step.beta1 * before.first_moment[i] + (1 - step.beta1) * g;
    const double v = step.beta2 * before.second_moment[i] + (1 - step.beta2) * g * g;
    const double root = std::sqrt(v / (1 - std::pow(step.beta2, t))) + step.epsilon;
    const double divisor = (1 - std::pow(step.beta1, t)) * root;
    const double u = m / divisor + step.weight_decay * x;
    const double m_terms =
        step.beta1 * std::abs(before.first_moment[i]) + (1 - step.beta1) * std::abs(g);
    naive.first.push_back(m);
    naive.second.push_back(v);
    naive.direction.push_back(u);
    naive.terms.push_back(m_terms / divisor + step.weight_decay * std::abs(x));
    parameter_norm2 += x * x;
    direction_norm2 += u * u;
  }
  double ratio = 1;
  if (parameter_norm2 > 0 && direction_norm2 > 0) {
    ratio = std::sqrt(parameter_norm2 / direction_norm2);
    ratio = std::min(std::max(ratio, step.ratio_min), step.ratio_max);
  }
  naive.rate = step.learning_rate * ratio;
  for (std::size_t i = 0; i < before.parameters.size(); ++i) {
    naive.parameters.push_back(before.parameters[i] - naive.rate * naive.direction[i]);
  }
  return naive;
}

double Norm(const std::vector<double>& x) {
  double norm2 = 0;
  for (const double value : x) norm2 += value * value;
  return std::sqrt(norm2);
}

// As the header derives: u errs by 15 roundings of its terms, so does, in the norm, the ratio.
void ExpectNear(const LambBuffers& found, const Naive& expected) {
  const double norm = Norm(expected.direction);
  const double ratio_error = norm > 0 ? 15 * kRounding * Norm(expected.terms) / norm : 0;
  for (std::size_t i = 0; i < found.parameters.size(); ++i) {
    const double u = std::abs(expected.direction[i]);
    const double moved = 15 * kRounding * expected.terms[i] + (ratio_error + 2 * kRounding) * u;
    const double x = std::abs(expected.parameters[i]);
    ASSERT_NEAR(found.parameters[i], expected.parameters[i], expected.rate * moved + kRounding * x)
        << i;
    ASSERT_NEAR(found.second_moment[i], expected.second[i], 6 * kRounding * expected.second[i])
        << i;
  }
}

struct Variant {
  double weight_decay = 0;
  std::uint64_t step = 1;
  double ratio_min = 0;
  double ratio_max = std::numeric_limits<double>::infinity();
};

class LambTwinTest : public testing::TestWithParam<std::tuple<std::size_t, Variant>> {};

TEST_P(LambTwinTest, AgreesWithItsFormulaInFloat64) {
  const auto [length, variant] = GetParam();
  const LambStep step{.learning_rate = 0.01,
                      .weight_decay = variant.weight_decay,
                      .ratio_min = variant.ratio_min,
                      .ratio_max = variant.ratio_max,
                      .gradient_scale = 1.0f / 7,
                      .step = variant.step};
  Rng rng(length);
  LambState state = RandomLambState(rng, length);
  const Guarded gradients = state.gradients;
  const Naive expected = NaiveLamb(step, state.buffers());

  host::Lamb(step, OneSegment(length), state.buffers());

  ExpectNear(state.buffers(), expected);
  const std::span<const float> kept = gradients.span();
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), state.gradients.span().begin()));
  EXPECT_TRUE(state.Intact());
}

INSTANTIATE_TEST_SUITE_P(
    LengthsAndVariants, LambTwinTest,
    testing::Combine(testing::ValuesIn(kLengths),
                     testing::Values(Variant{}, Variant{0.01, 3}, Variant{0.5, 1'000'000},
                                     Variant{0.01, 3, 0.01, 0.02}, Variant{0.01, 3, 50, 100})));

TEST(LambPropertyTest, ManyStepsOnManySegmentsAgreeWithEveryStepsFormula) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    SegmentTable segments(rng.Below(4) + 1);
    for (Segment& segment : segments) segment.length = rng.Below(40);
    AssignOffsets(segments);
    LambState state(FlatLength(segments));
    for (float& value : state.parameters.span()) value = static_cast<float>(rng.Normal());
    LambStep step{.learning_rate = 0.1 * rng.Uniform(), .weight_decay = 0.1 * rng.Uniform()};
    for (step.step = 1; step.step <= 3; ++step.step) {
      for (float& value : state.gradients.span()) value = static_cast<float>(rng.Normal());
      std::vector<Naive> expected;
      for (const Segment& segment : segments) {
        expected.push_back(NaiveLamb(step, state.part(segment)));
      }

      host::Lamb(step, segments, state.buffers());

      for (std::size_t i = 0; i < segments.size(); ++i) {
        ASSERT_NO_FATAL_FAILURE(ExpectNear(state.part(segments[i]), expected[i]));
      }
    }
  }
}

}  // namespace
}  // namespace tactus::cuda
