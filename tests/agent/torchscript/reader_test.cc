#include "agent/torchscript/reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/rng.h"
#include "cuda/device.h"
#include "gtest/gtest.h"

namespace tactus::torchscript {
namespace {

using Indices = std::vector<std::uint64_t>;

// Sample i has the inputs {i, i * i} and the target -i. Counts what is read on which side.
class SquaresData final : public data::Dataset {
 public:
  std::uint64_t size() const override { return 1000; }
  const std::vector<data::TensorSpec>& inputs() const override { return inputs_; }
  const data::TensorSpec& targets() const override { return targets_; }

  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte> targets) const override {
    const bool ahead = std::this_thread::get_id() != caller_;
    ++(ahead ? read_ahead_ : read_by_caller_);
    ASSERT_EQ(inputs.size(), indices.size() * inputs_.front().BytesPerSample());
    ASSERT_EQ(targets.size(), indices.size() * targets_.BytesPerSample());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto index = static_cast<std::int64_t>(indices[i]);
      if (index == broken_) throw std::runtime_error("sample " + std::to_string(index));
      const std::int64_t values[] = {index, index * index, -index};
      std::memcpy(inputs.data() + i * 16, values, 16);
      std::memcpy(targets.data() + i * 8, values + 2, 8);
    }
    if (ahead) on_read_ahead_();
  }

  const std::thread::id caller_ = std::this_thread::get_id();
  const std::vector<data::TensorSpec> inputs_{{.type = data::ElementType::kInt64, .shape = {2}}};
  const data::TensorSpec targets_{.type = data::ElementType::kInt64, .shape = {}};
  std::int64_t broken_ = -1;
  std::function<void()> on_read_ahead_ = [] {};
  mutable std::atomic<int> read_ahead_ = 0;
  mutable std::atomic<int> read_by_caller_ = 0;
};

void ExpectIs(const model::Examples& examples, const Indices& indices) {
  ASSERT_EQ(examples.count, indices.size());
  ASSERT_EQ(examples.inputs.size(), indices.size() * 16);
  ASSERT_EQ(examples.targets.size(), indices.size() * 8);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto index = static_cast<std::int64_t>(indices[i]);
    std::int64_t values[3] = {};
    std::memcpy(values, examples.inputs.data() + i * 16, 16);
    std::memcpy(values + 2, examples.targets.data() + i * 8, 8);
    ASSERT_EQ(values[0], index);
    ASSERT_EQ(values[1], index * index);
    ASSERT_EQ(values[2], -index);
  }
}

class ReaderTest : public testing::Test {
 protected:
  ExampleReader::Options Ahead(std::size_t slots = 3) { return {.ahead = true, .slots = slots}; }

  SquaresData data_;
  std::unique_ptr<cuda::Device> device_ = cuda::MakeHostDevice("cpu:0");
};

TEST_F(ReaderTest, WhereDeviceAndHostAreOneNothingIsReadAhead) {
  ExampleReader reader(data_, *device_);

  EXPECT_FALSE(reader.reads_ahead());
  for (const Indices& indices : {Indices{3, 1, 4}, Indices{1, 5}, Indices{9, 2, 6, 5, 3}}) {
    reader.Expect(indices);
    ExpectIs(reader.Read(indices), indices);
  }
  EXPECT_EQ(data_.read_ahead_, 0);
  EXPECT_EQ(data_.read_by_caller_, 3);
}

TEST_F(ReaderTest, ReadingThatTheCallerWaitsForIsTimed) {
  ExampleReader reader(data_, *device_);
  EXPECT_EQ(reader.waited(), Duration{});

  reader.Read(Indices{3, 1, 4});
  const Duration once = reader.waited();
  reader.Read(Indices{1, 5, 9});

  EXPECT_GT(once, Duration{});
  EXPECT_GT(reader.waited(), once);
}

