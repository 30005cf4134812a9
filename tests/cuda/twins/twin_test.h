// Kernels against their host loops. These tests are compiled twice: against the double of the CUDA
// runtime, which runs in every build (cuda_double_test), and against the real one, where a device
// is needed (cuda_gpu_test, label gpu).

#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/ops/stream.h"

namespace tactus::cuda {

// The lengths at which kernels are tried: around warps, vectors, blocks and chunks, and a large
// one.
inline constexpr std::size_t kTwinLengths[] = {0,    1,    3,    31,   32,   33,     1023,
                                               1024, 1025, 8191, 8192, 8193, 300'007};
// Elements by which a view is moved off its buffer's aligned start.
inline constexpr std::size_t kShifts[] = {0, 1, 3};

// What stands between a test and its device; empty if nothing does. For the double: starts it anew,
// with an order of threads that depends on `test`.
std::string WhyNoDevice(const std::string& test);

// Elements in device memory, between guard words, `shift` elements off an aligned address.
class DeviceBytes {
 public:
  DeviceBytes(std::span<const std::byte> values, std::size_t shift_bytes);
  ~DeviceBytes();
  DeviceBytes(DeviceBytes&& other) noexcept;
  DeviceBytes& operator=(DeviceBytes&&) = delete;

  std::byte* get() const { return start_; }
  // What is there now; waits for everything queued on any stream. Fails the test where a guard
  // word has changed.
  std::vector<std::byte> Read() const;

 private:
  std::byte* memory_ = nullptr;
  std::byte* start_ = nullptr;
  std::size_t length_ = 0;
  std::size_t allocated_ = 0;
};

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values, std::size_t shift = 0)
      : bytes_(std::as_bytes(std::span(values)), shift * sizeof(T)), length_(values.size()) {}
  // `length` elements of which every bit is set: nobody reads them by mistake and is right.
  static DeviceArray OfLength(std::size_t length, std::size_t shift = 0) {
    std::vector<T> values(length);
    std::ranges::fill(std::as_writable_bytes(std::span(values)), std::byte{0xff});
    return DeviceArray(values, shift);
  }

  std::span<T> span() const { return {reinterpret_cast<T*>(bytes_.get()), length_}; }
  std::vector<T> Read() const {
    const std::vector<std::byte> bytes = bytes_.Read();
    std::vector<T> values(length_);
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
    return values;
  }

 private:
  DeviceBytes bytes_;
  std::size_t length_;
};

// Opens the device, or skips the test; a machine that sets TACTUS_REQUIRE_GPU fails instead.
class TwinTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Stream stream_ = nullptr;
};

// One of kTwinLengths and one of kShifts.
class TwinLengthTest : public TwinTest,
                       public testing::WithParamInterface<std::tuple<std::size_t, std::size_t>> {
 protected:
  std::size_t length() const { return std::get<0>(GetParam()); }
  std::size_t shift() const { return std::get<1>(GetParam()); }
};

// `length` normal values times `scale`.
std::vector<float> RandomValues(std::uint64_t seed, std::size_t length, float scale = 1);

// Fails the test at the first element whose bits differ. NaNs are alike: which one comes out of an
// operation IEEE 754 leaves open.
void ExpectSameBits(std::span<const float> found, std::span<const float> expected);

}  // namespace tactus::cuda
