// The double of the CUDA runtime itself: that it runs kernels as they are meant, and finds out
// those that only seem to work.

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda_double {
namespace {

// Device memory of n ints, and what is in it.
class Ints {
 public:
  explicit Ints(std::size_t length) : length_(length) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, length * sizeof(int)), cudaSuccess);
    memory_ = static_cast<int*>(memory);
  }
  ~Ints() { EXPECT_EQ(cudaFree(memory_), cudaSuccess); }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;

  int* get() const { return memory_; }
  std::vector<int> Read() const {
    std::vector<int> values(length_);
    EXPECT_EQ(cudaMemcpy(values.data(), memory_, length_ * sizeof(int), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  int* memory_ = nullptr;
  std::size_t length_ = 0;
};

template <class... Parameters, class... Arguments>
cudaError_t LaunchOn(cudaStream_t stream, dim3 blocks, dim3 threads, void (*kernel)(Parameters...),
                     Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

void RankKernel(int* out) {
  const unsigned rank = blockIdx.x * blockDim.x + threadIdx.x;
  out[rank] = static_cast<int>(rank);
}

// Every thread hands its number to the next one, over shared memory.
void RotateKernel(int* out) {
  __shared__ int numbers[64];
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = numbers[(threadIdx.x + 1) % blockDim.x];
}

void RotateWithoutBarrierKernel(int* out) {
  __shared__ int numbers[64];
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = numbers[(threadIdx.x + 1) % blockDim.x];
}

void WarpSumKernel(int* out) {
  int value = static_cast<int>(threadIdx.x);
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, distance);
  }
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = value;
}

void VotesKernel(int* out) {
  const int odd = static_cast<int>(threadIdx.x % 2);
  out[threadIdx.x] = static_cast<int>(__ballot_sync(0xffffffffu, odd));
  out[threadIdx.x] += __any_sync(0xffffffffu, odd) + __all_sync(0xffffffffu, odd);
}

void EndedLaneKernel() {
  if (threadIdx.x == 5) return;
  __syncwarp();
}

void TwoBarriersKernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

void BarrierAndExchangeKernel() {
  if (threadIdx.x == 0) {
    __syncthreads();
  } else {
    __syncwarp();
  }
}

// What a kernel makes of a view that does not begin where the wider type may.
template <class Wide>
void MisalignedKernel(float* x) {
  const Wide value = *reinterpret_cast<const Wide*>(x);
  *reinterpret_cast<Wide*>(x + 1) = value;
}

void OneKernel(int* out) { *out = 1; }
void TwiceKernel(int* out) { *out *= 2; }

class CudaDoubleTest : public testing::Test {
 protected:
  void SetUp() override { Reset({}); }

  std::vector<int> Run(dim3 blocks, dim3 threads, std::size_t length, void (*kernel)(int*)) {
    const Ints out(length);
    EXPECT_EQ(LaunchOn(nullptr, blocks, threads, kernel, out.get()), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return out.Read();
  }
};

TEST_F(CudaDoubleTest, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);

  EXPECT_EQ(Run(10, 100, 1000, RankKernel), expected);
  Reset({.order = Order::kReverse});
  EXPECT_EQ(Run(10, 100, 1000, RankKernel), expected);
}

TEST_F(CudaDoubleTest, ABarrierSeparatesWhatIsBeforeFromWhatIsAfter) {
  for (const Order order : {Order::kForward, Order::kReverse}) {
    Reset({.order = order});
    const std::vector<int> out = Run(3, 64, 64, RotateKernel);
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], (i + 1) % 64);
  }
}

TEST_F(CudaDoubleTest, AMissingBarrierShows) {
  const std::vector<int> out = Run(3, 64, 64, RotateWithoutBarrierKernel);

  EXPECT_EQ(out[0], -1);  // what shared memory is filled with before each block
  EXPECT_EQ(out[63], 0);
}

TEST_F(CudaDoubleTest, LanesExchangeWithinTheirWarp) {
  EXPECT_EQ(Run(1, 64, 2, WarpSumKernel), (std::vector<int>{496, 1520}));
  const std::vector<int> votes = Run(1, 32, 32, VotesKernel);
  EXPECT_EQ(votes, std::vector<int>(32, static_cast<int>(0xaaaaaaaau) + 1));
}

TEST_F(CudaDoubleTest, ALazyStreamDoesNothingUntilItIsWaitedFor) {
  Reset({.timing = Timing{.schedule = Schedule::kLazy}});
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  int* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), sizeof(int)), cudaSuccess);
  *pinned = 0;

  ASSERT_EQ(LaunchOn(stream, 1, 1, OneKernel, pinned), cudaSuccess);
  EXPECT_EQ(*pinned, 0);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(*pinned, 1);

  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudaDoubleTest, AnEventOrdersTwoStreams) {
  cudaStream_t first = nullptr;
  cudaStream_t second = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  const Ints value(1);

  ASSERT_EQ(LaunchOn(first, 1, 1, OneKernel, value.get()), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, first), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(second, event), cudaSuccess);
  ASSERT_EQ(LaunchOn(second, 1, 1, TwiceKernel, value.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(second), cudaSuccess);

  EXPECT_EQ(value.Read(), std::vector<int>{2});
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
}

