#include <bit>
#include <cmath>
#include <deque>
#include <limits>

#include "cuda/ops/gather.h"
#include "cuda/ops/vector.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

// Arrays of the given lengths, in the device's memory `shift` elements off an aligned address, and
// in the host's; in the stretch each begins at the next multiple of 16, behind a gap in front.
class Scattered {
 public:
  Scattered(const std::vector<std::size_t>& lengths, std::size_t shift, float scale = 1) {
    std::size_t offset = 16;
    for (const std::size_t length : lengths) {
      values_.push_back(RandomValues(values_.size(), length, scale));
      if (length > 2) values_.back()[1] = -0.0f;
      on_device_.emplace_back(values_.back(), shift);
      host_parts_.push_back({.offset = offset, .length = length, .from = values_.back().data()});
      device_parts_.push_back(
          {.offset = offset, .length = length, .from = on_device_.back().span().data()});
      offset += (length + 15) / 16 * 16;
    }
    length_ = offset;
  }

  // Both twins; and the norm against that of the kernel that takes nothing but the norm.
  void ExpectAgreement(Stream stream, bool adds) const {
    std::vector<float> expected = RandomValues(99, length_);
    const DeviceArray<float> out(expected);
    const DeviceArray<double> sums(std::vector<double>{0.25, 0.25});
    const DeviceArray<double> partials = DeviceArray<double>::OfLength(ChunksIn(length_));
    const DeviceCounters counters(1);
    const auto into = [&](std::size_t sum) {
      return kernels::SumsInto{.sums = sums.span().subspan(sum, 1),
                               .partials = partials.span(),
                               .counters = counters.span()};
    };

    kernels::Gather(stream, {.parts = device_parts_, .adds = adds}, out.span(), into(0));
    kernels::AddSquaredNorm(stream, out.span(), into(1));
    host::Gather({.parts = host_parts_, .adds = adds}, expected);

    ExpectSameBits(out.Read(), expected);
    const std::vector<double> norms = sums.Read();
    EXPECT_EQ(std::bit_cast<std::uint64_t>(norms[0]), std::bit_cast<std::uint64_t>(norms[1]));
    for (std::size_t i = 0; i < values_.size(); ++i) {
      ExpectSameBits(on_device_[i].Read(), values_[i]);
    }
    counters.ExpectZero();

    kernels::Gather(stream, {.parts = device_parts_, .adds = adds}, out.span(), {});
    host::Gather({.parts = host_parts_, .adds = adds}, expected);
    ExpectSameBits(out.Read(), expected);
  }

 private:
  std::vector<std::vector<float>> values_;
  std::deque<DeviceArray<float>> on_device_;
  std::vector<GatherPart> host_parts_;
  std::vector<GatherPart> device_parts_;
  std::size_t length_ = 0;
};

class GatherKernelTest : public TwinLengthTest {};

TEST_P(GatherKernelTest, OfArraysOfEveryLengthIsBitIdentical) {
  const Scattered scattered({length(), 5, length(), 1}, shift());

  scattered.ExpectAgreement(stream_, false);
  scattered.ExpectAgreement(stream_, true);
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, GatherKernelTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class GatherKernelCaseTest : public TwinTest {};

// 1 too few for a launch, just enough, and enough for three.
TEST_F(GatherKernelCaseTest, OfManyArraysIsBitIdentical) {
  for (const std::size_t parts :
       {kernels::kGatherPartsMax, kernels::kGatherPartsMax + 1, 2 * kernels::kGatherPartsMax + 1}) {
    std::vector<std::size_t> lengths(parts, 7);
    for (std::size_t i = 0; i < parts; i += 3) lengths[i] = 33;
    const Scattered scattered(lengths, 0);

    scattered.ExpectAgreement(stream_, false);
    scattered.ExpectAgreement(stream_, true);
  }
}

TEST_F(GatherKernelCaseTest, OfNothingIsZerosOrNothing) {
  const Scattered scattered({}, 0);

  scattered.ExpectAgreement(stream_, false);
  scattered.ExpectAgreement(stream_, true);
}

// Squares that two float32 do not hold have a thread go over its elements again: not to add twice.
TEST_F(GatherKernelCaseTest, WhatIsTooLargeForTwoFloatsIsAddedOnce) {
  const Scattered scattered({9000, 40}, 0, 1e25f);

  scattered.ExpectAgreement(stream_, false);
  scattered.ExpectAgreement(stream_, true);
}

TEST_F(GatherKernelCaseTest, WhatIsNotFiniteComesThroughAndMakesTheNormSo) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const DeviceArray<float> from(std::vector<float>{1, value, 3});
    const DeviceArray<float> out(std::vector<float>(16, 5));
    const DeviceArray<double> sum(std::vector<double>{0});
    const DeviceArray<double> partials = DeviceArray<double>::OfLength(1);
    const DeviceCounters counters(1);
    const GatherPart part{.offset = 4, .length = 3, .from = from.span().data()};

    kernels::Gather(stream_, {.parts = {&part, 1}}, out.span(),
                    {.sums = sum.span(), .partials = partials.span(), .counters = counters.span()});

    const std::vector<float> found = out.Read();
    EXPECT_EQ(std::vector<float>(found.begin(), found.begin() + 5),
              (std::vector<float>{0, 0, 0, 0, 1}));
    ExpectSameBits({&found[5], 1}, {&value, 1});
    EXPECT_EQ(found[6], 3);
    EXPECT_EQ(found[7], 0);
    EXPECT_FALSE(std::isfinite(sum.Read()[0]));
  }
}

}  // namespace
}  // namespace tactus::cuda
