// The part of libtorch's allocator, which keeps what tensors have let go of: after a batch or two
// all memory of a device is its own, and others get some only when it gives back what nobody uses.

#pragma once

#include <gtest/gtest.h>

#include <cstddef>

#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::cuda_double {

class CachingAllocator {
 public:
  explicit CachingAllocator(int device) : device_(device) { TakeAll(); }
  ~CachingAllocator() { Free(); }
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // Keeps whatever nobody has.
  void TakeAll() {
    Free();
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(cudaSetDevice(device_), cudaSuccess);
    EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&kept_, free), cudaSuccess);
  }

  // What Device::OnMemoryShort is to call.
  void GiveBack() {
    ++asked_;
    Free();
  }

  int asked() const { return asked_; }

 private:
  void Free() {
    EXPECT_EQ(cudaFree(kept_), cudaSuccess);
    kept_ = nullptr;
  }

  const int device_;
  void* kept_ = nullptr;
  int asked_ = 0;
};

}  // namespace tactus::cuda_double