TEST_F(CudaDoubleTest, AnOperationOfAnotherDoubleHoldsItsStreamUp) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const Ints value(1);
  bool there = false;  // under the runtime's lock, where attempts run and Queue is called
  Queue(stream, [&there] { return there; });
  ASSERT_EQ(LaunchOn(stream, 1, 1, OneKernel, value.get()), cudaSuccess);
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  Queue(other, [&there] { return there = true; });

  std::thread peer([other] { EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess); });
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  peer.join();

  EXPECT_EQ(value.Read(), std::vector<int>{1});
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(CudaDoubleTest, MoreMemoryThanThereIsCannotBeHad) {
  Reset({.memory_bytes = 1000});
  void* memory = nullptr;

  EXPECT_EQ(cudaMalloc(&memory, 1001), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 1000), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudaDoubleTest, TheNthCallFailsAndNoOther) {
  FailCall("cudaGetDeviceCount", 2, cudaErrorUnknown);
  int count = 0;

  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorUnknown);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
}

TEST_F(CudaDoubleTest, GridsThatADeviceRefusesAreRefused) {
  const Ints out(1);
  EXPECT_EQ(LaunchOn(nullptr, 0, 1, OneKernel, out.get()), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchOn(nullptr, 1, 0, OneKernel, out.get()), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchOn(nullptr, 1, 1025, OneKernel, out.get()), cudaErrorInvalidConfiguration);
  EXPECT_EQ(LaunchOn(nullptr, 1, 1024, OneKernel, out.get()), cudaSuccess);
}

TEST_F(CudaDoubleTest, CopiesMustBeWhatTheyAreCalled) {
  const Ints device(2);
  int host[2] = {};
  EXPECT_EQ(cudaMemcpy(device.get(), host, 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device.get(), host, 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device.get(), host, 8, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(device.get() + 1, host, 4, cudaMemcpyDefault), cudaSuccess);
}

using CudaDoubleDeathTest = CudaDoubleTest;

TEST_F(CudaDoubleDeathTest, TheHostCannotTouchDeviceMemory) {
  const Ints device(1);
  EXPECT_DEATH(*device.get() = 1, "");
}

TEST_F(CudaDoubleDeathTest, WritingBehindTheEndIsFoundOutWhenTheMemoryIsFreed) {
  EXPECT_DEATH(
      {
        const Ints out(9);
        static_cast<void>(LaunchOn(nullptr, 1, 10, RankKernel, out.get()));
      },
      "something wrote behind 36 bytes");
}

TEST_F(CudaDoubleDeathTest, WhatADeviceLeavesUndefinedStopsTheProcess) {
  const auto run = [](void (*kernel)()) {
    static_cast<void>(LaunchOn(nullptr, 1, 64, kernel));
    static_cast<void>(cudaDeviceSynchronize());
  };
  EXPECT_DEATH(run(EndedLaneKernel), "double_test.cc:.*names a lane that has ended");
  EXPECT_DEATH(run(TwoBarriersKernel), "double_test.cc:.*two barriers at once");
  EXPECT_DEATH(run(BarrierAndExchangeKernel), "double_test.cc:.*wait for each other");
}

template <class Wide>
class CudaDoubleAlignmentDeathTest : public CudaDoubleTest {};
using WideTypes = testing::Types<float4, uint4, float2, uint2, double, std::uint64_t>;
TYPED_TEST_SUITE(CudaDoubleAlignmentDeathTest, WideTypes);

TYPED_TEST(CudaDoubleAlignmentDeathTest, AWideAccessThatIsNotAlignedStopsTheProcess) {
  const Ints memory(8);
  float* const floats = reinterpret_cast<float*>(memory.get());
  EXPECT_DEATH(
      {
        static_cast<void>(LaunchOn(nullptr, 1, 1, MisalignedKernel<TypeParam>, floats));
        static_cast<void>(cudaDeviceSynchronize());
      },
      "store to misaligned address");
}

TEST_F(CudaDoubleDeathTest, AResetFindsWhatWasForgotten) {
  const Ints forgotten(1);
  EXPECT_DEATH(Reset({}), "there is device memory");
}

TEST(DoubleTest, AnEventIsRecordedOnStreamsOfItsOwnDeviceAlone) {
  Reset({.devices = 2});
  cudaEvent_t event = nullptr;
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);

  EXPECT_EQ(cudaEventRecord(event, other), cudaErrorInvalidResourceHandle);

  cudaGetLastError();
  cudaStreamDestroy(other);
  cudaEventDestroy(event);
  cudaSetDevice(0);
}

}  // namespace
}  // namespace tactus::cuda_double
