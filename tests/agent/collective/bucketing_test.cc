#include "agent/collective/bucketing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeeds = 1000;

cuda::SegmentTable SegmentsOf(const std::vector<std::size_t>& lengths) {
  cuda::SegmentTable segments(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) segments[i].length = lengths[i];
  cuda::AssignOffsets(segments);
  return segments;
}

std::vector<std::size_t> OffsetsOf(const BucketPlan& plan) {
  std::vector<std::size_t> offsets;
  for (const Bucket& bucket : plan.buckets) offsets.push_back(bucket.offset);
  return offsets;
}

// A random table, tail and bucket size, and an order in which the segments become ready.
struct RandomCase {
  explicit RandomCase(std::uint64_t seed) {
    Rng rng = Rng(seed).Fork("buckets");
    std::vector<std::size_t> lengths(rng.Below(20));
    for (std::size_t& length : lengths) length = rng.Below(3) == 0 ? rng.Below(900) : rng.Below(40);
    segments = SegmentsOf(lengths);
    total_length = cuda::FlatLength(segments) + 1 + rng.Below(30);
    bucket_bytes = 1 + rng.Below(3000);
    order.resize(segments.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Shuffle(seed);
    order.resize(rng.Below(order.size() + 1));
  }

  void Shuffle(std::uint64_t seed) {
    Rng rng = Rng(seed).Fork("order");
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.Below(i)]);
  }

  BucketPlan plan() const { return MakeBuckets(segments, total_length, bucket_bytes); }

  cuda::SegmentTable segments;
  std::size_t total_length = 0;
  std::size_t bucket_bytes = 0;
  std::vector<std::size_t> order;  // some or all segments
};

TEST(MakeBucketsTest, ABucketIsClosedByTheSegmentThatFillsIt) {
  const BucketPlan plan = MakeBuckets(SegmentsOf({16, 16, 16, 16, 16}), 80, 2 * 16 * sizeof(float));

  EXPECT_THAT(OffsetsOf(plan), ElementsAre(0, 32, 64));
  EXPECT_THAT(plan.bucket_of, ElementsAre(0, 0, 1, 1, 2));
}

TEST(MakeBucketsTest, TheLastBucketHoldsTheTail) {
  const BucketPlan plan = MakeBuckets(SegmentsOf({16, 16}), 40, 16 * sizeof(float));

  EXPECT_THAT(OffsetsOf(plan), ElementsAre(0, 16));
  EXPECT_EQ(plan.buckets.back().length, 24u);
}

TEST(MakeBucketsTest, PaddingBelongsToTheBucketBeforeIt) {
  const BucketPlan plan = MakeBuckets(SegmentsOf({3, 5}), 32, 1);

  EXPECT_THAT(OffsetsOf(plan), ElementsAre(0, 16));
}

TEST(MakeBucketsTest, ALongSegmentIsNotSplit) {
  const BucketPlan plan = MakeBuckets(SegmentsOf({16, 1600, 16}), 1632, 4 * 16 * sizeof(float));

  EXPECT_THAT(OffsetsOf(plan), ElementsAre(0, 1616));
}

TEST(MakeBucketsTest, WithoutSegmentsAllIsTail) {
  const BucketPlan plan = MakeBuckets({}, 12, 4);

  ASSERT_EQ(plan.buckets.size(), 1u);
  EXPECT_EQ(plan.buckets[0].length, 12u);
  EXPECT_EQ(plan.buckets[0].segments, 0u);
}

TEST(MakeBucketsTest, OfLargeBucketsTheFirstAndTheLastAreSmall) {
  constexpr std::size_t kFloats = kEdgeBucketBytes / sizeof(float) / 4;  // four fill an edge
  const std::vector<std::size_t> lengths(40, kFloats);

  const BucketPlan plan = MakeBuckets(SegmentsOf(lengths), 40 * kFloats + 9, 4 * kEdgeBucketBytes);

  EXPECT_THAT(OffsetsOf(plan), ElementsAre(0, 4 * kFloats, 20 * kFloats, 36 * kFloats));
  EXPECT_EQ(plan.buckets.back().length, 4 * kFloats + 9);
}

