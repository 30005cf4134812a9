// The memory of a CUDA device, over the double of the CUDA runtime: where it comes from when there
// is little, and how long what it was filled from must stay.

#include "cuda/cuda_memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/device.h"
#include "tests/support/cuda_double/caching_allocator.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda {
namespace {

using cuda_double::CachingAllocator;
using cuda_double::Reset;
using cuda_double::Schedule;
using cuda_double::Timing;

constexpr std::size_t kLength = 100'000;

std::unique_ptr<Device> Open() {
  OpenedDevice opened = OpenCudaDevice(0);
  EXPECT_NE(opened.device, nullptr) << opened.reason;
  return std::move(opened.device);
}

TEST(CudaBlockTest, ItTakesWhatWasAskedForAndDoublesOnlyWhatIsFree) {
  Reset({.memory_bytes = 10'000});
  const CudaMemory memory(0);
  CudaBlock block(memory);

  block.Get<float>(1000);
  EXPECT_EQ(cuda_double::DeviceBytes(), 4000u);
  block.Get<float>(500);
  EXPECT_EQ(cuda_double::DeviceBytes(), 4000u);
  block.Get<float>(1001);  // twice as much is not there
  EXPECT_EQ(cuda_double::DeviceBytes(), 4000u + 4004u);
}

TEST(CudaBlockTest, ASequenceOfSizesNeedsFewAllocations) {
  Reset({});
  const CudaMemory memory(0);
  CudaBlock block(memory);

  for (std::size_t length = 1; length <= 1000; ++length) block.Get<float>(length);

  EXPECT_LE(cuda_double::Calls("cudaMalloc"), 11);
  EXPECT_LE(cuda_double::DeviceBytes(), 4 * 4000u);
}

TEST(CudaBlockDeathTest, WhatCannotBeHadIsNamed) {
  Reset({.devices = 2, .memory_bytes = 4000});
  const CudaMemory memory(1);
  CudaBlock block(memory);
  EXPECT_DEATH(block.Get<float>(1001), "cuda:1: 4004 numbers of 1 bytes cannot be had: out of");
}

// The thread uses another device, as after a call for that one.
TEST(CudaMemoryTest, WhatIsOfADeviceIsMadeThereWhicheverTheThreadUsed) {
  Reset({.devices = 2});
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  {
    const SegmentPart parts[] = {{.segment = 0, .offset = 0, .length = 1000}};
    const CudaMemory memory(1);
    CudaBlock block(memory);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    CudaEvent event(1);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    CudaTables tables(memory);

    block.Get<float>(10);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    tables.Get(stream, parts, 1);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    event.Record(stream);
    event.Wait();

    EXPECT_GT(cuda_double::DeviceBytes(1), 40u);
    EXPECT_EQ(cuda_double::DeviceBytes(0), 0u);
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// What an operation needs besides its buffers, the first time that it is called.
class ShortMemoryTest : public testing::Test {
 protected:
  using Operation = std::function<void(Device& device, std::span<float> a, std::span<double> sums)>;

  // That it asks for its memory where libtorch's part has all of it.
  void ExpectToAsk(const Operation& operation) {
    Reset({.memory_bytes = 1 << 20});
    const std::unique_ptr<Device> device = Open();
    Buffer a = device->Allocate(kLength);
    Sums sums = device->AllocateSums(3);
    CachingAllocator cache(0);
    device->OnMemoryShort([&cache] { cache.GiveBack(); });

    operation(*device, a.span(), sums.span());
    device->Synchronize();

    EXPECT_GT(cache.asked(), 0);
  }
};

TEST_F(ShortMemoryTest, ANormAsksForThatOfItsSums) {
  ExpectToAsk([](Device& device, std::span<float> a, std::span<double> sums) {
    device.AddSquaredNorm(a, sums.first(1));
  });
}

TEST_F(ShortMemoryTest, LambAsksForThatOfItsTables) {
  ExpectToAsk([](Device& device, std::span<float> a, std::span<double>) {
    constexpr std::size_t kPart = kLength / 4;
    device.Lamb({}, {{.name = "a", .offset = 0, .length = kPart}},
                {.gradients = a.first(kPart),
                 .parameters = a.subspan(kPart, kPart),
                 .first_moment = a.subspan(2 * kPart, kPart),
                 .second_moment = a.subspan(3 * kPart, kPart)});
  });
}

TEST_F(ShortMemoryTest, AdasumAsksForThatOfItsTables) {
  ExpectToAsk([](Device& device, std::span<float> a, std::span<double> sums) {
    const SegmentPart parts[] = {{.segment = 0, .offset = 0, .length = a.size()}};
    device.AdasumCombine({.a = a, .b = a}, parts, sums, a);
  });
}

// The device begins when it is waited for: it then reads tables of which the host has long made
// others, more than are kept.
TEST(CudaTablesTest, ATableIsThereForAsLongAsTheDeviceMayReadIt) {
  constexpr std::size_t kRanges = 150;
  Reset({.timing = Timing{.schedule = Schedule::kLazy}});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(2 * kRanges);
  std::vector<Sums> sums;
  device->Fill(1, a.span());

  for (std::size_t length = 1; length <= kRanges; ++length) {
    const SegmentPart parts[] = {{.segment = 0, .offset = length, .length = length}};
    sums.push_back(device->AllocateSums(3));
    device->AdasumPartials({.a = a.span(), .b = a.span()}, parts, sums.back().span());
  }

  for (std::size_t length = 1; length <= kRanges; ++length) {
    std::vector<double> read(3);
    device->Copy(sums[length - 1].span(), read);
    device->Synchronize();
    ASSERT_EQ(read, std::vector<double>(3, static_cast<double>(length)));
  }
}

TEST(CudaCopyTest, OnlyASourceInOrdinaryMemoryIsWaitedFor) {
  Reset({.timing = Timing{.schedule = Schedule::kLazy}});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(2);
  Buffer b = device->Allocate(2);
  const Array<float> pinned = device->AllocateOnHost<float>(2);
  std::vector<float> source = {1, 2};

  const int waits = cuda_double::Calls("cudaStreamSynchronize");
  device->Copy(pinned.span(), a.span());
  device->Copy(a.span(), b.span());
  EXPECT_EQ(cuda_double::Calls("cudaStreamSynchronize"), waits);
  device->Copy(source, a.span());
  source = {0, 0};

  std::vector<float> read(2);
  device->Copy(a.span(), read);
  device->Synchronize();
  EXPECT_EQ(read, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace tactus::cuda