TEST_F(ReaderTest, WhatWasExpectedIsReadOnceAndByTheThread) {
  ExampleReader reader(data_, *device_, Ahead());

  Indices indices = {0};
  ExpectIs(reader.Read(indices), indices);
  for (std::uint64_t step = 1; step <= 50; ++step) {
    const Indices next = {step, step + 1, 999 - step};
    reader.Expect(next);
    ExpectIs(reader.Read(next), next);
  }

  EXPECT_EQ(data_.read_by_caller_, 1);
  EXPECT_EQ(data_.read_ahead_, 50);
}

// Before and after Expect, whatever becomes of the guess.
TEST_F(ReaderTest, WhatIsReadStaysWhileMoreIsReadAhead) {
  for (const std::size_t slots : {2, 3}) {
    ExampleReader reader(data_, *device_, Ahead(slots));
    for (std::uint64_t step = 0; step < 50; ++step) {
      const Indices indices = {step, 2 * step};
      const model::Examples examples = reader.Read(indices);
      reader.Expect(Indices{step + 1, 7, 8});
      reader.Expect(Indices{step + 1, 2 * step + 2});
      ExpectIs(examples, indices);
    }
  }
}

TEST_F(ReaderTest, AnyMixOfGuessesGivesWhatDirectReadingGives) {
  for (const std::size_t slots : {2, 3, 5}) {
    ExampleReader reader(data_, *device_, Ahead(slots));
    Rng rng(slots);
    Indices next;
    for (int step = 0; step < 2000; ++step) {
      if (next.empty() || rng.Below(4) == 0) {  // not what was expected, or never expected
        next.resize(1 + rng.Below(9));
        for (std::uint64_t& index : next) index = rng.Below(1000);
      }
      const model::Examples examples = reader.Read(next);
      const Indices read = next;
      next.resize(rng.Below(9));
      for (std::uint64_t& index : next) index = rng.Below(1000);
      reader.Expect(next);
      if (rng.Below(8) == 0) reader.Expect(read);
      if (rng.Below(2) == 0) std::this_thread::yield();
      ExpectIs(examples, read);
    }
  }
  EXPECT_GT(data_.read_ahead_, 0);
  EXPECT_GT(data_.read_by_caller_, 0);
}

TEST_F(ReaderTest, AGuessThatComesWhileTheThreadIsBusyIsDropped) {
  std::atomic<bool> goes_on = false;
  data_.on_read_ahead_ = [&] { goes_on.wait(false); };
  const Indices first = {1, 2};
  const Indices second = {3, 4};
  {
    ExampleReader reader(data_, *device_, Ahead());
    reader.Expect(first);
    reader.Expect(second);
    ExpectIs(reader.Read(second), second);
    EXPECT_EQ(data_.read_by_caller_, 1);

    goes_on = true;
    goes_on.notify_all();
    ExpectIs(reader.Read(first), first);
  }

  EXPECT_EQ(data_.read_by_caller_, 1);
  EXPECT_EQ(data_.read_ahead_, 1);
}

TEST_F(ReaderTest, WhatFailsAheadFailsWhereItIsNeeded) {
  data_.broken_ = 13;
  ExampleReader reader(data_, *device_, Ahead());
  const Indices broken = {12, 13};
  const Indices other = {14, 15};

  reader.Expect(broken);
  ExpectIs(reader.Read(other), other);
  reader.Expect(broken);
  EXPECT_THROW(reader.Read(broken), std::runtime_error);
  EXPECT_THROW(reader.Read(broken), std::runtime_error);
  data_.broken_ = -1;
  ExpectIs(reader.Read(broken), broken);
}

TEST_F(ReaderTest, EndsWithAGuessThatNobodyTakes) {
  for (int i = 0; i < 100; ++i) {
    ExampleReader reader(data_, *device_, Ahead());
    reader.Expect(Indices{1, 2, 3});
  }
  EXPECT_EQ(data_.read_by_caller_, 0);
}

}  // namespace
}  // namespace tactus::torchscript
