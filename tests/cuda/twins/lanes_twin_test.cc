#include <limits>

#include "cuda/ops/lanes.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {
namespace {

class LanesKernelTest : public TwinTest {};

TEST_F(LanesKernelTest, EveryNormAndLossWriteTheSameBits) {
  const std::vector<LaneValue> values = {{.lane = 0, .if_finite = 512, .if_not_finite = 512},
                                         {.lane = 1, .if_finite = 3.25f, .if_not_finite = 0},
                                         {.lane = 2, .norm_factor = 1, .norm_divisor = 7},
                                         {.lane = 3, .if_not_finite = 4, .norm_factor = 1.0 / 3},
                                         {.lane = 6, .if_not_finite = 1},
                                         {.lane = 7, .if_not_finite = 2, .loss = LossLane::kAll},
                                         {.lane = 8, .if_finite = 1, .loss = LossLane::kCommon}};
  const std::vector<double> numbers = {0.0,
                                       1234.5678,
                                       1e-300,
                                       1e300,
                                       std::numeric_limits<double>::infinity(),
                                       std::numeric_limits<double>::quiet_NaN()};
  for (const double norm2 : numbers) {
    for (const double loss : numbers) {
      std::vector<float> tail(10, 0.5f);
      const DeviceArray<float> device_tail(tail, 3);
      const DeviceArray<double> device_norm2(std::vector<double>{norm2});
      const DeviceArray<double> device_loss(std::vector<double>{loss});
      const double common_loss = loss / 3;
      const DeviceArray<double> device_common_loss(std::vector<double>{common_loss});

      kernels::WriteLanes(stream_, values,
                          {.norm2 = device_norm2.span(),
                           .loss = device_loss.span(),
                           .common_loss = device_common_loss.span()},
                          device_tail.span());
      host::WriteLanes(values,
                       {.norm2 = {&norm2, 1}, .loss = {&loss, 1}, .common_loss = {&common_loss, 1}},
                       tail);

      ExpectSameBits(device_tail.Read(), tail);
    }
  }
}

TEST_F(LanesKernelTest, TheMostLanesAreWrittenAndTheirListMayGo) {
  std::vector<LaneValue> values;
  std::vector<float> expected(kWrittenLanesMax + 1, -1);
  for (std::size_t i = 0; i < kWrittenLanesMax; ++i) {
    values.push_back({.lane = i, .if_finite = static_cast<float>(i)});
    expected[i] = static_cast<float>(i);
  }
  const DeviceArray<float> tail(std::vector<float>(kWrittenLanesMax + 1, -1));
  const DeviceArray<double> one(std::vector<double>{1});

  kernels::WriteLanes(stream_, values,
                      {.norm2 = one.span(), .loss = one.span(), .common_loss = one.span()},
                      tail.span());
  values.assign(values.size(), {});

  ExpectSameBits(tail.Read(), expected);
}

TEST_F(LanesKernelTest, NoValuesChangeNothing) {
  const DeviceArray<float> tail(std::vector<float>(4, 2));
  const DeviceArray<double> one(std::vector<double>{1});

  kernels::WriteLanes(stream_, {},
                      {.norm2 = one.span(), .loss = one.span(), .common_loss = one.span()},
                      tail.span());

  ExpectSameBits(tail.Read(), std::vector<float>(4, 2));
}

}  // namespace
}  // namespace tactus::cuda
