// The calls that bench_kernels makes, on the double of the CUDA runtime: that each fits its
// buffers. Nothing is timed, and no figure comes from the double.

#include "bench/kernels/operations.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::bench {
namespace {

constexpr std::size_t kWorkspaceBytes = 16 << 20;

class OperationsTest : public testing::Test {
 protected:
  OperationsTest() {
    cuda_double::Reset({});
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamDefault), cudaSuccess);
  }
  ~OperationsTest() override { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  // Runs every operation twice over buffers of n elements in so many segments.
  void RunAll(std::size_t n, std::size_t segments) {
    Workspace workspace(kWorkspaceBytes, stream_);
    for (const Operation& operation : Operations()) {
      SCOPED_TRACE(operation.name);
      workspace.Reset();
      std::optional<SegmentedBuffer> segmented;
      if (operation.by_segments) segmented.emplace(n, segments, workspace);
      const Call call = operation.prepare(
          {.n = n, .segments = segmented ? &*segmented : nullptr, .workspace = workspace});
      ASSERT_TRUE(workspace.fits());

      call(stream_);
      call(stream_);

      EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    }
  }

  std::vector<float> Read(std::span<const float> from) {
    std::vector<float> values(from.size());
    EXPECT_EQ(cudaMemcpy(values.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

  cudaStream_t stream_ = nullptr;
};

TEST_F(OperationsTest, AllRunOnBuffersOfSeveralChunks) { RunAll(20'011, 1); }

TEST_F(OperationsTest, AllRunOnManySmallSegments) { RunAll(20'011, 64); }

TEST_F(OperationsTest, AllRunOnFewElements) { RunAll(32, 1); }

TEST_F(OperationsTest, NamesAreDifferentAndFormulasAreThere) {
  std::set<std::string> names;
  for (const Operation& operation : Operations()) {
    EXPECT_TRUE(names.insert(operation.name).second) << operation.name;
    EXPECT_FALSE(operation.formula.empty()) << operation.name;
  }
  EXPECT_GE(names.size(), 35u);
}

TEST_F(OperationsTest, FormulasSayTheBytes) {
  for (const Operation& operation : Operations()) {
    if (operation.bytes_per_element == 0) continue;
    // The numbers of "(4 + 2/8) n", "4 (2 + 1) n" and "12 n", read by hand.
    double first = 0;
    double second = 0;
    double third = 1;
    const char* const text = operation.formula.c_str();
    if (std::sscanf(text, "(%lf + %lf/%lf) n", &first, &second, &third) == 3) {
      first += second / third;
    } else if (std::sscanf(text, "%lf (%lf + %lf) n", &first, &second, &third) == 3) {
      first *= second + third;
    }

    EXPECT_DOUBLE_EQ(operation.bytes_per_element, first) << operation.name;
  }
}

TEST_F(OperationsTest, SegmentsFillTheBufferAndStayInIt) {
  Workspace workspace(kWorkspaceBytes, stream_);

  const SegmentedBuffer buffer(2000 * 48 + 500, 2000, workspace);

  EXPECT_EQ(buffer.segments(), 2000u);
  EXPECT_EQ(buffer.elements(), 2000u * 48);
  EXPECT_LE(buffer.flat_length(), 2000u * 48 + 500);
}

TEST_F(OperationsTest, WhatDoesNotFitIsSaidUntilAllIsGivenBack) {
  Workspace workspace(kWorkspaceBytes, stream_);

  workspace.Normal(kWorkspaceBytes);
  EXPECT_FALSE(workspace.fits());
  workspace.Reset();
  EXPECT_TRUE(workspace.fits());
}

TEST_F(OperationsTest, PatternsFillBuffersToTheirEnds) {
  Workspace workspace(kWorkspaceBytes, stream_);

  const std::vector<float> values = Read(workspace.Positive(200'003));

  const std::size_t zeros = static_cast<std::size_t>(std::ranges::count(values, 0.0f));
  EXPECT_LT(zeros, 10u);
  EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return value >= 0 && value < 10; }));
}

}  // namespace
}  // namespace tactus::bench
