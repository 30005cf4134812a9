#include <limits>

#include "cuda/ops/vector.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {
namespace {

class VectorKernelsTest : public TwinLengthTest {};

TEST_P(VectorKernelsTest, AxpyIsBitIdentical) {
  const std::vector<float> x = RandomValues(1, length());
  std::vector<float> y = RandomValues(2, length());
  const DeviceArray<float> device_x(x, shift());
  const DeviceArray<float> device_y(y, shift());

  kernels::Axpy(stream_, -0.37f, device_x.span(), device_y.span());
  host::Axpy(-0.37f, x, y);

  ExpectSameBits(device_y.Read(), y);
  ExpectSameBits(device_x.Read(), x);
}

TEST_P(VectorKernelsTest, AxpyOfViewsThatLieUnlikeIsBitIdentical) {
  const std::vector<float> x = RandomValues(1, length());
  std::vector<float> y = RandomValues(2, length());
  const DeviceArray<float> device_x(x, shift());
  const DeviceArray<float> device_y(y, shift() + 1);

  kernels::Axpy(stream_, 1.7f, device_x.span(), device_y.span());
  host::Axpy(1.7f, x, y);

  ExpectSameBits(device_y.Read(), y);
}

TEST_P(VectorKernelsTest, AxpyOfABufferOntoItselfIsBitIdentical) {
  std::vector<float> x = RandomValues(1, length());
  const DeviceArray<float> device_x(x, shift());

  kernels::Axpy(stream_, 3.0f, device_x.span(), device_x.span());
  host::Axpy(3.0f, x, x);

  ExpectSameBits(device_x.Read(), x);
}

TEST_P(VectorKernelsTest, ScaleIsBitIdentical) {
  std::vector<float> x = RandomValues(1, length());
  const DeviceArray<float> device_x(x, shift());

  kernels::Scale(stream_, 1.0f / 3, device_x.span());
  host::Scale(1.0f / 3, x);

  ExpectSameBits(device_x.Read(), x);
}

TEST_P(VectorKernelsTest, FillSetsEveryElement) {
  const DeviceArray<float> device_x = DeviceArray<float>::OfLength(length(), shift());

  kernels::Fill(stream_, -2.5f, device_x.span());

  ExpectSameBits(device_x.Read(), std::vector<float>(length(), -2.5f));
}

TEST_P(VectorKernelsTest, CopyIsBitIdentical) {
  const std::vector<float> x = RandomValues(1, length());
  const DeviceArray<float> device_x(x, shift());
  const DeviceArray<float> device_y = DeviceArray<float>::OfLength(length());

  kernels::Copy(stream_, device_x.span(), device_y.span());

  ExpectSameBits(device_y.Read(), x);
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, VectorKernelsTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class VectorKernelsCaseTest : public TwinTest {};

TEST_F(VectorKernelsCaseTest, TheSmallestNumbersAreNotFlushedToZero) {
  std::vector<float> x(33, std::numeric_limits<float>::denorm_min());
  const DeviceArray<float> device_x(x);

  kernels::Scale(stream_, 3.0f, device_x.span());
  host::Scale(3.0f, x);

  ExpectSameBits(device_x.Read(), x);
}

}  // namespace
}  // namespace tactus::cuda