TEST(MakeBucketsTest, ALongSegmentAtTheEndHasTheLastBucketForItself) {
  constexpr std::size_t kFloats = kEdgeBucketBytes / sizeof(float);
  const BucketPlan plan =
      MakeBuckets(SegmentsOf({16, 16, 2 * kFloats}), 2 * kFloats + 32, 25 * kEdgeBucketBytes);

  EXPECT_THAT(OffsetsOf(plan), ElementsAre(0, 32));
}

TEST(MakeBucketsTest, WhatFitsIntoAnEdgeIsOneBucket) {
  EXPECT_THAT(OffsetsOf(MakeBuckets(SegmentsOf({16, 16, 16}), 60, 25 * kEdgeBucketBytes)),
              ElementsAre(0));
}

TEST(MakeBucketsTest, EarlyAreThoseBeforeTheLastBucket) {
  EXPECT_EQ(EarlySegments(MakeBuckets(SegmentsOf({16, 16, 16}), 52, 1)), 2u);
  EXPECT_EQ(EarlySegments(MakeBuckets(SegmentsOf({16, 16, 16, 16}), 64, 128)), 2u);
  EXPECT_EQ(EarlySegments(MakeBuckets(SegmentsOf({16, 16}), 32, 1 << 10)), 0u) << "one bucket";
  EXPECT_EQ(EarlySegments(MakeBuckets({}, 4, 1)), 0u);
}

TEST(MakeBucketsPropertyTest, EveryElementAndEverySegmentIsInExactlyOneBucket) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomCase test(seed);
    const BucketPlan plan = test.plan();

    std::size_t end = 0;
    std::vector<std::size_t> segments(plan.buckets.size());
    for (const Bucket& bucket : plan.buckets) {
      ASSERT_EQ(bucket.offset, end) << "seed " << seed;
      ASSERT_GE(bucket.length, 1u) << "seed " << seed;
      end += bucket.length;
    }
    ASSERT_EQ(end, test.total_length) << "seed " << seed;
    for (std::size_t i = 0; i < test.segments.size(); ++i) {
      const Bucket& bucket = plan.buckets[plan.bucket_of[i]];
      ++segments[plan.bucket_of[i]];
      ASSERT_GE(test.segments[i].offset, bucket.offset) << "seed " << seed;
      ASSERT_LE(test.segments[i].offset + test.segments[i].length, bucket.offset + bucket.length)
          << "seed " << seed;
    }
    for (std::size_t b = 0; b < segments.size(); ++b) {
      ASSERT_EQ(plan.buckets[b].segments, segments[b]) << "seed " << seed;
    }
  }
}

// A handle that has ended as it was told.
class EndedCollective : public Collective {
 public:
  explicit EndedCollective(Completion completion) : completion_(std::move(completion)) {}
  Progress Poll() override { return completion_.progress; }
  Completion Wait() override { return completion_; }

 private:
  const Completion completion_;
};

// Notes what is started and lets the chosen collectives fail.
class RecordingTransport : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Collective> Start(const Operation& operation) override {
    const bool fails = std::ranges::find(failing, started.size()) != failing.end();
    Completion completion{.at = Instant(Seconds(static_cast<double>(started.size())))};
    if (fails) completion.progress = Progress::kFailed;
    if (fails) completion.reason = "collective " + std::to_string(started.size());
    started.push_back(operation.buffer);
    return std::make_unique<EndedCollective>(std::move(completion));
  }
  void Abort(const std::string&) override {}

  std::vector<std::span<float>> started;
  std::vector<std::size_t> failing;  // numbers of collectives
};

BucketedReduction::StartSum AllReduceOver(Transport& transport) {
  return [&transport](std::span<float> stretch) { return transport.StartAllReduceSum(stretch); };
}

// One segment a bucket, and a tail.
class BucketedReductionTest : public ::testing::Test {
 protected:
  BucketedReductionTest()
      : buffer_(52),
        reduction_(MakeBuckets(SegmentsOf({16, 16, 16}), buffer_.size(), 1),
                   AllReduceOver(transport_)) {}

