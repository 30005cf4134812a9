// When the double's streams do their work, and what a device that breaks leaves undone.

#include "tests/support/cuda_double/schedule.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda_double {
namespace {

constexpr Timing kLazily{.schedule = Schedule::kLazy};
constexpr Timing kEagerly{.schedule = Schedule::kEager};
Timing Randomly(std::uint64_t seed) { return {.schedule = Schedule::kRandom, .seed = seed}; }

void AddKernel(int* sum, int value) { *sum += value; }

// Two streams of a device, and a number of the host's that kernels change.
class ScheduleTest : public testing::Test {
 protected:
  void Start(const Timing& timing) {
    Reset({.devices = 2, .timing = timing});
    for (cudaStream_t& stream : streams_) {
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    }
    ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&sum_), sizeof(int)), cudaSuccess);
    *sum_ = 0;
  }

  void Stop() {
    for (const cudaStream_t stream : streams_) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(sum_), cudaSuccess);
  }

  cudaError_t Add(cudaStream_t stream, int value) {
    cudaLaunchConfig_t config{};
    config.stream = stream;
    return cudaLaunchKernelEx(&config, AddKernel, sum_, value);
  }

  // What was done after each of some calls.
  std::vector<int> Trace(const Timing& timing) {
    Start(timing);
    std::vector<int> trace;
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(Add(streams_[i % 2], 1), cudaSuccess);
      trace.push_back(*sum_);
    }
    Stop();
    return trace;
  }

  cudaStream_t streams_[2] = {};
  int* sum_ = nullptr;
};

TEST_F(ScheduleTest, WordsAreReadAsTheyAreWritten) {
  for (const std::string text : {"lazy", "eager", "random:0", "random:18446744073709551615"}) {
    const std::optional<Timing> timing = ParseTiming(text);
    ASSERT_TRUE(timing.has_value()) << text;
    EXPECT_EQ(TextOf(*timing), text);
  }
  for (const std::string text : {"", "Lazy", "random:", "random:-1", "random:1x", "eager:1"}) {
    EXPECT_FALSE(ParseTiming(text).has_value()) << text;
  }
  EXPECT_NE(ParseTiming("random")->seed, ParseTiming("random")->seed);
}

TEST_F(ScheduleTest, LazyStreamsDoNothingBeforeAWaitAndEagerOnesAllAtTheCall) {
  EXPECT_EQ(Trace(kLazily), std::vector<int>(8, 0));
  EXPECT_EQ(Trace(kEagerly), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(ScheduleTest, ASeedIsOneOfManyTracesAndAlwaysTheSame) {
  std::set<std::vector<int>> traces;
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    const std::vector<int> trace = Trace(Randomly(seed));
    EXPECT_EQ(Trace(Randomly(seed)), trace) << seed;
    traces.insert(trace);
  }
  EXPECT_GT(traces.size(), 16u);
}

TEST_F(ScheduleTest, AWaitForAnEventDoesNotDoWhatIsBehindIt) {
  Start(kLazily);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(Add(streams_[0], 1), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, streams_[0]), cudaSuccess);
  ASSERT_EQ(Add(streams_[0], 10), cudaSuccess);

  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(*sum_, 1);

  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  Stop();
}

TEST_F(ScheduleTest, APageableSourceIsReadWhenTheCopyRuns) {
  for (const auto& [timing, expected] : {std::pair(kLazily, 2), std::pair(kEagerly, 1)}) {
    Start(timing);
    int source = 1;
    ASSERT_EQ(cudaMemcpyAsync(sum_, &source, sizeof(int), cudaMemcpyDefault, streams_[0]),
              cudaSuccess);
    source = 2;
    ASSERT_EQ(cudaStreamSynchronize(streams_[0]), cudaSuccess);
    EXPECT_EQ(*sum_, expected);
    Stop();
  }
}

TEST_F(ScheduleTest, AWriteFromOrdinaryMemoryEndsBeforeItReachesTheDevice) {
  Start(kLazily);
  int source = 5;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, sizeof(int)), cudaSuccess);
  const auto read = [&](int& found) {
    return cudaMemcpyAsync(&found, memory, sizeof(int), cudaMemcpyDefault, streams_[0]);
  };

  ASSERT_EQ(cudaMemcpy(memory, &source, sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
  source = 7;
  int found = 0;
  ASSERT_EQ(read(found), cudaSuccess);  // on a stream that waits for no default one
  EXPECT_NE(found, 5);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(read(found), cudaSuccess);
  EXPECT_EQ(found, 5);

  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  Stop();
}

TEST_F(ScheduleTest, WhatUsesTheDefaultStreamIsCounted) {
  Start(kLazily);
  int host = 0;

  ASSERT_EQ(Add(streams_[0], 1), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(&host, sum_, sizeof(int), cudaMemcpyDefault, streams_[0]), cudaSuccess);
  EXPECT_EQ(DefaultStreamUses(), 0);
  ASSERT_EQ(cudaMemcpy(&host, sum_, sizeof(int), cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(Add(nullptr, 1), cudaSuccess);
  EXPECT_EQ(DefaultStreamUses(), 2);

  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  Stop();
}

TEST_F(ScheduleTest, AKernelRunsOnTheThreadsDeviceAndOnNoOthersStream) {
  Start(kLazily);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);

  EXPECT_EQ(Add(streams_[0], 1), cudaErrorInvalidResourceHandle);

  Stop();
}

// On a device: launches succeed until somebody asks, and from then on nothing does.
TEST_F(ScheduleTest, ADeviceThatBreaksHasDoneWhatWasBeforeAndFailsEveryCallAfter) {
  Start(kLazily);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  BreakAt(streams_[0], 2, cudaErrorIllegalAddress);

  EXPECT_EQ(Add(streams_[0], 1), cudaSuccess);
  EXPECT_EQ(Add(streams_[0], 10), cudaSuccess);
  EXPECT_EQ(Add(streams_[0], 100), cudaSuccess);
  EXPECT_EQ(Add(streams_[1], 1000), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams_[0]), cudaErrorIllegalAddress);
  EXPECT_EQ(*sum_, 1);

  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(Add(streams_[1], 1), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamSynchronize(streams_[1]), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(memory), cudaErrorIllegalAddress);
  Reset({});  // as a new process
  EXPECT_EQ(DeviceBytes(), 0u);
  EXPECT_EQ(Streams(), 0);
}

TEST_F(ScheduleTest, AnEagerDeviceBreaksAtTheCallAfter) {
  Start(kEagerly);
  BreakAt(streams_[0], 1, cudaErrorLaunchFailure);

  EXPECT_EQ(Add(streams_[0], 1), cudaSuccess);
  EXPECT_EQ(Add(streams_[1], 1), cudaErrorLaunchFailure);
  EXPECT_EQ(*sum_, 0);
  Reset({});
}

}  // namespace
}  // namespace tactus::cuda_double
