#include "cuda/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {
namespace {

std::unique_ptr<Device> Host() { return OpenDevice("cpu:0").device; }

void Randomize(Rng& rng, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(rng.Normal());
}

TEST(OpenDeviceTest, EverySlotOfTheHostExists) {
  for (const std::string name : {"cpu:0", "cpu:7", "cpu:2147483647"}) {
    const OpenedDevice opened = OpenDevice(name);

    ASSERT_NE(opened.device, nullptr) << name;
    EXPECT_EQ(opened.device->Name(), name);
    EXPECT_TRUE(opened.reason.empty());
  }
}

TEST(OpenDeviceTest, AnythingElseIsRefusedWithTheNameAndWhatIsExpected) {
  for (const std::string name :
       {"", "cpu", "cpu:", "cpu:-1", "cpu:1x", "cpu: 1", "cpu:+1", "CPU:0", "tpu:0", ":0", "cuda",
        "cuda:", "cuda:0x1", "cpu:99999999999", "cpu:0:0"}) {
    const OpenedDevice opened = OpenDevice(name);

    EXPECT_EQ(opened.device, nullptr) << name;
    EXPECT_EQ(opened.reason, "device '" + name + "' does not exist: expected cpu:N or cuda:N");
  }
}

TEST(OpenDeviceTest, ACudaDeviceIsThereOrThereIsAReasonThatNamesIt) {
  const OpenedDevice opened = OpenDevice("cuda:3");

  EXPECT_EQ(opened.device == nullptr, !opened.reason.empty());
  if (opened.device == nullptr) {
    EXPECT_NE(opened.reason.find("'cuda:3'"), std::string::npos) << opened.reason;
  }
}

class HostBufferTest : public testing::TestWithParam<std::size_t> {};

TEST_P(HostBufferTest, IsAlignedAndZeroAndAsLongAsAsked) {
  Buffer buffer = Host()->Allocate(GetParam());

  EXPECT_EQ(buffer.size(), GetParam());
  EXPECT_EQ(buffer.span().size(), GetParam());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.span().data()) % 64, 0u);
  const std::span<const float> values = std::as_const(buffer).span();
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return value == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Lengths, HostBufferTest,
                         testing::Values(0, 1, 15, 16, 17, 255, 256, 257, 1'000'003));

TEST(HostBufferTest, OutlivesItsDeviceAndMoves) {
  std::unique_ptr<Device> device = Host();
  Buffer buffer = device->Allocate(8);
  device.reset();
  buffer.span()[7] = 3;

  const Buffer moved = std::move(buffer);

  EXPECT_EQ(moved.span()[7], 3);
}

TEST(HostBufferTest, IsZeroAlsoWhereMemoryWasUsedBefore) {
  const std::unique_ptr<Device> device = Host();
  for (int i = 0; i < 10; ++i) {
    Buffer buffer = device->Allocate(1000);
    const std::span<float> values = buffer.span();
    ASSERT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return value == 0; }));
    device->Fill(7, values);
  }
}

TEST(HostBufferDeathTest, StopsTheProcessWhenTheMemoryCannotBeHad) {
  EXPECT_DEATH(Host()->Allocate(~std::size_t{0}), "check failed");
}

TEST(HostBufferTest, OneThatWasNeverAllocatedIsEmpty) {
  Buffer buffer;

  EXPECT_EQ(buffer.size(), 0u);
  EXPECT_TRUE(buffer.span().empty());
}

class HostDeviceTest : public testing::Test {
 protected:
  static constexpr std::size_t kLength = 1000;

  void SetUp() override {
    Rng rng(1);
    for (Buffer* buffer : {&gradients_, &parameters_}) Randomize(rng, buffer->span());
    const std::span<const float> values = parameters_.span();
    twin_.assign(values.begin(), values.end());
  }

  void ExpectParametersAreTheTwin() {
    const std::span<const float> values = parameters_.span();
    EXPECT_TRUE(std::equal(values.begin(), values.end(), twin_.begin(), twin_.end()));
  }