  RecordingTransport transport_;
  std::vector<float> buffer_;
  BucketedReduction reduction_;
};

using BucketedReductionDeathTest = BucketedReductionTest;

TEST_F(BucketedReductionTest, ABucketWaitsForThoseBeforeIt) {
  reduction_.Begin(buffer_);
  reduction_.SegmentReady(1);
  EXPECT_EQ(transport_.started.size(), 0u);
  reduction_.SegmentReady(0);
  EXPECT_EQ(transport_.started.size(), 2u);
}

TEST_F(BucketedReductionTest, TheLastBucketStartsWithItsLastSegmentLikeTheOthers) {
  reduction_.Begin(buffer_);
  for (const std::size_t segment : {0, 1, 2}) reduction_.SegmentReady(segment);
  EXPECT_EQ(transport_.started.size(), 3u);
  reduction_.Finish();
  EXPECT_EQ(transport_.started.size(), 3u);
  EXPECT_EQ(reduction_.Wait().progress, Progress::kDone);
}

TEST_F(BucketedReductionTest, WithoutSegmentsReadyAllStartInTheEnd) {
  for (const std::size_t round : {1, 2}) {
    reduction_.Begin(buffer_);
    reduction_.Finish();
    EXPECT_EQ(reduction_.Wait().progress, Progress::kDone);
    EXPECT_EQ(transport_.started.size(), 3 * round);
  }
}

TEST_F(BucketedReductionTest, TheFirstFailureWinsAtTheTimeOfTheLastBucket) {
  transport_.failing = {1, 2};
  reduction_.Begin(buffer_);
  reduction_.Finish();

  const Completion completion = reduction_.Wait();

  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_EQ(completion.reason, "collective 1");
  EXPECT_EQ(completion.at, Instant(Seconds(2)));
}

TEST_F(BucketedReductionTest, WaitingOnTheDeviceTellsOfAFailure) {
  for (const bool fails : {false, true}) {
    if (fails) transport_.failing = {transport_.started.size() + 1};
    reduction_.Begin(buffer_);
    reduction_.Finish();

    EXPECT_EQ(reduction_.WaitOnDevice(), fails ? Progress::kFailed : Progress::kDone);
    EXPECT_EQ(reduction_.Wait().progress, fails ? Progress::kFailed : Progress::kDone);
  }
}

TEST_F(BucketedReductionTest, ARoundAfterAFailureStartsAfresh) {
  transport_.failing = {0};
  reduction_.Begin(buffer_);
  reduction_.Finish();
  EXPECT_EQ(reduction_.Wait().progress, Progress::kFailed);

  reduction_.Begin(buffer_);
  reduction_.SegmentReady(0);
  reduction_.Finish();

  EXPECT_EQ(reduction_.Wait().progress, Progress::kDone);
}

TEST_F(BucketedReductionDeathTest, ASegmentIsReadyOnceARound) {
  reduction_.Begin(buffer_);
  reduction_.SegmentReady(0);
  EXPECT_DEATH(reduction_.SegmentReady(0), "check failed");
}

TEST_F(BucketedReductionDeathTest, NothingBecomesReadyAfterTheEnd) {
  reduction_.Begin(buffer_);
  reduction_.Finish();
  EXPECT_DEATH(reduction_.SegmentReady(0), "check failed");
}

TEST_F(BucketedReductionDeathTest, ARoundIsClosedBeforeTheNext) {
  reduction_.Begin(buffer_);
  EXPECT_DEATH(reduction_.Begin(buffer_), "check failed");
  EXPECT_DEATH(reduction_.Wait(), "check failed");
}

