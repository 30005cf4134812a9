// Lion on a device, bit for bit as on the host.

#include "cuda/ops/lion.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {
namespace {

class LionKernelTest : public TwinLengthTest {
 protected:
  // Two steps, so that the second one reads what the first one wrote.
  void ExpectAsOnTheHost(const LionStep& step, std::size_t momentum_shift) {
    const std::vector<float> gradients = RandomValues(1, length());
    std::vector<float> parameters = RandomValues(2, length());
    std::vector<float> momentum = RandomValues(3, length());
    const DeviceArray<float> device_gradients(gradients, shift());
    const DeviceArray<float> device_parameters(parameters, shift());
    const DeviceArray<float> device_momentum(momentum, momentum_shift);

    for (int i = 0; i < 2; ++i) {
      kernels::Lion(stream_, step, device_gradients.span(), device_parameters.span(),
                    device_momentum.span());
      host::Lion(step, gradients, parameters, momentum);
    }

    ExpectSameBits(device_parameters.Read(), parameters);
    ExpectSameBits(device_momentum.Read(), momentum);
    ExpectSameBits(device_gradients.Read(), gradients);
  }
};

TEST_P(LionKernelTest, StepsAreBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 1.0f / 7},
                    shift());
}

TEST_P(LionKernelTest, BuffersThatLieUnlikeAreBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.01}, shift() + 1);
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, LionKernelTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

}  // namespace
}  // namespace tactus::cuda
