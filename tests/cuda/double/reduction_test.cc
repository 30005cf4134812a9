// Reductions in one launch: whichever block comes last, the bits are the same, and what they count
// with is as it was.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/ops/adasum.h"
#include "cuda/ops/sign_pack.h"
#include "cuda/ops/vector.h"
#include "tests/cuda/twins/device_chunks.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda {
namespace {

using cuda_double::Order;

// A row of 1,000 short chunks, more than a block has threads, between shorter rows and empty ones.
ChunkTable ManyChunks() {
  ChunkTable table{.first = {0}};
  std::size_t offset = 0;
  for (const std::size_t chunks : {0, 3, 1000, 0, 1, 300, 0}) {
    for (std::size_t i = 0; i < chunks; ++i, offset += 5) {
      table.chunks.push_back({.offset = offset,
                              .length = 5,
                              .segment = static_cast<std::uint32_t>(table.first.size() - 1)});
    }
    table.first.push_back(static_cast<std::uint32_t>(table.chunks.size()));
  }
  return table;
}

// What every reduction gives of the same numbers, twice with the same counters.
std::vector<std::uint64_t> BitsOfAll(Order order) {
  cuda_double::Reset({.order = order});
  const ChunkTable table = ManyChunks();
  const std::size_t rows = table.first.size() - 1;
  const std::size_t n = 5 * table.chunks.size();
  const DeviceChunks chunks(table);
  const DeviceArray<float> a(RandomValues(1, n));
  const DeviceArray<float> b(RandomValues(2, n));
  const DeviceArray<float> whole(RandomValues(3, 50'000));
  const DeviceSums norm(1, ChunksIn(50'000));
  const DeviceSums pairs(std::vector<double>(rows * kAdasumSumsPerSegment),
                         table.chunks.size() * kAdasumSumsPerSegment);
  const DeviceSums norms(rows, table.chunks.size());
  const DeviceArray<float> scales = DeviceArray<float>::OfLength(rows);
  std::vector<std::uint64_t> bits;
  for (int pass = 0; pass < 2; ++pass) {
    kernels::SquaredNorm(nullptr, whole.span(), norm.into());
    kernels::AdasumPartials(nullptr, {.a = a.span(), .b = b.span()}, chunks.view(), pairs.into());
    kernels::SignScales(nullptr, chunks.view(), SignSharing::kTable,
                        {.input = a.span(), .error = b.span()},
                        {.scales = scales.span(), .norms = norms.into()});
    for (const DeviceSums* sums : {&norm, &pairs, &norms}) {
      for (const double sum : sums->Read()) bits.push_back(std::bit_cast<std::uint64_t>(sum));
    }
    for (const float scale : scales.Read()) bits.push_back(std::bit_cast<std::uint32_t>(scale));
  }
  return bits;
}

TEST(ReductionTest, HasTheSameBitsWhicheverBlockComesLast) {
  EXPECT_EQ(BitsOfAll(Order::kForward), BitsOfAll(Order::kReverse));
}

TEST(ReductionTest, OfChunksMoreThanABlockHasThreadsIsTheirSum) {
  cuda_double::Reset({});
  const ChunkTable table = ManyChunks();
  const std::size_t rows = table.first.size() - 1;
  const DeviceChunks chunks(table);
  const DeviceArray<float> ones(std::vector<float>(5 * table.chunks.size(), 1.0f));
  const DeviceArray<float> zeros(std::vector<float>(5 * table.chunks.size()));
  const DeviceArray<float> scales = DeviceArray<float>::OfLength(rows);
  const DeviceSums norms(rows, table.chunks.size());

  kernels::SignScales(nullptr, chunks.view(), SignSharing::kSegment,
                      {.input = ones.span(), .error = zeros.span()},
                      {.scales = scales.span(), .norms = norms.into()});

  EXPECT_EQ(norms.Read(), (std::vector<double>{0, 15, 5000, 0, 5, 1500, 0}));
}

TEST(ReductionTest, IsOneLaunch) {
  cuda_double::Reset({});
  const ChunkTable table = ManyChunks();
  const std::size_t rows = table.first.size() - 1;
  const DeviceChunks chunks(table);
  const DeviceArray<float> x(RandomValues(1, 5 * table.chunks.size()));
  const DeviceArray<float> y(RandomValues(2, 5 * table.chunks.size()));
  const DeviceArray<float> scales = DeviceArray<float>::OfLength(rows);
  const DeviceSums sums(std::vector<double>(3 * rows), 3 * table.chunks.size());
  auto launches = [before = 0]() mutable {
    const int now = cuda_double::Calls("cudaLaunchKernelEx");
    return now - std::exchange(before, now);
  };

  kernels::SquaredNorm(nullptr, x.span(), sums.into());
  EXPECT_EQ(launches(), 1);
  kernels::AdasumPartials(nullptr, {.a = x.span(), .b = y.span()}, chunks.view(), sums.into());
  EXPECT_EQ(launches(), 1);
  kernels::SignScales(nullptr, chunks.view(), SignSharing::kTable,
                      {.input = x.span(), .error = y.span()},
                      {.scales = scales.span(), .norms = sums.into()});
  EXPECT_EQ(launches(), 1);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

}  // namespace
}  // namespace tactus::cuda
