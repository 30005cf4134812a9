// SGD, Adam and AdamW on a device, bit for bit as on the host.

#include "cuda/ops/adam.h"
#include "cuda/ops/sgd.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {
namespace {

class SgdKernelTest : public TwinLengthTest {
 protected:
  // Two steps, so that the second one reads what the first one wrote.
  void ExpectAsOnTheHost(const SgdStep& step, std::size_t momentum_shift) {
    const std::vector<float> gradients = RandomValues(1, length());
    std::vector<float> parameters = RandomValues(2, length());
    std::vector<float> momentum = RandomValues(3, step.momentum > 0 ? length() : 0);
    const DeviceArray<float> device_gradients(gradients, shift());
    const DeviceArray<float> device_parameters(parameters, shift());
    const DeviceArray<float> device_momentum(momentum, momentum_shift);

    for (int i = 0; i < 2; ++i) {
      kernels::Sgd(stream_, step, device_gradients.span(), device_parameters.span(),
                   device_momentum.span());
      host::Sgd(step, gradients, parameters, momentum);
    }

    ExpectSameBits(device_parameters.Read(), parameters);
    ExpectSameBits(device_momentum.Read(), momentum);
    ExpectSameBits(device_gradients.Read(), gradients);
  }
};

TEST_P(SgdKernelTest, PlainStepsAreBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.1f, .weight_decay = 0.01f, .gradient_scale = 1.0f / 7},
                    shift());
}

TEST_P(SgdKernelTest, MomentumIsBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.1f, .momentum = 0.9f, .weight_decay = 0.01f}, shift());
}

TEST_P(SgdKernelTest, NesterovIsBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.3f, .momentum = 0.7f, .nesterov = true}, shift());
}

TEST_P(SgdKernelTest, BuffersThatLieUnlikeAreBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.1f, .momentum = 0.9f}, shift() + 1);
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, SgdKernelTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class AdamKernelTest : public TwinLengthTest {
 protected:
  void ExpectAsOnTheHost(AdamStep step) {
    const std::vector<float> gradients = RandomValues(1, length());
    std::vector<float> parameters = RandomValues(2, length());
    std::vector<float> first(length());
    std::vector<float> second(length());
    const DeviceArray<float> device_gradients(gradients, shift());
    const DeviceArray<float> device_parameters(parameters, shift());
    const DeviceArray<float> device_first(first, shift());
    const DeviceArray<float> device_second(second, shift());

    for (step.step = 1; step.step <= 2; ++step.step) {
      kernels::Adam(stream_, step,
                    {.gradients = device_gradients.span(),
                     .parameters = device_parameters.span(),
                     .first_moment = device_first.span(),
                     .second_moment = device_second.span()});
      host::Adam(step, gradients, parameters, first, second);
    }

    ExpectSameBits(device_parameters.Read(), parameters);
    ExpectSameBits(device_first.Read(), first);
    ExpectSameBits(device_second.Read(), second);
    ExpectSameBits(device_gradients.Read(), gradients);
  }
};

TEST_P(AdamKernelTest, AdamIsBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.01, .weight_decay = 0.1, .gradient_scale = 1.0f / 7});
}

TEST_P(AdamKernelTest, AdamWIsBitIdentical) {
  ExpectAsOnTheHost({.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true});
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, AdamKernelTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

}  // namespace
}  // namespace tactus::cuda