TEST(BucketedReductionPropertyTest, BucketsStartInOrderAndOnlyWhenComplete) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomCase test(seed);
    const BucketPlan plan = test.plan();
    RecordingTransport transport;
    std::vector<float> buffer(test.total_length);
    BucketedReduction reduction(plan, AllReduceOver(transport));
    std::vector<std::size_t> missing;
    for (const Bucket& bucket : plan.buckets) missing.push_back(bucket.segments);

    reduction.Begin(buffer);
    for (const std::size_t segment : test.order) {
      reduction.SegmentReady(segment);
      --missing[plan.bucket_of[segment]];
      const auto complete =
          std::find_if(missing.begin(), missing.end(), [](std::size_t count) { return count > 0; });
      const auto expected = static_cast<std::size_t>(complete - missing.begin());
      ASSERT_EQ(transport.started.size(), expected) << "seed " << seed;
    }
    reduction.Finish();

    ASSERT_EQ(transport.started.size(), plan.buckets.size()) << "seed " << seed;
    for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
      ASSERT_EQ(transport.started[b].data(), buffer.data() + plan.buckets[b].offset);
      ASSERT_EQ(transport.started[b].size(), plan.buckets[b].length);
    }
    reduction.Wait();
  }
}

class BucketedGroupTest : public ::testing::TestWithParam<GroupShape> {};

TEST_P(BucketedGroupTest, TheResultIsThatOfOneAllReduceBitForBit) {
  const std::vector<std::unique_ptr<Transport>> members = MakeGroup(GetParam());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const RandomCase test(seed);
    const std::vector<float> expected = ExpectedSum(GetParam().size, test.total_length, seed);
    OnEveryRank(GetParam().size, [&](int rank) {
      const auto own = static_cast<std::uint64_t>(rank);
      RandomCase order = test;
      order.Shuffle(seed + own);  // readiness differs between members
      std::vector<float> buffer = RandomValues(test.total_length, seed + own);
      BucketedReduction reduction(test.plan(), AllReduceOver(*members[own]));

      reduction.Begin(buffer);
      for (const std::size_t segment : order.order) reduction.SegmentReady(segment);
      reduction.Finish();

      EXPECT_EQ(reduction.Wait().progress, Progress::kDone) << "seed " << seed;
      EXPECT_TRUE(SameBits(buffer, expected)) << "seed " << seed;
    });
  }
}

TEST_P(BucketedGroupTest, EveryLocalValueIsStartedOnce) {
  const std::vector<std::unique_ptr<Transport>> members = MakeGroup(GetParam());
  const RandomCase test(3);
  OnEveryRank(GetParam().size, [&](int rank) {
    const auto own = static_cast<std::uint64_t>(rank);
    std::vector<float> seen;
    BucketedReduction reduction(test.plan(), [&](std::span<float> stretch) {
      seen.insert(seen.end(), stretch.begin(), stretch.end());
      return members[own]->StartAllReduceSum(stretch);
    });
    for (std::uint64_t round = 0; round < 5; ++round) {
      const std::vector<float> local = RandomValues(test.total_length, 10 * round + own);
      std::vector<float> buffer = local;
      seen.clear();

      reduction.Begin(buffer);
      for (const std::size_t segment : test.order) reduction.SegmentReady(segment);
      reduction.Finish();

      EXPECT_EQ(reduction.Wait().progress, Progress::kDone);
      EXPECT_TRUE(SameBits(seen, local)) << "round " << round;
      EXPECT_TRUE(SameBits(buffer, ExpectedSum(GetParam().size, test.total_length, 10 * round)));
    }
  });
}

TEST_P(BucketedGroupTest, AMemberThatDiesFailsTheRound) {
  std::vector<std::unique_ptr<Transport>> members = MakeGroup(GetParam());
  OnEveryRank(GetParam().size, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    if (rank == 0) return members[own].reset();
    std::vector<float> buffer(52);
    BucketedReduction reduction(MakeBuckets(SegmentsOf({16, 16, 16}), 52, 1),
                                AllReduceOver(*members[own]));

    reduction.Begin(buffer);
    reduction.SegmentReady(0);
    reduction.Finish();

    const Completion completion = reduction.Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_NE(completion.reason, "");
  });
}

INSTANTIATE_TEST_SUITE_P(Every, BucketedGroupTest, ::testing::ValuesIn(ShapesFrom(2, 4)),
                         [](const auto& test) { return NameOf(test.param); });

}  // namespace
}  // namespace tactus::collective
