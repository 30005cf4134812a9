// The CUDA device where things go wrong, over the double of the CUDA runtime.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda {
namespace {

using cuda_double::FailCall;
using cuda_double::Reset;

// Waits for the device.
std::vector<double> Read(Device& device, std::span<const double> sums) {
  std::vector<double> read(sums.size());
  device.Copy(sums, read);
  device.Synchronize();
  return read;
}

double SquaredNorm(Device& device, std::span<const float> x) {
  Sums sum = device.AllocateSums(1);
  device.AddSquaredNorm(x, sum.span());
  return Read(device, sum.span()).front();
}

std::unique_ptr<Device> Open() {
  OpenedDevice opened = OpenCudaDevice(0);
  EXPECT_NE(opened.device, nullptr) << opened.reason;
  return std::move(opened.device);
}

// A round's gate looks when the device comes to it, not when it is queued.
TEST(CudaDeviceGateTest, SeesAGroupThatWasLostAfterItWasQueued) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Array<std::uint32_t> lost = device->AllocateOnHost<std::uint32_t>(1);
  Sums norm2 = device->AllocateSums(1);
  Buffer lanes = device->Allocate(2);
  Sums gate = device->AllocateSums(kRoundGateLength);
  device->Fill(4, lanes.span().first(1));
  for (const std::uint32_t raised : {0u, 1u}) {
    std::atomic<bool> turn = false;
    cuda_double::Queue(device->stream(), [&turn] { return turn.load(); });
    device->GateRound({.samples = 4, .divisor = 4},
                      {.norm2 = norm2.span(),
                       .samples = lanes.span().first(1),
                       .nonfinite = lanes.span().last(1),
                       .lost = lost.span().data()},
                      gate.span());
    lost.span()[0] = raised;
    turn = true;
    cuda_double::Wake();

    const std::vector<double> row = Read(*device, gate.span());

    EXPECT_EQ(row[kRoundGateLost], raised);
    EXPECT_EQ(row[kGateOpen], 1 - raised);
  }
}

TEST(OpenCudaDeviceTest, WithoutADeviceThereIsTheDriversReason) {
  Reset({.devices = 0});
  EXPECT_EQ(OpenCudaDevice(0).reason,
            "device 'cuda:0' cannot be used: no CUDA-capable device is detected");

  Reset({.devices = 0, .no_device = cudaErrorInsufficientDriver});
  EXPECT_EQ(OpenCudaDevice(1).reason,
            "device 'cuda:1' cannot be used: CUDA driver version is insufficient for CUDA runtime "
            "version");
}

TEST(OpenCudaDeviceTest, AnIndexBeyondTheLastIsRefusedWithTheNumberOfDevices) {
  Reset({.devices = 2});
  EXPECT_EQ(OpenDevice("cuda:2").reason,
            "device 'cuda:2' cannot be used: the driver finds 2 devices, counted from 0");
  const OpenedDevice last = OpenDevice("cuda:1");
  ASSERT_NE(last.device, nullptr) << last.reason;
  EXPECT_EQ(last.device->Name(), "cuda:1");
}

TEST(OpenCudaDeviceTest, WhateverFailsOnTheWayIsTheReasonAndNothingIsLeft) {
  for (const std::string call : {"cudaGetDeviceCount", "cudaSetDevice", "cudaStreamCreateWithFlags",
                                 "cudaLaunchKernelEx", "cudaStreamSynchronize"}) {
    Reset({});
    FailCall(call, 1, cudaErrorDevicesUnavailable);

    const OpenedDevice opened = OpenCudaDevice(0);

    EXPECT_EQ(opened.device, nullptr) << call;
    EXPECT_EQ(opened.reason,
              "device 'cuda:0' cannot be used: CUDA-capable device(s) is/are busy or unavailable");
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << call;
    EXPECT_EQ(cuda_double::Streams(), 0) << call;
  }
}

TEST(OpenCudaDeviceTest, ADeviceForWhichThereIsNoCodeIsRefused) {
  Reset({});
  FailCall("cudaLaunchKernelEx", 1, cudaErrorNoKernelImageForDevice);

  EXPECT_EQ(OpenCudaDevice(0).reason,
            "device 'cuda:0' cannot be used: no kernel image is available for execution on the "
            "device");
}

