// SGD, Adam and AdamW against PyTorch: four steps of five parameters.
//
// The expected values are printed by optimizer_vectors.py (torch 1.13.0 of Debian 12, CPU).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <string>

#include "cuda/ops/adam.h"
#include "cuda/ops/sgd.h"

namespace tactus::cuda {
namespace {

using Five = std::array<float, 5>;

constexpr Five kParameters = {0.5f, -1.25f, 0.0f, 3.0f, -0.001f};
constexpr std::array<Five, 4> kGradients = {{{0.1f, -0.2f, 0.3f, 1.0f, 1e-4f},
                                             {-0.3f, 0.4f, 0.05f, 2.0f, -2e-4f},
                                             {0.2f, 0.2f, -0.6f, -1.5f, 3e-4f},
                                             {0.0f, -0.7f, 0.25f, 0.5f, -1e-4f}}};
// Our gradients are sums: what PyTorch gets as a mean arrives here times 8, scaled back exactly.
constexpr float kSamples = 8;

Five Summed(const Five& means) {
  Five sums = means;
  for (float& sum : sums) sum *= kSamples;
  return sums;
}

// Four steps, each with a handful of roundings of 2^-24 of what is largest on the way; PyTorch
// fuses some of the multiplications and additions, we do not.
void ExpectClose(const Five& found, const Five& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const float size = std::max({std::abs(kParameters[i]), std::abs(expected[i]), 0.05f});
    EXPECT_NEAR(found[i], expected[i], 4 * 0x1p-23f * size) << "parameter " << i;
  }
}

struct SgdCase {
  std::string name;
  SgdStep step;
  Five expected;
};

void PrintTo(const SgdCase& sgd_case, std::ostream* out) { *out << sgd_case.name; }

class SgdVectorTest : public testing::TestWithParam<SgdCase> {};

TEST_P(SgdVectorTest, FourStepsGiveThePyTorchParameters) {
  SgdStep step = GetParam().step;
  step.gradient_scale = 1 / kSamples;
  Five parameters = kParameters;
  Five momentum_buffer{};

  for (const Five& gradients : kGradients) {
    host::Sgd(step, Summed(gradients), parameters, momentum_buffer);
  }

  ExpectClose(parameters, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    PyTorch, SgdVectorTest,
    testing::Values(
        SgdCase{"Sgd",
                {.learning_rate = 0.1f},
                {0.50000006f, -1.21999991f, 1.86264515e-09f, 2.80000019f, -0.00101000001f}},
        SgdCase{"SgdDecay",
                {.learning_rate = 0.1f, .weight_decay = 0.05f},
                {0.490024745f, -1.19498634f, 0.000197628135f, 2.743186f, -0.000990049797f}},
        SgdCase{"SgdMomentum",
                {.learning_rate = 0.1f, .momentum = 0.9f},
                {0.50891006f, -1.25761998f, -0.0277200025f, 2.34910011f, -0.00102719013f}},
        SgdCase{"SgdMomentumDecay",
                {.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.05f},
                {0.486440778f, -1.20153606f, -0.0265748911f, 2.22194576f, -0.000982069527f}},
        SgdCase{"SgdNesterovDecay",
                {.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.05f, .nesterov = true},
                {0.477920234f, -1.15163708f, -0.0227345265f, 2.05227828f, -0.000974075519f}}),
    [](const auto& test) { return test.param.name; });

struct AdamCase {
  std::string name;
  AdamStep step;
  Five expected;
};

void PrintTo(const AdamCase& adam_case, std::ostream* out) { *out << adam_case.name; }

class AdamVectorTest : public testing::TestWithParam<AdamCase> {};

TEST_P(AdamVectorTest, FourStepsGiveThePyTorchParameters) {
  AdamStep step = GetParam().step;
  step.gradient_scale = 1 / kSamples;
  Five parameters = kParameters;
  Five first_moment{};
  Five second_moment{};

  for (const Five& gradients : kGradients) {
    host::Adam(step, Summed(gradients), parameters, first_moment, second_moment);
    ++step.step;
  }

  ExpectClose(parameters, GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    PyTorch, AdamVectorTest,
    testing::Values(
        AdamCase{"Adam",
                 {.learning_rate = 0.01},
                 {0.494600147f, -1.24652791f, -0.0146201914f, 2.97452998f, -0.0119850729f}},
        AdamCase{"AdamDecay",
                 {.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.03},
                 {0.492615104f, -1.24396777f, -0.0133217182f, 2.97442865f, 0.0020630958f}},
        AdamCase{"AdamW",
                 {.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true},
                 {0.492623448f, -1.24155283f, -0.0145775257f, 2.96259999f, -0.0119549977f}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tactus::cuda
