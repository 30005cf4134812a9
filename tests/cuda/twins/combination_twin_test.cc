#include <cmath>
#include <limits>

#include "cuda/ops/combination.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {
namespace {

// The buffers of several members, here and on the device.
struct Members {
  std::vector<std::vector<float>> values{};
  std::vector<DeviceArray<float>> buffers{};
  std::vector<double> weights{};

  // Member p lies shifts[p % shifts.size()] elements off an aligned address.
  Members(std::size_t count, std::size_t length, const std::vector<std::size_t>& shifts) {
    for (std::size_t p = 0; p < count; ++p) {
      values.push_back(RandomValues(p, length, 10));
      buffers.emplace_back(values.back(), shifts[p % shifts.size()]);
      weights.push_back(0.1 + 1.0 / static_cast<double>(p + 3));
    }
  }

  std::vector<Weighted> OnHost() const {
    std::vector<Weighted> parts;
    for (std::size_t p = 0; p < values.size(); ++p) parts.push_back({weights[p], values[p]});
    return parts;
  }
  std::vector<Weighted> OnDevice() const {
    std::vector<Weighted> parts;
    for (std::size_t p = 0; p < values.size(); ++p) {
      parts.push_back({weights[p], buffers[p].span()});
    }
    return parts;
  }
  std::vector<float> Expected() const {
    std::vector<float> out(values.front().size());
    host::WeightedSum(OnHost(), out);
    return out;
  }
};

class WeightedSumKernelTest : public TwinLengthTest {};

TEST_P(WeightedSumKernelTest, IsBitIdentical) {
  for (const std::size_t count : {1, 2, 5}) {
    const Members members(count, length(), {shift()});
    const DeviceArray<float> out = DeviceArray<float>::OfLength(length(), shift());

    kernels::WeightedSum(stream_, members.OnDevice(), out.span());

    ExpectSameBits(out.Read(), members.Expected());
  }
}

TEST_P(WeightedSumKernelTest, OfViewsThatLieUnlikeIsBitIdentical) {
  const Members members(3, length(), {shift(), shift(), shift() + 1});
  const DeviceArray<float> out = DeviceArray<float>::OfLength(length(), shift());

  kernels::WeightedSum(stream_, members.OnDevice(), out.span());

  ExpectSameBits(out.Read(), members.Expected());
}

TEST_P(WeightedSumKernelTest, StoredOverOneOfItsPartsIsBitIdentical) {
  for (const std::size_t target : {0, 2}) {
    const Members members(3, length(), {shift()});

    kernels::WeightedSum(stream_, members.OnDevice(), members.buffers[target].span());

    ExpectSameBits(members.buffers[target].Read(), members.Expected());
    ExpectSameBits(members.buffers[1].Read(), members.values[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, WeightedSumKernelTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class WeightedSumKernelCaseTest : public TwinTest {};

TEST_F(WeightedSumKernelCaseTest, TheMostBuffersAreCombinedInTheirOrder) {
  const Members members(kCombinedMax, 1025, {0});
  const DeviceArray<float> out = DeviceArray<float>::OfLength(1025);

  kernels::WeightedSum(stream_, members.OnDevice(), out.span());

  ExpectSameBits(out.Read(), members.Expected());
}

TEST_F(WeightedSumKernelCaseTest, WhatIsNotFiniteComesOutAsOnTheHost) {
  Members members(2, 0, {0});
  members.values[0] = {1, std::numeric_limits<float>::infinity(), 0, std::nanf(""), -0.0f};
  members.values[1] = {-0.0f, -std::numeric_limits<float>::infinity(), 3.4e38f, 1, -0.0f};
  members.weights = {1, 1};
  members.buffers.clear();
  for (const std::vector<float>& values : members.values) members.buffers.emplace_back(values);
  const DeviceArray<float> out = DeviceArray<float>::OfLength(5);

  kernels::WeightedSum(stream_, members.OnDevice(), out.span());

  ExpectSameBits(out.Read(), members.Expected());
}

}  // namespace
}  // namespace tactus::cuda