TEST(CudaDeviceLifeTest, EverythingIsFreedWithTheDeviceAndItsBuffers) {
  Reset({});
  {
    const std::unique_ptr<Device> device = Open();
    Buffer a = device->Allocate(1000);
    Buffer b = device->Allocate(1000);
    const SegmentPart parts[] = {{.segment = 0, .offset = 0, .length = 1000}};
    Sums sums = device->AllocateSums(3);
    const Array<double> on_host = device->AllocateOnHost<double>(3);
    const std::unique_ptr<Mark> mark = device->MakeMark();
    EXPECT_EQ(cuda_double::PinnedBytes(), 24u);
    device->AddSquaredNorm(a.span(), sums.span().first(1));
    device->AdasumPartials({.a = a.span(), .b = b.span()}, parts, sums.span());
    device->AdasumCombine({.a = a.span(), .b = b.span()}, parts, sums.span(), a.span());
    EXPECT_GT(cuda_double::DeviceBytes(), 8000u);
  }

  EXPECT_EQ(cuda_double::DeviceBytes(), 0u);
  EXPECT_EQ(cuda_double::PinnedBytes(), 0u);
  EXPECT_EQ(cuda_double::Streams(), 0);
  EXPECT_EQ(cuda_double::Events(), 0);
}

TEST(CudaDeviceLifeTest, ABufferThatOutlivesItsDeviceIsFreedAtItsOwnEnd) {
  Reset({});
  {
    std::unique_ptr<Device> device = Open();
    const Buffer buffer = device->Allocate(1000);
    device.reset();
    EXPECT_EQ(cuda_double::DeviceBytes(), 4000u);
  }
  EXPECT_EQ(cuda_double::DeviceBytes(), 0u);
}

TEST(CudaDeviceMemoryTest, WhatIsInUseIsWhatAllHaveTaken) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  const std::uint64_t before = device->MemoryUsed();
  const Buffer buffer = device->Allocate(100'000);

  EXPECT_GE(device->MemoryUsed(), before + 400'000);
}

TEST(CudaDeviceMemoryTest, RepeatedOperationsAllocateNothing) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(100'000);
  Buffer b = device->Allocate(100'000);
  const SegmentPart parts[] = {{.segment = 0, .offset = 0, .length = 60'000},
                               {.segment = 1, .offset = 60'000, .length = 100}};
  Sums sums = device->AllocateSums(6);
  const auto round = [&] {
    device->Clear(sums.span());
    device->AddSquaredNorm(a.span(), sums.span().first(1));
    device->AdasumPartials({.a = a.span(), .b = b.span()}, parts, sums.span());
    device->AdasumCombine({.a = a.span(), .b = b.span()}, parts, sums.span(), a.span());
  };
  for (int i = 0; i < 8; ++i) round();
  const int allocations = cuda_double::Calls("cudaMalloc");

  for (int i = 0; i < 8; ++i) round();

  EXPECT_EQ(cuda_double::Calls("cudaMalloc"), allocations);
  EXPECT_EQ(cuda_double::Calls("cudaMallocHost"), 0);
}

TEST(CudaDeviceMemoryTest, MoreRangesThanTablesAreKeptAreStillRight) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(1000);
  device->Fill(1, a.span());

  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t length = 1; length <= 100; ++length) {
      const SegmentPart parts[] = {{.segment = 0, .offset = length, .length = length}};
      Sums sums = device->AllocateSums(3);
      device->AdasumPartials({.a = a.span(), .b = a.span()}, parts, sums.span());
      ASSERT_EQ(Read(*device, sums.span())[1], static_cast<double>(length));
    }
  }
}

TEST(CudaDeviceOrderTest, SumsAreReadByWhatIsQueuedBehindThemWithoutAWait) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(16);
  Buffer b = device->Allocate(16);
  Sums sums = device->AllocateSums(3);
  const SegmentPart parts[] = {{.segment = 0, .offset = 0, .length = 16}};
  const AdasumPair pair{.a = a.span(), .b = b.span()};

  for (int i = 1; i <= 3; ++i) {  // equal operands give their mean, again and again
    device->Fill(static_cast<float>(i), a.span());
    device->Fill(static_cast<float>(i), b.span());
    device->Clear(sums.span());
    device->AdasumPartials(pair, parts, sums.span());
    device->AdasumCombine(pair, parts, sums.span(), a.span());
  }

  EXPECT_EQ(SquaredNorm(*device, a.span()), 16 * 9);
}

TEST(CudaDeviceOrderTest, AMarkIsReachedWhenWhatWasQueuedBeforeItIsDone) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(16);
  Array<float> from = device->AllocateOnHost<float>(16);
  const std::unique_ptr<Mark> mark = device->MakeMark();
  mark->Wait();  // nothing was marked

  std::ranges::fill(from.span(), 2.0f);
  device->Copy(from.span(), a.span());
  mark->Record();
  mark->Wait();
  std::ranges::fill(from.span(), 3.0f);  // the copy is through

  EXPECT_EQ(SquaredNorm(*device, a.span()), 16 * 4);
}

