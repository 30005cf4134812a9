#include "simulator/recorded_curve.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::simulator {
namespace {

engine::Batch BatchOf(std::uint64_t round, std::size_t count) {
  engine::Batch batch{.round = round};
  batch.indices.resize(count);
  return batch;
}

// The mean loss of the next `count` samples.
double Ask(RecordedCurve& learner, std::uint64_t round, std::size_t count) {
  const std::vector<float> parameters(cuda::FlatLength(learner.segments()));
  std::vector<float> gradients(parameters.size());
  const double loss = learner.ForwardBackward(BatchOf(round, count), parameters, gradients);
  return loss / static_cast<double>(count);
}

// A law over 1000 to 100000 samples, off it by `offset` at every second point.
std::vector<LossPoint> Recording(double offset = 0) {
  const PowerLaw law{.floor = 0.5, .scale = 0.2, .reference = 1e5, .exponent = 0.6};
  std::vector<LossPoint> points;
  for (int i = 1; i <= 100; ++i) {
    points.push_back({1000.0 * i, law.At(1000.0 * i) + (i % 2 == 0 ? offset : -offset)});
  }
  return points;
}

TEST(RecordedCurveTest, LossLiesBetweenTheRecordedPointsAround) {
  const RecordedCurve learner({.points = {{100, 4}, {200, 2}, {200, 1.5}, {400, 1}}});

  EXPECT_EQ(learner.LossAt(0), 4);
  EXPECT_EQ(learner.LossAt(100), 4);
  EXPECT_DOUBLE_EQ(learner.LossAt(150), 3);
  EXPECT_EQ(learner.LossAt(200), 1.5);
  EXPECT_DOUBLE_EQ(learner.LossAt(300), 1.25);
  EXPECT_EQ(learner.LossAt(400), 1);
}

TEST(RecordedCurveTest, CountsTheSamplesOfAllCalls) {
  RecordedCurve learner({.points = {{0, 8}, {800, 0}}});

  EXPECT_DOUBLE_EQ(Ask(learner, 0, 100), 7);
  EXPECT_DOUBLE_EQ(Ask(learner, 0, 300), 4);
  EXPECT_DOUBLE_EQ(Ask(learner, 1, 1), 3.99);
}

TEST(RecordedCurveTest, GradientsParametersAndValidationAreEmpty) {
  RecordedCurve learner({.points = Recording(), .train_samples = 77});
  std::vector<float> parameters(cuda::FlatLength(learner.segments()), 1.0F);
  std::vector<float> gradients(parameters.size(), 2.0F);

  learner.Initialise(1, parameters);
  learner.ForwardBackward(BatchOf(0, 5), parameters, gradients);

  EXPECT_EQ(parameters, std::vector<float>(16, 0.0F));
  EXPECT_EQ(gradients, std::vector<float>(16, 2.0F));
  EXPECT_FALSE(learner.Validate(parameters).has_value());
  EXPECT_EQ(learner.train_samples(), 77);
}

TEST(RecordedCurveTest, GoesOnByTheLawOfTheRecording) {
  const PowerLaw truth{.floor = 0.5, .scale = 0.2, .reference = 1e5, .exponent = 0.6};
  std::vector<LossPoint> points = Recording();
  points[3].loss += 10;  // in the first third, which may still be warming up

  const RecordedCurve learner({.points = points});

  EXPECT_NEAR(learner.LossAt(4e5) / truth.At(4e5), 1, 0.01);
  EXPECT_NEAR(learner.LossAt(1e5 + 1) / points.back().loss, 1, 1e-4);
}

TEST(RecordedCurveTest, NoiseBeyondTheRecordingIsThatOfTheRecording) {
  constexpr double kOffset = 0.05;
  constexpr int kRounds = 2000;
  const std::vector<LossPoint> points = Recording(kOffset);
  RecordedCurve learner({.points = points, .noise = true});
  RecordedCurve twin({.points = points, .noise = true});
  Ask(learner, 0, 100000);
  Ask(twin, 0, 100000);
  double squares = 0;

  for (int round = 1; round <= kRounds; ++round) {
    const double seen = 1e5 + 20 * round;
    const double first = Ask(learner, round, 10) - learner.LossAt(seen - 10);
    const double second = Ask(learner, round, 10) - learner.LossAt(seen);
    EXPECT_NEAR(first, second, 1e-12);  // the members of a round share it
    EXPECT_NEAR(Ask(twin, round, 20), learner.LossAt(seen) + second, 1e-12);
    squares += second * second / kRounds;
  }

  EXPECT_NEAR(learner.law().residual, kOffset, 0.05 * kOffset);
  EXPECT_NEAR(squares, kOffset * kOffset, kOffset * kOffset * (5 * std::sqrt(2.0 / kRounds) + 0.1));
}

TEST(RecordedCurveTest, WithoutNoiseItIsTheLawItself) {
  RecordedCurve learner({.points = Recording(0.05)});
  Ask(learner, 0, 100000);

  EXPECT_DOUBLE_EQ(Ask(learner, 1, 10), learner.LossAt(100010));
}

TEST(RecordedCurveTest, AFewPointsAreEnough) {
  RecordedCurve one({.points = {{50, 3}}});
  const RecordedCurve zero({.points = {{0, 3}}});
  const RecordedCurve two({.points = {{50, 3}, {100, 2}}});
  const RecordedCurve four({.points = {{50, 4}, {100, 2}, {200, 1}, {400, 0.5}}});
  const RecordedCurve rising({.points = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}}});

  EXPECT_EQ(Ask(one, 0, 10), 3);
  EXPECT_EQ(one.LossAt(1000), 3);
  EXPECT_EQ(zero.LossAt(1000), 3);
  EXPECT_EQ(two.LossAt(1000), 2.5);
  EXPECT_NEAR(four.LossAt(800), 0.25, 1e-5);
  EXPECT_DOUBLE_EQ(rising.LossAt(1000), 4.5);
}

}  // namespace
}  // namespace tactus::simulator
