#include "tests/cuda/twins/twin_test.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "base/rng.h"

namespace tactus::cuda {
namespace {

constexpr std::size_t kGuardBytes = 256;  // keeps the start aligned
constexpr std::byte kGuard{0x5e};

void Require(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

bool IsGuard(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == kGuard; });
}

}  // namespace

DeviceBytes::DeviceBytes(std::span<const std::byte> values, std::size_t shift_bytes)
    : length_(values.size()), allocated_(shift_bytes + values.size() + 2 * kGuardBytes) {
  void* memory = nullptr;
  Require(cudaMalloc(&memory, allocated_));
  memory_ = static_cast<std::byte*>(memory);
  start_ = memory_ + kGuardBytes + shift_bytes;
  std::vector<std::byte> image(allocated_, kGuard);
  std::copy(values.begin(), values.end(), image.data() + (start_ - memory_));
  Require(cudaMemcpy(memory_, image.data(), allocated_, cudaMemcpyHostToDevice));
  // The call ends when `image` is read, and tests' streams do not wait for the default one.
  Require(cudaDeviceSynchronize());
}

DeviceBytes::~DeviceBytes() {
  if (memory_ != nullptr) Require(cudaFree(memory_));
}

DeviceBytes::DeviceBytes(DeviceBytes&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      start_(other.start_),
      length_(other.length_),
      allocated_(other.allocated_) {}

std::vector<std::byte> DeviceBytes::Read() const {
  std::vector<std::byte> image(allocated_);
  Require(cudaDeviceSynchronize());
  Require(cudaMemcpy(image.data(), memory_, allocated_, cudaMemcpyDeviceToHost));
  const std::size_t head = static_cast<std::size_t>(start_ - memory_);
  EXPECT_TRUE(IsGuard(std::span(image).first(head))) << "written before the start";
  EXPECT_TRUE(IsGuard(std::span(image).subspan(head + length_))) << "written behind the end";
  const auto from = image.begin() + static_cast<std::ptrdiff_t>(head);
  return {from, from + static_cast<std::ptrdiff_t>(length_)};
}

void TwinTest::SetUp() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string reason = WhyNoDevice(std::string(test.test_suite_name()) + "." + test.name());
  if (!reason.empty()) {
    ASSERT_EQ(std::getenv("TACTUS_REQUIRE_GPU"), nullptr) << reason;
    GTEST_SKIP() << "no GPU: " << reason;
  }
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
}

void TwinTest::TearDown() {
  if (stream_ == nullptr) return;
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
}

std::vector<float> RandomValues(std::uint64_t seed, std::size_t length, float scale) {
  Rng rng(seed);
  std::vector<float> values(length);
  for (float& value : values) value = scale * static_cast<float>(rng.Normal());
  return values;
}

void ExpectSameBits(std::span<const float> found, std::span<const float> expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << found[i] << " instead of " << expected[i] << " at " << i;
  }
}

}  // namespace tactus::cuda