// A stray call there, of whichever library, neither holds the device up nor waits for it.
TEST(CudaDeviceOrderTest, TheDefaultStreamIsLeftAloneAndNotWaitedFor) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(100);
  Buffer b = device->Allocate(100);
  Sums sums = device->AllocateSums(3);
  const SegmentPart parts[] = {{.segment = 0, .offset = 0, .length = 100}};
  const SegmentTable segments = {{.name = "a", .offset = 0, .length = 100}};
  std::atomic<bool> over = false;
  cuda_double::Queue(nullptr, [&over] { return over.load(); });

  device->Fill(1, a.span());
  device->Copy(a.span(), b.span());
  device->Clear(sums.span());
  device->AddSquaredNorm(a.span(), sums.span().first(1));
  device->AdasumPartials({.a = a.span(), .b = b.span()}, parts, sums.span());
  device->Lamb({}, segments, {a.span(), b.span(), a.span(), b.span()});
  device->Synchronize();

  EXPECT_EQ(cuda_double::DefaultStreamUses(), 0);
  over = true;
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(CudaDeviceDeathTest, OutOfMemoryStopsTheProcessWithWhatWasAskedFor) {
  Reset({.memory_bytes = 4096});
  const std::unique_ptr<Device> device = Open();
  EXPECT_DEATH(device->Allocate(2000),
               "cuda: cuda:0: 2000 numbers of 4 bytes cannot be had: out of memory");
  EXPECT_DEATH(device->Allocate(~std::size_t{0}), "cannot be had: out of memory");
}

TEST(CudaDeviceMemoryTest, WhoKeepsMemoryIsAskedForItBeforeItCannotBeHad) {
  Reset({.memory_bytes = 8192});
  const std::unique_ptr<Device> device = Open();
  void* kept = nullptr;
  ASSERT_EQ(cudaMalloc(&kept, 6000), cudaSuccess);
  int asked = 0;
  device->OnMemoryShort([&] {
    ++asked;
    cudaFree(kept);
  });

  const Buffer buffer = device->Allocate(1000);

  EXPECT_EQ(asked, 1);
  EXPECT_EQ(buffer.size(), 1000u);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(CudaDeviceDeathTest, AnOperationThatCannotBeQueuedStopsTheProcess) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer buffer = device->Allocate(100);
  FailCall("cudaLaunchKernelEx", 1, cudaErrorLaunchFailure);

  EXPECT_DEATH(device->Fill(1, buffer.span()),
               "cuda: cudaLaunchKernelEx: unspecified launch failure .cudaErrorLaunchFailure.");
}

TEST(CudaDeviceDeathTest, ABrokenDeviceStopsTheProcessAtTheNextCallWhicheverItIs) {
  Reset({});
  std::unique_ptr<Device> device = Open();
  Buffer buffer = device->Allocate(100);
  cuda_double::BreakDevices(cudaErrorECCUncorrectable);

  EXPECT_DEATH(device->Synchronize(), "cuda: .*uncorrectable ECC error");
  EXPECT_DEATH(device->MakeMark(), "cuda: .*uncorrectable ECC error");
  EXPECT_DEATH(device->Scale(2, buffer.span()), "cuda: .*uncorrectable ECC error");
  EXPECT_DEATH(device->Allocate(1), "cuda: .*uncorrectable ECC error");
  cuda_double::BreakDevices(cudaSuccess);
}

// Every operation takes a microsecond here; between the two marks there are three and a mark.
TEST(CudaDeviceOrderTest, AMarksTimeIsThatOfALaterOneLessWhatWasBetween) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(16);
  const std::unique_ptr<Mark> first = device->MakeMark();
  const std::unique_ptr<Mark> later = device->MakeMark();

  first->Record();
  for (int i = 0; i < 3; ++i) device->Fill(1, a.span());
  later->Record();
  later->Wait();

  const auto at = [](int microseconds) { return Instant(std::chrono::microseconds(microseconds)); };
  EXPECT_EQ(first->ReachedAt(at(0), *later, at(100)), at(96));
  EXPECT_EQ(first->ReachedAt(at(98), *later, at(100)), at(98));  // not before it was set
}

TEST(CudaDeviceDeathTest, PartsBeyondTheRangeAreRefused) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer a = device->Allocate(10);
  const SegmentPart parts[] = {{.segment = 0, .offset = 5, .length = 6}};
  Sums sums = device->AllocateSums(3);
  const SegmentTable segments = {{.name = "a", .offset = 0, .length = 11}};

  EXPECT_DEATH(device->AdasumPartials({.a = a.span(), .b = a.span()}, parts, sums.span()),
               "check failed");
  EXPECT_DEATH(device->Lamb({}, segments, {a.span(), a.span(), a.span(), a.span()}),
               "check failed");
}

}  // namespace
}  // namespace tactus::cuda
