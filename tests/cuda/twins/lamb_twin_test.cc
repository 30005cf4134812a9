#include <cmath>

#include "cuda/ops/lamb.h"
#include "cuda/ops/lamb_parts.h"
#include "cuda/ops/step_gate.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

struct State {
  std::vector<float> gradients{};
  std::vector<float> parameters{};
  std::vector<float> first{};
  std::vector<float> second{};

  LambBuffers buffers() {
    return {.gradients = gradients,
            .parameters = parameters,
            .first_moment = first,
            .second_moment = second};
  }
};

State RandomState(std::size_t length) {
  State state{.gradients = RandomValues(1, length, 10),
              .parameters = RandomValues(2, length),
              .first = RandomValues(3, length, 0.1f),
              .second = RandomValues(4, length, 0.1f)};
  for (float& value : state.second) value *= value;
  return state;
}

// A state in device memory, moved off its aligned start.
struct DeviceState {
  DeviceState(const State& state, std::size_t shift)
      : gradients(state.gradients, shift),
        parameters(state.parameters, shift),
        first(state.first, shift),
        second(state.second, shift) {}

  LambBuffers buffers() const {
    return {.gradients = gradients.span(),
            .parameters = parameters.span(),
            .first_moment = first.span(),
            .second_moment = second.span()};
  }
  void ExpectBitsOf(const State& state) const {
    ExpectSameBits(gradients.Read(), state.gradients);
    ExpectSameBits(parameters.Read(), state.parameters);
    ExpectSameBits(first.Read(), state.first);
    ExpectSameBits(second.Read(), state.second);
  }

  DeviceArray<float> gradients;
  DeviceArray<float> parameters;
  DeviceArray<float> first;
  DeviceArray<float> second;
};

class LambKernelTest : public TwinTest, public testing::WithParamInterface<std::size_t> {
 protected:
  // One step on both sides; `expected` is the host's, its parameters within the header's bound.
  void ExpectNear(const LambStep& step, State state) {
    const DeviceArray<float> gradients(state.gradients, GetParam());
    const DeviceArray<float> parameters(state.parameters, GetParam());
    const DeviceArray<float> first(state.first, GetParam());
    const DeviceArray<float> second(state.second, GetParam());
    const DeviceChunks chunks(table_);
    const DeviceSums sums(segments_.size() * kernels::kLambSumsPerSegment,
                          table_.chunks.size() * kernels::kLambSumsPerSegment);
    const std::vector<float> before = state.parameters;

    kernels::Lamb(stream_, step, chunks.view(),
                  {.gradients = gradients.span(),
                   .parameters = parameters.span(),
                   .first_moment = first.span(),
                   .second_moment = second.span()},
                  sums.into());
    host::Lamb(step, segments_, state.buffers());

    ExpectSameBits(first.Read(), state.first);
    ExpectSameBits(second.Read(), state.second);
    ExpectSameBits(gradients.Read(), state.gradients);
    const std::vector<float> found = parameters.Read();
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double moved = std::abs(static_cast<double>(state.parameters[i]) - before[i]);
      const double x = std::max(std::abs(before[i]), std::abs(state.parameters[i]));
      // `moved` is |rate u| but for the rounding of x, whose 2^-22 is below what 1.001 adds.
      ASSERT_NEAR(found[i], state.parameters[i], 1.001 * (moved * 0x1p-22 + x * 0x1p-23)) << i;
    }
    sums.Read();
  }

  const SegmentTable segments_ = TwinSegments();
  const ChunkTable table_ = ChunksOf(segments_);
};

TEST_P(LambKernelTest, AgreesWithTheHost) {
  ExpectNear({.learning_rate = 0.01, .weight_decay = 0.01, .gradient_scale = 1.0f / 7, .step = 3},
             RandomState(FlatLength(segments_)));
}

TEST_P(LambKernelTest, AgreesWhereTheRatioMeetsItsBounds) {
  ExpectNear({.learning_rate = 0.01, .ratio_min = 0.01, .ratio_max = 0.02},
             RandomState(FlatLength(segments_)));
  ExpectNear({.learning_rate = 0.01, .ratio_min = 50, .ratio_max = 100},
             RandomState(FlatLength(segments_)));
}

TEST_P(LambKernelTest, TheRatioOfZeroParametersIsOne) {
  State state = RandomState(FlatLength(segments_));
  state.parameters.assign(state.parameters.size(), 0.0f);

  ExpectNear({.learning_rate = 0.01}, state);
}