  const std::unique_ptr<Device> device_ = Host();
  Buffer gradients_ = device_->Allocate(kLength);
  Buffer parameters_ = device_->Allocate(kLength);
  Buffer first_ = device_->Allocate(kLength);
  Buffer second_ = device_->Allocate(kLength);
  std::vector<float> twin_;
};

TEST_F(HostDeviceTest, VectorOperationsAreThoseOfTheHost) {
  device_->Axpy(0.3f, gradients_.span(), parameters_.span());
  device_->Scale(1.1f, parameters_.span());
  device_->Synchronize();
  host::Axpy(0.3f, gradients_.span(), twin_);
  host::Scale(1.1f, twin_);

  ExpectParametersAreTheTwin();
  Sums sum = device_->AllocateSums(1);
  device_->AddSquaredNorm(parameters_.span(), sum.span());
  EXPECT_EQ(sum.span()[0], host::SquaredNorm(twin_));
  device_->AddSquaredNorm(parameters_.span(), sum.span());
  EXPECT_EQ(sum.span()[0], 2 * host::SquaredNorm(twin_));
}

TEST_F(HostDeviceTest, FillSetsEveryElement) {
  device_->Fill(2.5f, parameters_.span());
  twin_.assign(kLength, 2.5f);

  ExpectParametersAreTheTwin();
}

TEST_F(HostDeviceTest, ACopyIsEqualAndItsSourceAsBefore) {
  device_->Copy(parameters_.span(), gradients_.span());

  ExpectParametersAreTheTwin();
  const std::span<const float> copy = gradients_.span();
  EXPECT_TRUE(std::equal(copy.begin(), copy.end(), twin_.begin(), twin_.end()));
}

TEST_F(HostDeviceTest, SgdIsThatOfTheHost) {
  const SgdStep step{.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true};
  std::vector<float> momentum_buffer(kLength);

  device_->Sgd(step, gradients_.span(), parameters_.span(), first_.span());
  host::Sgd(step, gradients_.span(), twin_, momentum_buffer);

  ExpectParametersAreTheTwin();
}

TEST_F(HostDeviceTest, AdamIsThatOfTheHost) {
  const AdamStep step{.learning_rate = 0.1, .weight_decay = 0.1, .decoupled = true};
  std::vector<float> first(kLength);
  std::vector<float> second(kLength);

  device_->Adam(step, gradients_.span(), parameters_.span(), first_.span(), second_.span());
  host::Adam(step, gradients_.span(), twin_, first, second);

  ExpectParametersAreTheTwin();
}

TEST_F(HostDeviceTest, LambIsThatOfTheHost) {
  const LambStep step{.learning_rate = 0.1, .weight_decay = 0.1};
  const SegmentTable segments = {{.name = "a", .offset = 0, .length = 300},
                                 {.name = "b", .offset = 304, .length = 600}};
  std::vector<float> first(kLength);
  std::vector<float> second(kLength);

  device_->Lamb(step, segments,
                {gradients_.span(), parameters_.span(), first_.span(), second_.span()});
  host::Lamb(step, segments, {gradients_.span(), twin_, first, second});

  ExpectParametersAreTheTwin();
}

TEST_F(HostDeviceTest, AdasumIsThatOfTheHost) {
  const SegmentPart parts[] = {{.segment = 1, .offset = 10, .length = 500}};
  std::vector<double> sums(6);
  std::vector<double> sums_of_host(6);

  const AdasumPair pair{.a = parameters_.span(), .b = gradients_.span()};
  device_->AdasumPartials(pair, parts, sums);
  device_->AdasumCombine(pair, parts, sums, parameters_.span());
  const AdasumPair twin{.a = twin_, .b = gradients_.span()};
  host::AdasumPartials(twin, parts, sums_of_host);
  host::AdasumCombine(twin, parts, sums_of_host, twin_);

  EXPECT_EQ(sums, sums_of_host);
  EXPECT_GT(sums[4], 0);
  ExpectParametersAreTheTwin();
}

}  // namespace
}  // namespace tactus::cuda
