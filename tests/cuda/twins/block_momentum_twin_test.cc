#include <limits>

#include "cuda/ops/block_momentum.h"
#include "cuda/ops/round_gate.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {
namespace {

class BlockMomentumKernelsTest : public TwinLengthTest {};

TEST_P(BlockMomentumKernelsTest, TheParameterDeltaIsBitIdentical) {
  const std::vector<float> now = RandomValues(1, length());
  const std::vector<float> start = RandomValues(2, length());
  const DeviceArray<float> device_now(now, shift());
  const DeviceArray<float> device_start(start, shift());
  const DeviceArray<float> device_delta = DeviceArray<float>::OfLength(length(), shift());
  std::vector<float> delta(length());

  kernels::ParameterDelta(stream_, device_now.span(), device_start.span(), device_delta.span());
  host::ParameterDelta(now, start, delta);
  ExpectSameBits(device_delta.Read(), delta);

  kernels::ParameterDelta(stream_, device_now.span(), device_start.span(), device_now.span());
  ExpectSameBits(device_now.Read(), delta);
  ExpectSameBits(device_start.Read(), start);
}

TEST_P(BlockMomentumKernelsTest, ThreeWindowsAreBitIdentical) {
  for (const BlockMomentumStep& step :
       {BlockMomentumStep{1.0 / 7, 0.1, 0}, BlockMomentumStep{1.0 / 7, 0, 0.3},
        BlockMomentumStep{1.0 / 7, 0.1, 0.3}, BlockMomentumStep{1, 0.03, 0.9}}) {
    std::vector<float> start = RandomValues(1, length());
    std::vector<float> momentum(length());
    std::vector<float> parameters(length());
    const DeviceArray<float> device_momentum(momentum, shift());
    for (std::uint64_t window = 0; window < 3; ++window) {
      const std::vector<float> delta = RandomValues(2 + window, length(), 7);
      const DeviceArray<float> device_start(start, shift());
      // For one step of the four a view that does not lie as the others do.
      const DeviceArray<float> device_delta(delta, step.scale == 1 ? shift() + 1 : shift());
      const DeviceArray<float> device_parameters = DeviceArray<float>::OfLength(length(), shift());

      kernels::BlockMomentum(stream_, step,
                             {device_start.span(), device_delta.span(), device_momentum.span(),
                              device_parameters.span()});
      host::BlockMomentum(step, {start, delta, momentum, parameters});

      ExpectSameBits(device_parameters.Read(), parameters);
      ExpectSameBits(device_momentum.Read(), momentum);
      ExpectSameBits(device_start.Read(), start);
      ExpectSameBits(device_delta.Read(), delta);
      start = parameters;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, BlockMomentumKernelsTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class BlockMomentumKernelsCaseTest : public TwinTest {};

TEST_F(BlockMomentumKernelsCaseTest, BehindAGateBothDoTheSame) {
  const std::vector<float> start = RandomValues(1, 100);
  std::vector<float> delta = RandomValues(2, 100);
  delta[7] = std::numeric_limits<float>::quiet_NaN();  // what a torn buffer may hold
  for (const double momentum : {0.0, 0.3}) {
    for (const std::vector<double>& gate :
         {std::vector<double>{0.125, 1, 0}, {0, 0, 0}, {0, 0, 1}}) {
      std::vector<float> u = RandomValues(3, 100);
      const std::vector<float> own = RandomValues(4, 100);
      std::vector<float> parameters = own;
      const DeviceArray<float> device_start(start);
      const DeviceArray<float> device_delta(delta);
      const DeviceArray<float> device_u(u);
      const DeviceArray<float> device_parameters(parameters);
      const DeviceArray<double> device_gate(gate);
      BlockMomentumStep step{.scale = 77, .learning_rate = 0.1, .momentum = momentum};

      step.gate = gate.data();
      host::BlockMomentum(step, {start, delta, u, parameters});
      step.gate = device_gate.span().data();
      kernels::BlockMomentum(
          stream_, step,
          {device_start.span(), device_delta.span(), device_u.span(), device_parameters.span()});

      ExpectSameBits(device_parameters.Read(), parameters);
      ExpectSameBits(device_u.Read(), u);
      const bool lost = gate[kRoundGateLost] != 0;
      if (gate[kGateOpen] == 0) ExpectSameBits(parameters, lost ? own : start);
    }
  }
}

TEST_F(BlockMomentumKernelsCaseTest, WithoutMomentumNoBufferIsNeeded) {
  const DeviceArray<float> start(std::vector<float>{1, 2});
  const DeviceArray<float> delta(std::vector<float>{8, -4});
  const DeviceArray<float> parameters = DeviceArray<float>::OfLength(2);

  kernels::BlockMomentum(stream_, {.scale = 0.25},
                         {start.span(), delta.span(), {}, parameters.span()});

  EXPECT_EQ(parameters.Read(), (std::vector<float>{3, 1}));
}

}  // namespace
}  // namespace tactus::cuda
