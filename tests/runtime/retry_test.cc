#include "runtime/retry.h"

#include <gtest/gtest.h>

namespace tactus::runtime {
namespace {

TEST(RetryTest, DelaysGrowToTheirBoundWithoutJitter) {
  const BackoffOptions options = {
      .initial = Seconds(0.1), .max = Seconds(1), .multiplier = 2, .jitter = 0};
  Rng rng(1);

  EXPECT_EQ(BackoffDelay(options, 1, rng), Seconds(0.1));
  EXPECT_EQ(BackoffDelay(options, 2, rng), Seconds(0.2));
  EXPECT_EQ(BackoffDelay(options, 4, rng), Seconds(0.8));
  EXPECT_EQ(BackoffDelay(options, 5, rng), Seconds(1));
  EXPECT_EQ(BackoffDelay(options, 5000, rng), Seconds(1));
}

TEST(RetryPropertyTest, JitterStaysWithinItsShare) {
  const BackoffOptions options = {
      .initial = Seconds(1), .max = Seconds(1), .multiplier = 1, .jitter = 0.25};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    const Duration delay = BackoffDelay(options, 3, rng);
    EXPECT_GE(delay, Seconds(0.75)) << "seed " << seed;
    EXPECT_LE(delay, Seconds(1.25)) << "seed " << seed;
  }
}

TEST(RetryTest, OnlyUnavailableIsRetried) {
  EXPECT_TRUE(IsRetryable(absl::UnavailableError("")));
  EXPECT_FALSE(IsRetryable(absl::OkStatus()));
  EXPECT_FALSE(IsRetryable(absl::DeadlineExceededError("")));
  EXPECT_FALSE(IsRetryable(absl::AbortedError("")));
}

}  // namespace
}  // namespace tactus::runtime
