#include "simulator/examples.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::simulator {
namespace {

// Mean input of a class.
std::vector<double> MeanOf(const Examples& examples, std::uint32_t label) {
  std::vector<double> mean(examples.features);
  double count = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (examples.labels[i] != label) continue;
    ++count;
    for (std::size_t k = 0; k < mean.size(); ++k) {
      mean[k] += examples.inputs[i * examples.features + k];
    }
  }
  for (double& value : mean) value /= count;
  return mean;
}

TEST(SyntheticExamplesTest, HaveTheSizesThatWereAskedFor) {
  const Examples examples = MakeSyntheticExamples({.samples = 3000, .features = 7, .classes = 3});

  EXPECT_EQ(examples.size(), 3000);
  EXPECT_EQ(examples.features, 7);
  EXPECT_EQ(examples.classes, 3);
  EXPECT_EQ(examples.inputs.size(), 21000);
  for (const std::uint32_t label : {0U, 1U, 2U}) {
    // A binomial's standard deviation is 26.
    EXPECT_NEAR(static_cast<double>(std::ranges::count(examples.labels, label)), 1000, 130);
  }
}

TEST(SyntheticExamplesTest, CentresAreAsFarApartAsGiven) {
  constexpr std::size_t kFeatures = 1000;
  const Examples examples = MakeSyntheticExamples(
      {.samples = 2000, .features = kFeatures, .classes = 2, .separation = 100});

  const std::vector<double> a = MeanOf(examples, 0);
  const std::vector<double> b = MeanOf(examples, 1);

  double square = 0;
  for (std::size_t k = 0; k < kFeatures; ++k) square += (a[k] - b[k]) * (a[k] - b[k]);
  // The squared distance of two drawn centres varies by sqrt(2 / features) of itself; the means of
  // 1000 inputs each add 2 to it.
  EXPECT_NEAR(square, 1e4, 5 * 1e4 * std::sqrt(2.0 / kFeatures));
}

TEST(SyntheticExamplesTest, InputsVaryByOneAroundTheirCentre) {
  const Examples examples =
      MakeSyntheticExamples({.samples = 20000, .features = 2, .classes = 2, .separation = 50});
  const std::vector<double> centre = MeanOf(examples, 1);

  double square = 0;
  double count = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (examples.labels[i] != 1) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      const double offset = examples.inputs[2 * i + k] - centre[k];
      square += offset * offset;
      ++count;
    }
  }

  EXPECT_NEAR(square / count, 1, 5 * std::sqrt(2 / count));
}

TEST(SyntheticExamplesTest, ASampleDependsOnSeedAndNumberAlone) {
  const Examples all = MakeSyntheticExamples({.samples = 50, .features = 4});
  const Examples tail = MakeSyntheticExamples({.samples = 20, .features = 4, .first = 30});
  const Examples other = MakeSyntheticExamples({.samples = 50, .features = 4, .seed = 2});

  EXPECT_TRUE(std::ranges::equal(tail.inputs, std::span(all.inputs).subspan(30 * 4)));
  EXPECT_TRUE(std::ranges::equal(tail.labels, std::span(all.labels).subspan(30)));
  EXPECT_NE(all.inputs, other.inputs);
}

}  // namespace
}  // namespace tactus::simulator
