#include <vector>

#include "cuda/ops/frozen_lamb.h"
#include "cuda/ops/step_gate.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

struct State {
  std::vector<float> gradients{};
  std::vector<float> parameters{};
  std::vector<float> first{};
  std::vector<float> second{};
  std::vector<float> fresh{};

  FrozenLambBuffers buffers() {
    return {.gradients = gradients,
            .parameters = parameters,
            .first_moment = first,
            .second_moment = second,
            .fresh_moment = fresh};
  }
};

// Every seventh element never had a gradient.
State RandomState(std::size_t length) {
  State state{.gradients = RandomValues(1, length, 10),
              .parameters = RandomValues(2, length),
              .first = RandomValues(3, length, 0.1f),
              .second = RandomValues(4, length, 0.1f),
              .fresh = RandomValues(5, length, 0.1f)};
  for (std::size_t i = 0; i < length; ++i) {
    state.second[i] *= i % 7 == 0 ? 0 : state.second[i];
    state.fresh[i] *= state.fresh[i];
  }
  return state;
}

class DeviceState {
 public:
  DeviceState(const State& state, std::size_t shift)
      : gradients_(state.gradients, shift),
        parameters_(state.parameters, shift),
        first_(state.first, shift),
        second_(state.second, shift),
        fresh_(state.fresh, shift) {}

  FrozenLambBuffers buffers() const {
    return {.gradients = gradients_.span(),
            .parameters = parameters_.span(),
            .first_moment = first_.span(),
            .second_moment = second_.span(),
            .fresh_moment = fresh_.span()};
  }
  void ExpectBitsOf(const State& state) const {
    ExpectSameBits(gradients_.Read(), state.gradients);
    ExpectSameBits(parameters_.Read(), state.parameters);
    ExpectSameBits(first_.Read(), state.first);
    ExpectSameBits(second_.Read(), state.second);
    ExpectSameBits(fresh_.Read(), state.fresh);
  }

 private:
  DeviceArray<float> gradients_;
  DeviceArray<float> parameters_;
  DeviceArray<float> first_;
  DeviceArray<float> second_;
  DeviceArray<float> fresh_;
};

class FrozenLambKernelTest : public TwinTest, public testing::WithParamInterface<std::size_t> {
 protected:
  const SegmentTable segments_ = TwinSegments();
  const ChunkTable table_ = ChunksOf(segments_);
  const std::size_t partials_ = 2 * table_.chunks.size();
};

TEST_P(FrozenLambKernelTest, SumsAndMomentsAreThoseOfTheHost) {
  State state = RandomState(FlatLength(segments_));
  const DeviceState on_device(state, GetParam());
  const DeviceChunks chunks(table_);
  const DeviceSums sums(kFrozenLambSums * segments_.size(), partials_);
  const FrozenLambStep step{.lamb = {.weight_decay = 0.01, .gradient_scale = 1.0f / 7, .step = 9},
                            .frozen_step = 4};
  std::vector<double> expected(kFrozenLambSums * segments_.size());

  kernels::FrozenLambSums(stream_, step, chunks.view(), on_device.buffers(), sums.into());
  host::FrozenLambSums(step, segments_, state.buffers(), expected);

  on_device.ExpectBitsOf(state);
  const std::vector<double> found = sums.Read();
  const std::size_t norms = 2 * segments_.size();
  for (std::size_t i = 0; i < norms; ++i) {
    const auto n = static_cast<double>(segments_[i / 2].length);
    EXPECT_NEAR(found[i], expected[i], 2 * n * 0x1p-53 * expected[i]) << i;
  }
  for (std::size_t i = norms; i < found.size(); ++i) EXPECT_EQ(found[i], expected[i]) << i;
  // The first segment has one element, without a gradient; of the others it is no zero.
  EXPECT_EQ(found[norms], 0);
  EXPECT_GT(found[norms + 1], 0);
}

TEST_P(FrozenLambKernelTest, TheWayByGivenRatesIsThatOfTheHost) {
  State state = RandomState(FlatLength(segments_));
  const DeviceState on_device(state, GetParam());
  const DeviceChunks chunks(table_);
  std::vector<double> rates;
  for (std::size_t i = 0; i < segments_.size(); ++i)
    rates.push_back(-0.01 * static_cast<double>(i));
  const DeviceArray<double> uploaded(rates);
  const FrozenLambStep step{.lamb = {.weight_decay = 0.01, .step = 9}, .frozen_step = 4};

  kernels::FrozenLambMove(stream_, step, chunks.view(), on_device.buffers(), uploaded.span());
  host::FrozenLambMove(step, segments_, state.buffers(), rates);

  on_device.ExpectBitsOf(state);
}

TEST_P(FrozenLambKernelTest, BehindAGateThatIsShutAllStaysAsItIs) {
  const State state = RandomState(FlatLength(segments_));
  const DeviceState on_device(state, GetParam());
  const DeviceChunks chunks(table_);
  const std::vector<double> before(kFrozenLambSums * segments_.size(), -1);
  const DeviceSums sums(before, partials_);
  const DeviceArray<double> shut(std::vector<double>(kGateLength, 0));
  const FrozenLambStep step{.lamb = {.learning_rate = 1, .gate = shut.span().data()}};

  kernels::FrozenLambSums(stream_, step, chunks.view(), on_device.buffers(), sums.into());
  kernels::FrozenLambMove(stream_, step, chunks.view(), on_device.buffers(),
                          sums.into().sums.first(segments_.size()));

  EXPECT_EQ(sums.Read(), before);
  on_device.ExpectBitsOf(state);
}

INSTANTIATE_TEST_SUITE_P(Shifts, FrozenLambKernelTest, testing::ValuesIn(kShifts));

}  // namespace
}  // namespace tactus::cuda
