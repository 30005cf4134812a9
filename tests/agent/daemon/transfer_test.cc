#include "agent/daemon/transfer.h"

#include <gtest/gtest.h>

#include "runtime/status.h"

namespace tactus::agent {
namespace {

TEST(WorthTryingTest, ACoordinatorThatIsAwayOrSaysWhenIsTriedForEver) {
  const absl::Status full = absl::ResourceExhaustedError("uploads: 256 are under way");

  EXPECT_TRUE(WorthTrying(absl::UnavailableError("away"), 1000));
  EXPECT_TRUE(WorthTrying(runtime::WithRetry(full, Seconds(5)), 1000));
  EXPECT_FALSE(WorthTrying(full, 1000));
}

TEST(WorthTryingTest, WhatMayEndOtherwiseIsTriedAFewTimes) {
  EXPECT_TRUE(WorthTrying(absl::DataLossError("its hash differs"), 4));
  EXPECT_FALSE(WorthTrying(absl::DataLossError("its hash differs"), 5));
}

TEST(WorthTryingTest, WhatWouldEndTheSameWayIsNotTriedAgain) {
  EXPECT_FALSE(WorthTrying(absl::NotFoundError("no such blob"), 1));
  EXPECT_FALSE(WorthTrying(absl::InvalidArgumentError("sha256"), 1));
  EXPECT_FALSE(WorthTrying(absl::OkStatus(), 0));
}

TEST(TryAgainAfterTest, WaitsNoLessThanTheCoordinatorAsksFor) {
  const runtime::BackoffOptions backoff{.initial = Seconds(0.2), .max = Seconds(1)};
  Rng rng(1);

  EXPECT_GE(TryAgainAfter(runtime::WithRetry(absl::UnavailableError("busy"), Seconds(5)), backoff,
                          3, rng),
            Seconds(5));
  EXPECT_LE(TryAgainAfter(absl::DataLossError("its hash differs"), backoff, 3, rng), Seconds(1));
}

}  // namespace
}  // namespace tactus::agent