TEST_P(LambKernelTest, AGradientThatIsNotFiniteSpoilsItsOwnSegmentAlone) {
  State state = RandomState(FlatLength(segments_));
  const Segment& spoilt = segments_[3];
  state.gradients[spoilt.offset] = HUGE_VALF;
  const DeviceArray<float> gradients(state.gradients, GetParam());
  const DeviceArray<float> parameters(state.parameters, GetParam());
  const DeviceArray<float> first(state.first, GetParam());
  const DeviceArray<float> second(state.second, GetParam());
  const DeviceChunks chunks(table_);
  const DeviceSums sums(segments_.size() * kernels::kLambSumsPerSegment,
                        table_.chunks.size() * kernels::kLambSumsPerSegment);

  kernels::Lamb(stream_, {.learning_rate = 0.01}, chunks.view(),
                {.gradients = gradients.span(),
                 .parameters = parameters.span(),
                 .first_moment = first.span(),
                 .second_moment = second.span()},
                sums.into());

  const std::vector<float> found = parameters.Read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool within = i >= spoilt.offset && i < spoilt.offset + spoilt.length;
    ASSERT_EQ(std::isfinite(found[i]), !within) << i;
  }
}

TEST_P(LambKernelTest, TheSumsOfPartsAreThoseOfTheHostAndNothingChangesForThem) {
  const State state = RandomState(FlatLength(segments_));
  const DeviceState on_device(state, GetParam());
  const DeviceChunks chunks(table_);
  const DeviceSums sums(segments_.size() * kLambSumsPerSegment,
                        table_.chunks.size() * kLambSumsPerSegment);
  const LambStep step{.weight_decay = 0.01, .gradient_scale = 1.0f / 7, .step = 3};

  kernels::LambSums(stream_, step, chunks.view(), on_device.buffers(), sums.into());
  State twin = state;
  std::vector<double> expected(segments_.size() * kLambSumsPerSegment);
  EXPECT_TRUE(host::LambSums(step, segments_, twin.buffers(), expected));

  const std::vector<double> found = sums.Read();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto n = static_cast<double>(segments_[i / kLambSumsPerSegment].length);
    EXPECT_NEAR(found[i], expected[i], 2 * n * 0x1p-53 * expected[i]) << i;
  }
  on_device.ExpectBitsOf(state);
}

// Where members count segments alone, the ratios are of what others have, too.
TEST_P(LambKernelTest, AStepOfPartsByGivenSumsIsThatOfTheHost) {
  State state = RandomState(FlatLength(segments_));
  const DeviceState on_device(state, GetParam());
  const DeviceChunks chunks(table_);
  std::vector<double> of_all;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    of_all.push_back(2.0 * static_cast<double>(i));  // the first is 0, and leaves the ratio at 1
    of_all.push_back(3.0 + static_cast<double>(i));
  }
  const DeviceArray<double> sums(of_all);
  const LambStep step{.learning_rate = 0.01, .weight_decay = 0.01, .step = 3};

  kernels::LambOfParts(stream_, step, chunks.view(), on_device.buffers(), sums.span());
  host::LambOfParts(step, segments_, state.buffers(), of_all);

  on_device.ExpectBitsOf(state);
}

TEST_P(LambKernelTest, PartsBehindAGateThatIsShutStayAsTheyAre) {
  const State state = RandomState(FlatLength(segments_));
  const DeviceState on_device(state, GetParam());
  const DeviceChunks chunks(table_);
  const std::vector<double> before(segments_.size() * kLambSumsPerSegment, -1);
  const DeviceSums sums(before, table_.chunks.size() * kLambSumsPerSegment);
  const DeviceArray<double> shut(std::vector<double>(kGateLength, 0));
  const LambStep step{.learning_rate = 1, .gate = shut.span().data()};

  kernels::LambSums(stream_, step, chunks.view(), on_device.buffers(), sums.into());
  kernels::LambOfParts(stream_, step, chunks.view(), on_device.buffers(), sums.into().sums);

  EXPECT_EQ(sums.Read(), before);
  on_device.ExpectBitsOf(state);
}

INSTANTIATE_TEST_SUITE_P(Shifts, LambKernelTest, testing::ValuesIn(kShifts));

}  // namespace
}  // namespace tactus::cuda
