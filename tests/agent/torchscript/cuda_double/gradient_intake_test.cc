// The way of gradients into the flat buffer, on the host's device and on the double of the CUDA
// runtime, which counts operations and memory.

#include "agent/torchscript/gradient_intake.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::torchscript {
namespace {

constexpr std::size_t kParameters = 12;
constexpr std::size_t kLength = 100;   // of each; 112 with padding
constexpr std::size_t kBucket = 1296;  // bytes: three of them

class GradientIntakeTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    cuda_double::Reset({});
    device_ = cuda::OpenDevice(GetParam()).device;
    ASSERT_NE(device_, nullptr);
    for (std::size_t i = 0; i < kParameters; ++i) segments_.push_back({.length = kLength});
    cuda::AssignOffsets(segments_);
    sums_.gradients = device_->Allocate(cuda::FlatLength(segments_) + 16);
    device_->Fill(7, sums_.gradients.span());
    norm2_ = device_->AllocateSums(1);
    intake_ = std::make_unique<GradientIntake>(*device_, segments_, sums_, kBucket);
  }

  // A gradient whose elements are all `value`, in memory that counts itself.
  model::SegmentGradient Gradient(std::size_t segment, float value) {
    ++alive_;
    auto* memory = new Memory{device_->Allocate(kLength), &alive_};
    device_->Fill(value, memory->values.span());
    return {.segment = segment,
            .values = memory->values.span().data(),
            .memory = {memory, [](void* gone) {
                         const std::unique_ptr<Memory> freed(static_cast<Memory*>(gone));
                         --*freed->alive;
                       }}};
  }

  // A pass whose gradients are `value` plus the number of the segment, from the last to the first.
  void RunPass(bool adds, float value) {
    intake_->Begin({.adds = adds});
    for (std::size_t i = kParameters; i-- > 0;) {
      intake_->Take(Gradient(i, value + static_cast<float>(i)));
    }
    intake_->End();
  }

  std::vector<float> Buffer() {
    std::vector<float> values(sums_.gradients.size());
    device_->Copy(sums_.gradients.span(), values);
    device_->Synchronize();
    return values;
  }

  void ExpectBuffer(float value, float per_segment) {
    const std::vector<float> found = Buffer();
    std::vector<float> expected(cuda::FlatLength(segments_), 0.0f);
    expected.resize(found.size(), 7);  // not its own
    for (std::size_t i = 0; i < kParameters; ++i) {
      for (std::size_t k = 0; k < kLength; ++k) {
        expected[segments_[i].offset + k] = value + per_segment * static_cast<float>(i);
      }
    }
    EXPECT_EQ(found, expected);
  }

  struct Memory {
    cuda::Buffer values;
    int* alive;
  };

  std::unique_ptr<cuda::Device> device_;
  cuda::SegmentTable segments_;
  PassSums sums_;
  cuda::Sums norm2_;
  int alive_ = 0;  // gradients whose memory was not given back
  std::unique_ptr<GradientIntake> intake_;
};

TEST_P(GradientIntakeTest, TheFirstPassReplacesAndLaterOnesAdd) {
  RunPass(false, 1);
  ExpectBuffer(1, 1);
  RunPass(true, 10);
  ExpectBuffer(11, 2);
  RunPass(false, 3);
  ExpectBuffer(3, 1);
  EXPECT_EQ(alive_, 0);
}

TEST_P(GradientIntakeTest, MemoryGoesBackWhenABucketIsComplete) {
  intake_->Begin({});

  intake_->Take(Gradient(0, 1));
  intake_->Take(Gradient(1, 1));
  intake_->Take(Gradient(5, 1));
  EXPECT_EQ(alive_, 3);
  intake_->Take(Gradient(2, 1));

  EXPECT_EQ(alive_, 1);
  intake_->Drop();
  EXPECT_EQ(alive_, 0);
}

// Segment 0's gradient does not come, as that of a layer that the pass leaves out.
TEST_P(GradientIntakeTest, WhatWaitsIsBounded) {
  const auto stretch = [&](std::size_t first, std::size_t last) {
    return sums_.gradients.span().subspan(segments_[first].offset,
                                          segments_[last].offset - segments_[first].offset);
  };
  intake_->Begin({.leaves = true});
  for (std::size_t i = kParameters; i-- > 1;) {
    intake_->Take(Gradient(i, static_cast<float>(i)));
    EXPECT_LE(alive_, 9);
  }
  EXPECT_EQ(alive_, 8);  // segments 3 to 5 are there already

  EXPECT_FALSE(intake_->Bring(stretch(3, 6), {}));
  EXPECT_FALSE(intake_->Bring(stretch(3, 9), {}));
  EXPECT_EQ(alive_, 5);
  EXPECT_TRUE(intake_->Bring(stretch(9, 11), norm2_.span()));
  intake_->End();

  EXPECT_EQ(alive_, 0);
  ExpectBuffer(0, 1);
}

