// The reader's memory on a device, over the double of the CUDA runtime: there a copy is made only
// when somebody waits for it, so that memory that is used again too early shows.

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "agent/torchscript/reader.h"
#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::torchscript {
namespace {

// Sample i is the number i.
class NumbersData final : public data::Dataset {
 public:
  std::uint64_t size() const override { return 100000; }
  const std::vector<data::TensorSpec>& inputs() const override { return inputs_; }
  const data::TensorSpec& targets() const override { return spec_; }
  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto value = static_cast<float>(indices[i]);
      std::memcpy(inputs.data() + i * sizeof(value), &value, sizeof(value));
    }
    std::memcpy(targets.data(), inputs.data(), inputs.size());
  }

 private:
  const data::TensorSpec spec_{.type = data::ElementType::kFloat32, .shape = {}};
  const std::vector<data::TensorSpec> inputs_{spec_};
};

std::span<const float> Floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Batches of growing and shrinking sizes, whose copies are all queued before the first is looked
// at.
void CopyAndCompare(cuda::Device& device, ExampleReader& reader, bool guess_right) {
  std::deque<cuda::Buffer> copies;
  std::vector<std::vector<std::uint64_t>> batches;
  for (std::uint64_t step = 0; step < 40; ++step) {
    std::vector<std::uint64_t>& batch = batches.emplace_back(1 + step * 7 % 20);
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i] = 100 * step + i;
  }
  for (std::size_t step = 0; step < batches.size(); ++step) {
    const model::Examples examples = reader.Read(batches[step]);
    copies.push_back(device.Allocate(batches[step].size()));
    if (step + 1 < batches.size()) reader.Expect(batches[guess_right ? step + 1 : 0]);
    device.Copy(Floats(examples.inputs), copies.back().span());
  }

  for (std::size_t step = 0; step < batches.size(); ++step) {
    std::vector<float> values(batches[step].size());
    device.Copy(copies[step].span(), values);
    device.Synchronize();
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], static_cast<float>(batches[step][i])) << "step " << step;
    }
  }
}

// A wait for the device is one for the members that a collective on it waits for.
TEST(ReaderOnDeviceTest, ABatchThatGrowsDoesNotWaitForTheDevice) {
  cuda_double::Reset({});
  const NumbersData data;
  const cuda::OpenedDevice opened = cuda::OpenDevice("cuda:0");
  ASSERT_NE(opened.device, nullptr) << opened.reason;
  ExampleReader reader(data, *opened.device, {.ahead = false});
  cuda::Buffer on_device = opened.device->Allocate(1);

  std::vector<std::uint64_t> batch;
  const int freed = cuda_double::Calls("cudaFreeHost");
  for (std::uint64_t sample = 0; sample < 40; ++sample) {
    batch.push_back(sample);
    const model::Examples examples = reader.Read(batch);
    opened.device->Copy(Floats(examples.inputs).first(1), on_device.span());
  }

  EXPECT_EQ(cuda_double::Calls("cudaFreeHost"), freed);
}

TEST(ReaderOnDeviceTest, MemoryIsUsedAgainOnlyWhenTheDeviceIsThroughWithIt) {
  cuda_double::Reset({});
  const NumbersData data;
  {
    const cuda::OpenedDevice opened = cuda::OpenDevice("cuda:0");
    ASSERT_NE(opened.device, nullptr) << opened.reason;
    for (const bool guess_right : {true, false}) {
      for (const std::size_t slots : {2, 3}) {
        ExampleReader reader(data, *opened.device, {.ahead = true, .slots = slots});
        CopyAndCompare(*opened.device, reader, guess_right);
      }
      ExampleReader plain(data, *opened.device, {.ahead = false});
      CopyAndCompare(*opened.device, plain, guess_right);
    }
  }
  EXPECT_EQ(cuda_double::PinnedBytes(), 0u);
  EXPECT_EQ(cuda_double::Events(), 0);
}

TEST(ReaderOnDeviceTest, ReadsAheadIntoPinnedMemory) {
  cuda_double::Reset({});
  const NumbersData data;
  const cuda::OpenedDevice opened = cuda::OpenDevice("cuda:0");
  ASSERT_NE(opened.device, nullptr) << opened.reason;
  const std::size_t before = cuda_double::PinnedBytes();
  ExampleReader reader(data, *opened.device);

  reader.Read(std::vector<std::uint64_t>{1, 2, 3});

  EXPECT_TRUE(reader.reads_ahead());
  EXPECT_GE(cuda_double::PinnedBytes(), before + 2 * 3 * sizeof(float));
}

}  // namespace
}  // namespace tactus::torchscript
