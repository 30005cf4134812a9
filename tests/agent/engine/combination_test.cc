// Following a combination: what the gate saw is what the host goes by.

#include "agent/engine/combine/combination.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

// A group of one whose collectives stay under way on a device of their own, and end as the test
// says.
class FollowedTransport : public collective::Transport {
 public:
  class Handle : public collective::Collective {
   public:
    explicit Handle(const FollowedTransport& transport) : transport_(transport) {}
    Progress Poll() override { return transport_.end.progress; }
    Completion Wait() override { return transport_.end; }
    Progress WaitOnDevice() override { return transport_.on_device; }

   private:
    const FollowedTransport& transport_;
  };

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    ++started;
    // Whoever starts one after the group's end learns why it ended.
    if (operation.kind == collective::Operation::Kind::kBarrier) {
      end = {.progress = Progress::kFailed, .reason = "told to stop"};
    }
    return std::make_unique<Handle>(*this);
  }
  const std::uint32_t* lost() const override { return &flag; }
  void Abort(const std::string&) override {}

  int started = 0;
  Completion end{};
  Progress on_device = Progress::kRunning;
  std::uint32_t flag = 0;
};

class CombinationTest : public ::testing::Test {
 protected:
  CombinationTest() {
    cuda::AssignOffsets(segments_);
    buffer_ = device_->Allocate(cuda::FlatLength(segments_) + LaneCount(1));
    combination_ = std::make_unique<Combination>(
        transport_, *device_, segments_,
        CombinationOptions{.lanes = LaneCount(1), .loss_sum = losses_.span()});
  }

  void Start() {
    Begin();
    combination_->Finish();
  }

  // A vector of squared norm 25 from two samples.
  void Begin() {
    std::ranges::fill(buffer_.span(), 0.0f);
    buffer_.span()[0] = 3;
    buffer_.span()[1] = 4;
    losses_.span()[0] = 0.75;
    combination_->Begin(combination_->For(policies::Aggregation::kAverage), buffer_.span(), [this] {
      ++asked_;
      return LaneValuesOf({.lanes = {.samples = 2, .members = 1}, .divisor = 2}, 0);
    });
  }

  const std::unique_ptr<cuda::Device> device_ = cuda::MakeHostDevice("cpu:0");
  cuda::SegmentTable segments_{{.name = "a", .length = 16, .shape = {16}}};
  FollowedTransport transport_;
  cuda::Buffer buffer_;
  cuda::Sums losses_ = device_->AllocateSums(1);
  int asked_ = 0;  // for the lanes
  std::unique_ptr<Combination> combination_;
};

const cuda::RoundGate kGate{.samples = 2, .divisor = 2, .clip_norm = 1};

TEST_F(CombinationTest, TheGateIsOpenBeforeTheHostKnowsTheEnd) {
  Start();

  EXPECT_EQ(combination_->Follow(kGate), Progress::kRunning);

  const std::span<const double> gate = combination_->gate();
  EXPECT_EQ(gate[cuda::kGateOpen], 1);
  EXPECT_EQ(gate[cuda::kGateScale], cuda::ClippedScale(2, 25.0 / 4, 1));
  EXPECT_EQ(combination_->Wait().progress, Progress::kDone);
  const Combined combined = combination_->Read();
  EXPECT_TRUE(combined.applied);
  EXPECT_EQ(combined.norm2, 25);
  EXPECT_EQ(combined.own_norm2, 25);
  EXPECT_EQ(combined.lanes.samples, 2);
}

TEST_F(CombinationTest, TheLossLeavesWithTheVectorAndTheNextSumBeginsAtZero) {
  Start();

  EXPECT_EQ(losses_.span()[0], 0);
  combination_->Follow(kGate);
  combination_->Wait();
  const Combined combined = combination_->Read();
  EXPECT_EQ(combined.own_loss_sum, 0.75);
  EXPECT_EQ(combined.lanes.loss_sum, 0.75);
}

TEST_F(CombinationTest, WithItsLastSegmentAllOfItLeaves) {
  Begin();
  EXPECT_EQ(transport_.started, 0);

  combination_->SegmentReady(0);

  EXPECT_EQ(transport_.started, 1);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(ReadLanes(buffer_.span().last(LaneCount(1))).loss_sum, 0.75);
  combination_->Finish();
  EXPECT_EQ(transport_.started, 1);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(combination_->Wait().progress, Progress::kDone);
}

TEST_F(CombinationTest, OtherSamplesThanExpectedShutTheGate) {
  for (const double samples : {0.0, 1.0, 3.0}) {
    Start();

    combination_->Follow({.samples = samples, .divisor = 2});

    EXPECT_EQ(combination_->gate()[cuda::kGateOpen], 0) << samples;
    EXPECT_EQ(combination_->Wait().progress, Progress::kDone);
    EXPECT_FALSE(combination_->Read().applied);
  }
}

// The group came to its end after the gate had looked: the step was taken, so the round counts.
TEST_F(CombinationTest, WhatTheGateLetThroughIsDoneWhateverCameAfter) {
  Start();
  transport_.end = {.progress = Progress::kFailed, .reason = "told to stop"};

  combination_->Follow(kGate);
  transport_.flag = 1;
  const Completion completion = combination_->Wait();

  EXPECT_EQ(completion.progress, Progress::kDone);
  EXPECT_EQ(completion.reason, "");
  EXPECT_TRUE(combination_->Read().applied);
}

// And before: no step was taken, although the collective itself had been done.
TEST_F(CombinationTest, WhatTheGateFoundLostHasFailedWithTheGroupsReason) {
  Start();
  transport_.flag = 1;

  combination_->Follow(kGate);
  EXPECT_EQ(combination_->gate()[cuda::kGateOpen], 0);
  const Completion completion = combination_->Wait();

  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_EQ(completion.reason, "told to stop");
}

TEST_F(CombinationTest, NothingIsQueuedBehindACollectiveThatHasFailed) {
  Start();
  transport_.on_device = Progress::kFailed;
  transport_.end = {.progress = Progress::kFailed, .reason = "told to stop"};

  EXPECT_EQ(combination_->Follow(kGate), Progress::kFailed);

  const Completion completion = combination_->Wait();
  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_EQ(completion.reason, "told to stop");
}

// The next one is not mistaken for the last.
TEST_F(CombinationTest, AfterAFollowedCombinationComesOneThatIsNot) {
  Start();
  combination_->Follow(kGate);
  combination_->Wait();

  Start();
  EXPECT_EQ(combination_->Wait().progress, Progress::kDone);

  const Combined combined = combination_->Read();
  EXPECT_FALSE(combined.applied);
  EXPECT_EQ(combined.norm2, 25);
}

}  // namespace
}  // namespace tactus::engine
