// A CUDA device that breaks: who goes on says so and stops the process, who lets go does not.

#include "cuda/lost_device.cuh"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "cuda/device.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda {
namespace {

using cuda_double::BreakAt;
using cuda_double::Reset;

std::unique_ptr<Device> Open() {
  OpenedDevice opened = OpenCudaDevice(0);
  EXPECT_NE(opened.device, nullptr) << opened.reason;
  return std::move(opened.device);
}

// A device whose second operation from now breaks it, with both of them queued and met.
void Break(Device& device, std::span<float> buffer) {
  BreakAt(device.stream(), 2, cudaErrorIllegalAddress);
  device.Fill(1, buffer);
  device.Fill(2, buffer);
  EXPECT_EQ(cudaStreamSynchronize(device.stream()), cudaErrorIllegalAddress);
}

TEST(LostDeviceDeathTest, TheNextOperationSaysSoAndStops) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  Buffer buffer = device->Allocate(100);
  const auto queue = [&] {
    BreakAt(device->stream(), 2, cudaErrorIllegalAddress);
    device->Fill(1, buffer.span());
    device->Fill(2, buffer.span());
  };

  EXPECT_DEATH(
      {
        queue();
        device->Synchronize();
      },
      "cuda: cuda.*: an illegal memory access .* .cudaErrorIllegalAddress.");
  EXPECT_DEATH(
      {
        Break(*device, buffer.span());
        device->Scale(2, buffer.span());
      },
      "cuda: cudaSetDevice: an illegal memory access");
}

// As libtorch meets the error, throws, and the worker leaves in good order: all that is left are
// destructors.
TEST(LostDeviceDeathTest, WhatOnlyLetsGoHasNothingToAdd) {
  Reset({});
  EXPECT_EXIT(
      {
        {
          const std::unique_ptr<Device> device = Open();
          const std::unique_ptr<Mark> mark = device->MakeMark();
          Buffer buffer = device->Allocate(100);
          const Array<float> pinned = device->AllocateOnHost<float>(10);
          device->AddSquaredNorm(buffer.span(), device->AllocateSums(1).span());
          mark->Record();
          Break(*device, buffer.span());
          mark->Wait();
          mark->Record();
          mark->Wait();
        }
        std::_Exit(device_is_lost ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(LostDeviceDeathTest, AMarkThatFailsForAnotherReasonStopsTheProcess) {
  Reset({});
  const std::unique_ptr<Device> device = Open();
  const std::unique_ptr<Mark> mark = device->MakeMark();
  cuda_double::FailCall("cudaEventRecord", 1, cudaErrorInvalidResourceHandle);

  EXPECT_DEATH(mark->Record(), "cuda: cudaEventRecord: invalid resource handle");
}

}  // namespace
}  // namespace tactus::cuda
