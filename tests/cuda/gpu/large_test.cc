// Buffers of more elements than 31 bits count: on a device alone, as the host's loops and the
// double would take minutes.

#include "cuda/ops/adasum.h"
#include "cuda/ops/vector.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

constexpr std::size_t kLength = (std::size_t{1} << 31) + 5;

class LargeBufferTest : public TwinTest {
 protected:
  void SetUp() override {
    TwinTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const cudaError_t error = cudaMalloc(&memory_, kLength * sizeof(float));
    if (error != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      GTEST_SKIP() << "the device has no 8.6 GB: " << cudaGetErrorString(error);
    }
    buffer_ = {static_cast<float*>(memory_), kLength};
  }

  void TearDown() override {
    if (memory_ != nullptr) {
      EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    }
    TwinTest::TearDown();
  }

  void* memory_ = nullptr;
  std::span<float> buffer_{};
};

TEST_F(LargeBufferTest, EveryElementIsReached) {
  const DeviceSums sum(1, ChunksIn(kLength));

  kernels::Fill(stream_, 1, buffer_);
  kernels::Axpy(stream_, 2, buffer_, buffer_);
  kernels::Scale(stream_, 2, buffer_);
  kernels::SquaredNorm(stream_, buffer_, sum.into());

  EXPECT_EQ(sum.Read()[0], 36.0 * static_cast<double>(kLength));  // exact below 2^53
}

TEST_F(LargeBufferTest, ASegmentOfThatSizeIsCombined) {
  const SegmentTable segments = {{.offset = 0, .length = kLength}};
  const ChunkTable table = ChunksOf(segments);
  const DeviceChunks chunks(table);
  const DeviceSums sums(std::vector<double>(kAdasumSumsPerSegment),
                        table.chunks.size() * kAdasumSumsPerSegment);
  const DeviceSums sum(1, ChunksIn(kLength));
  const AdasumPair pair{.a = buffer_, .b = buffer_};

  kernels::Fill(stream_, 3, buffer_);
  kernels::AdasumPartials(stream_, pair, chunks.view(), sums.into());
  kernels::AdasumCombine(stream_, pair, chunks.view(), sums.into().sums, buffer_);
  kernels::SquaredNorm(stream_, buffer_, sum.into());

  const double expected = 9.0 * static_cast<double>(kLength);
  EXPECT_EQ(sums.Read(), std::vector<double>(3, expected));
  EXPECT_EQ(sum.Read()[0], expected);  // equal operands give themselves
}

}  // namespace
}  // namespace tactus::cuda
