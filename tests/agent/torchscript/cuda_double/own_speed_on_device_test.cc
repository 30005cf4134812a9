// The measurement of a worker's speed, on the double of the CUDA runtime, which counts memory.

#include <algorithm>
#include <vector>

#include "agent/engine/optimizer.h"
#include "agent/torchscript/own_speed.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "gtest/gtest.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::torchscript {
namespace {

// Passes that compute nothing, and see how much memory there is in use meanwhile.
class WatchingPasses final : public Passes {
 public:
  absl::Status TryOut(std::span<const std::uint64_t>) override {
    most_bytes_ = std::max(most_bytes_, cuda_double::DeviceBytes());
    return absl::OkStatus();
  }
  absl::Status ForwardBackward(std::span<const std::uint64_t>, std::span<const std::uint64_t>,
                               const SegmentReady&) override {
    return absl::OkStatus();
  }
  void BeginSum() override {}
  void GoBack() override {}

  std::size_t most_bytes_ = 0;
};

TEST(OwnSpeedTest, StepsChangeNoParameterAndNeedTheMemoryOfTrainingAlone) {
  cuda_double::Reset({});
  constexpr std::size_t kLength = 1 << 16;
  cuda::SegmentTable segments = {{.length = kLength}};
  cuda::AssignOffsets(segments);
  const cuda::OpenedDevice opened = cuda::OpenDevice("cuda:0");
  ASSERT_NE(opened.device, nullptr) << opened.reason;
  std::vector<float> weights(kLength);
  for (std::size_t i = 0; i < kLength; ++i) weights[i] = 0.01f * static_cast<float>(i % 101) - 0.5f;
  cuda::Buffer parameters = opened.device->Allocate(kLength);
  cuda::Buffer gradients = opened.device->Allocate(kLength);
  opened.device->Copy(weights, parameters.span());
  opened.device->Synchronize();
  const std::size_t buffer_bytes = kLength * sizeof(float);

  for (engine::OptimizerOptions optimizer : engine::EveryOptimizer()) {
    const auto decay = [](auto& options) {
      if constexpr (requires { options.weight_decay; }) options.weight_decay = 0.1;
    };
    std::visit(decay, optimizer);
    WatchingPasses passes;
    MicroBatches micro_batches(passes, 4, {});
    const std::size_t before = cuda_double::DeviceBytes();

    const absl::StatusOr<double> speed = MeasureOwnSpeed(micro_batches, *opened.device,
                                                         {.samples = 4,
                                                          .optimizer = optimizer,
                                                          .segments = segments,
                                                          .parameters = parameters.span(),
                                                          .gradients = gradients.span()});

    ASSERT_TRUE(speed.ok());
    EXPECT_GT(*speed, 0);
    std::vector<float> after(kLength);
    opened.device->Copy(parameters.span(), after);
    opened.device->Synchronize();
    EXPECT_EQ(after, weights) << engine::NameOf(optimizer);
    // A tenth of a buffer for the tables and sums of an optimizer that has some.
    EXPECT_LE(passes.most_bytes_ - before,
              engine::StateBuffers(optimizer) * buffer_bytes + buffer_bytes / 10)
        << engine::NameOf(optimizer);
  }
}

}  // namespace
}  // namespace tactus::torchscript