TEST_P(GradientIntakeTest, WhatAPassDoesNotHaveIsZeroOrStays) {
  intake_->Begin({});
  intake_->Take({.segment = 4});  // not used: without values
  intake_->Take(Gradient(3, 2));
  intake_->End();
  std::vector<float> found = Buffer();
  EXPECT_EQ(found[segments_[3].offset], 2);
  EXPECT_EQ(found[segments_[4].offset], 0);
  EXPECT_EQ(found[segments_[11].offset], 0);

  intake_->Begin({.adds = true});
  intake_->Take({.segment = 3});
  intake_->Take(Gradient(4, 5));
  intake_->End();
  found = Buffer();
  EXPECT_EQ(found[segments_[3].offset], 2);
  EXPECT_EQ(found[segments_[4].offset], 5);
}

TEST_P(GradientIntakeTest, WhatLeavesIsBroughtWithItsNormWhenItIsAskedFor) {
  const std::span<float> stretch = sums_.gradients.span().subspan(
      segments_[6].offset, segments_[8].offset - segments_[6].offset);
  intake_->Begin({.leaves = true});
  EXPECT_FALSE(intake_->Bring(stretch, norm2_.span()));
  for (std::size_t i = 6; i < kParameters; ++i) intake_->Take(Gradient(i, 2));
  EXPECT_EQ(Buffer(), std::vector<float>(sums_.gradients.size(), 7.0f));

  EXPECT_TRUE(intake_->Bring(stretch, norm2_.span()));
  EXPECT_FALSE(intake_->Bring(stretch, norm2_.span()));

  std::vector<double> norm2(1);
  device_->Copy(norm2_.span(), norm2);
  device_->Synchronize();
  EXPECT_EQ(norm2[0], 2 * kLength * 4);
  EXPECT_EQ(Buffer()[segments_[5].offset], 7);
  EXPECT_EQ(alive_, 4);
  for (std::size_t i = 0; i < 6; ++i) intake_->Take(Gradient(i, 2));
  intake_->End();
  ExpectBuffer(2, 0);
  EXPECT_EQ(alive_, 0);
}

TEST_P(GradientIntakeTest, NothingIsBroughtIntoAnotherBuffer) {
  cuda::Buffer other = device_->Allocate(sums_.gradients.size());
  intake_->Begin({.leaves = true});
  for (std::size_t i = 0; i < kParameters; ++i) intake_->Take(Gradient(i, 2));

  EXPECT_FALSE(intake_->Bring(other.span(), norm2_.span()));
}

INSTANTIATE_TEST_SUITE_P(Devices, GradientIntakeTest, testing::Values("cpu:0", "cuda:0"),
                         [](const auto& test) {
                           return test.param.substr(0, test.param.find(':'));
                         });

// Four buckets of twelve parameters: one operation each, however many passes there were.
TEST(GradientIntakeCostsTest, AreAnOperationABucketAndPass) {
  cuda_double::Reset({});
  const std::unique_ptr<cuda::Device> device = cuda::OpenDevice("cuda:0").device;
  ASSERT_NE(device, nullptr);
  cuda::SegmentTable segments(kParameters, {.length = kLength});
  cuda::AssignOffsets(segments);
  PassSums sums{.gradients = device->Allocate(cuda::FlatLength(segments))};
  const cuda::Buffer from = device->Allocate(kLength);
  GradientIntake intake(*device, segments, sums, kBucket);

  for (const bool adds : {false, true}) {
    const cuda_double::Costs before = cuda_double::CostsOfThread();
    intake.Begin({.adds = adds});
    for (std::size_t i = 0; i < kParameters; ++i) {
      intake.Take({.segment = i, .values = from.span().data()});
    }
    intake.End();
    EXPECT_EQ((cuda_double::CostsOfThread() - before).launches, 4);
    EXPECT_EQ((cuda_double::CostsOfThread() - before).waits, 0);
  }
}

}  // namespace
}  // namespace tactus::torchscript
