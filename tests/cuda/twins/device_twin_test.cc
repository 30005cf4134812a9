// The CUDA device against the host's: the same calls, the same numbers.

#include <cmath>

#include "cuda/device.h"
#include "cuda/ops/vector.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

constexpr std::size_t kLength = 100'003;

class CudaDeviceTest : public TwinTest {
 protected:
  void SetUp() override {
    TwinTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    OpenedDevice opened = OpenDevice("cuda:0");
    ASSERT_NE(opened.device, nullptr) << opened.reason;
    device_ = std::move(opened.device);
  }

  void TearDown() override {
    device_.reset();
    TwinTest::TearDown();
  }

  Buffer Uploaded(const std::vector<float>& values) {
    Buffer buffer = device_->Allocate(values.size());
    device_->Copy(values, buffer.span());
    return buffer;
  }

  std::vector<float> Read(std::span<const float> values) {
    std::vector<float> read(values.size());
    device_->Copy(values, read);
    device_->Synchronize();
    return read;
  }

  Sums UploadedSums(const std::vector<double>& values) {
    Sums sums = device_->AllocateSums(values.size());
    device_->Copy(values, sums.span());
    return sums;
  }

  std::vector<double> ReadSums(std::span<const double> sums) {
    std::vector<double> read(sums.size());
    device_->Copy(sums, read);
    device_->Synchronize();
    return read;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaDeviceTest, HasTheNameItWasOpenedWith) {
  EXPECT_EQ(device_->Name(), "cuda:0");
  EXPECT_EQ(device_->cuda_index(), 0);
  EXPECT_NE(device_->stream(), nullptr);
}

TEST_F(CudaDeviceTest, BuffersAreAlignedAndZeroAndAsLongAsAsked) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{17}, kLength}) {
    Buffer buffer = device_->Allocate(length);

    EXPECT_EQ(buffer.size(), length);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.span().data()) % 64, 0u);
    ExpectSameBits(Read(buffer.span()), std::vector<float>(length));
    device_->Fill(7, buffer.span());  // what the next one may find
  }
}

TEST_F(CudaDeviceTest, BuffersMoveAndMayOutliveTheirDevice) {
  Buffer buffer = device_->Allocate(8);
  device_.reset();

  const Buffer moved = std::move(buffer);

  EXPECT_EQ(moved.size(), 8u);
}

TEST_F(CudaDeviceTest, VectorOperationsAreThoseOfTheHost) {
  const std::vector<float> x = RandomValues(1, kLength);
  std::vector<float> y = RandomValues(2, kLength);
  Buffer device_x = Uploaded(x);
  Buffer device_y = Uploaded(y);

  device_->Axpy(0.3f, device_x.span(), device_y.span());
  device_->Scale(1.1f, device_y.span().subspan(1));
  device_->Fill(2.5f, device_y.span().first(5));
  host::Axpy(0.3f, x, y);
  host::Scale(1.1f, std::span(y).subspan(1));
  host::Fill(2.5f, std::span(y).first(5));

  ExpectSameBits(Read(device_y.span()), y);
  const double expected = host::SquaredNorm(y);
  Sums sums = device_->AllocateSums(2);
  device_->AddSquaredNorm(device_y.span(), sums.span().first(1));
  device_->AddSquaredNorm(device_y.span(), sums.span().first(1));
  device_->AddSquaredNorm({}, sums.span().last(1));
  EXPECT_NEAR(ReadSums(sums.span())[0], 2 * expected, 2e-12 * expected);
  EXPECT_EQ(ReadSums(sums.span())[1], 0);
  device_->Clear(sums.span().first(1));
  EXPECT_EQ(ReadSums(sums.span())[0], 0);
}

TEST_F(CudaDeviceTest, CopiesBetweenBuffersAreEqual) {
  const std::vector<float> x = RandomValues(1, kLength);
  Buffer from = Uploaded(x);
  Buffer to = device_->Allocate(kLength);

  device_->Copy(from.span(), to.span());
  device_->Fill(0, from.span());

  ExpectSameBits(Read(to.span()), x);
}

TEST_F(CudaDeviceTest, ASourceOnTheHostMayGoAtOnce) {
  Buffer buffer = device_->Allocate(kLength);
  const std::vector<float> x = RandomValues(1, kLength);
  std::vector<float> gone = x;

  device_->Copy(gone, buffer.span());
  gone.assign(kLength, 0.0f);

  ExpectSameBits(Read(buffer.span()), x);
}

TEST_F(CudaDeviceTest, SgdIsThatOfTheHost) {
  const SgdStep step{.learning_rate = 0.1f, .momentum = 0.9f, .nesterov = true};
  const std::vector<float> gradients = RandomValues(1, kLength);
  std::vector<float> parameters = RandomValues(2, kLength);
  std::vector<float> momentum(kLength);
  Buffer device_gradients = Uploaded(gradients);
  Buffer device_parameters = Uploaded(parameters);
  Buffer device_momentum = device_->Allocate(kLength);

  device_->Sgd(step, device_gradients.span(), device_parameters.span(), device_momentum.span());
  host::Sgd(step, gradients, parameters, momentum);

  ExpectSameBits(Read(device_parameters.span()), parameters);
}

TEST_F(CudaDeviceTest, AdamIsThatOfTheHost) {
  const AdamStep step{.learning_rate = 0.1, .weight_decay = 0.1, .decoupled = true};
  const std::vector<float> gradients = RandomValues(1, kLength);
  std::vector<float> parameters = RandomValues(2, kLength);
  std::vector<float> first(kLength);
  std::vector<float> second(kLength);
  Buffer device_gradients = Uploaded(gradients);
  Buffer device_parameters = Uploaded(parameters);
  Buffer device_first = device_->Allocate(kLength);
  Buffer device_second = device_->Allocate(kLength);

  device_->Adam(step, device_gradients.span(), device_parameters.span(), device_first.span(),
                device_second.span());
  host::Adam(step, gradients, parameters, first, second);

  ExpectSameBits(Read(device_parameters.span()), parameters);
}

TEST_F(CudaDeviceTest, LambIsThatOfTheHostForOneTableAndThenAnother) {
  const LambStep step{.learning_rate = 0.1, .weight_decay = 0.1};
  SegmentTable segments = TwinSegments();
  const std::size_t length = FlatLength(segments);
  const std::vector<float> gradients = RandomValues(1, length);
  std::vector<float> parameters = RandomValues(2, length);
  std::vector<float> first(length);
  std::vector<float> second(length);
  Buffer device_gradients = Uploaded(gradients);
  Buffer device_parameters = Uploaded(parameters);
  Buffer device_first = device_->Allocate(length);
  Buffer device_second = device_->Allocate(length);

  for (int i = 0; i < 2; ++i) {
    device_->Lamb(step, segments,
                  {device_gradients.span(), device_parameters.span(), device_first.span(),
                   device_second.span()});
    host::Lamb(step, segments, {gradients, parameters, first, second});
    segments.pop_back();
  }

  const std::vector<float> found = Read(device_parameters.span());
  ExpectSameBits(Read(device_first.span()), first);
  for (std::size_t i = 0; i < length; ++i) {
    // Two steps of at most 0.1 times a ratio that is below 1 here: 1e-6 is ten times their
    // roundings.
    ASSERT_NEAR(found[i], parameters[i], 1e-6 * (1 + std::abs(parameters[i]))) << i;
  }
}

TEST_F(CudaDeviceTest, LambOfPartsIsThatOfTheHost) {
  const LambStep step{.learning_rate = 0.1, .weight_decay = 0.1};
  const SegmentTable segments = TwinSegments();
  const std::size_t length = FlatLength(segments);
  const std::vector<float> gradients = RandomValues(1, length);
  std::vector<float> parameters = RandomValues(2, length);
  std::vector<float> first(length);
  std::vector<float> second(length);
  Buffer device_gradients = Uploaded(gradients);
  Buffer device_parameters = Uploaded(parameters);
  Buffer device_first = device_->Allocate(length);
  Buffer device_second = device_->Allocate(length);
  const LambBuffers buffers{device_gradients.span(), device_parameters.span(), device_first.span(),
                            device_second.span()};
  std::vector<double> sums(kLambSumsPerSegment * segments.size());
  Sums device_sums = device_->AllocateSums(sums.size());

  device_->LambSums(step, segments, buffers, device_sums.span());
  host::LambSums(step, segments, {gradients, parameters, first, second}, sums);
  const std::vector<double> found = ReadSums(device_sums.span());
  device_->Copy(sums, device_sums.span());
  device_->LambOfParts(step, segments, buffers, device_sums.span());
  host::LambOfParts(step, segments, {gradients, parameters, first, second}, sums);

  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto n = static_cast<double>(segments[i / kLambSumsPerSegment].length);
    EXPECT_NEAR(found[i], sums[i], 2 * n * 0x1p-53 * sums[i]) << i;
  }
  ExpectSameBits(Read(device_parameters.span()), parameters);
  ExpectSameBits(Read(device_second.span()), second);
}

TEST_F(CudaDeviceTest, AdasumIsThatOfTheHostInEveryRound) {
  const SegmentTable segments = TwinSegments();
  const std::size_t length = FlatLength(segments);
  std::vector<float> a = RandomValues(1, length);
  const std::vector<float> b = RandomValues(2, length);
  Buffer device_a = Uploaded(a);
  Buffer device_b = Uploaded(b);

  // Halves, as in a reduction by halving, so that tables and staging are used again and again.
  for (int round = 0; round < 6; ++round) {
    const FlatRange range{.offset = round % 2 == 0 ? 0 : length / 2, .length = length / 2};
    const std::vector<SegmentPart> parts = PartsOf(range, segments);
    std::vector<double> sums(segments.size() * kAdasumSumsPerSegment, 0.5);
    std::vector<double> expected = sums;
    const AdasumPair pair{.a = device_a.span().subspan(range.offset, range.length),
                          .b = device_b.span().subspan(range.offset, range.length)};
    const AdasumPair twin{.a = std::span(a).subspan(range.offset, range.length),
                          .b = std::span(b).subspan(range.offset, range.length)};

    Sums device_sums = UploadedSums(sums);
    device_->AdasumPartials(pair, parts, device_sums.span());
    host::AdasumPartials(twin, parts, expected);
    sums = ReadSums(device_sums.span());
    device_->Copy(expected, device_sums.span());
    device_->AdasumCombine(pair, parts, device_sums.span(),
                           device_a.span().subspan(range.offset, range.length));
    host::AdasumCombine(twin, parts, expected, std::span(a).subspan(range.offset, range.length));

    for (std::size_t i = 0; i < sums.size(); ++i) {
      // Of products of normal values: their magnitudes add up to less than their number.
      ASSERT_NEAR(sums[i], expected[i], 5e-12 * static_cast<double>(length)) << i;
    }
    ExpectSameBits(Read(device_a.span()), a);
  }
}

TEST_F(CudaDeviceTest, AStepBehindAGateIsThatOfTheHost) {
  const std::vector<float> gradients = RandomValues(1, kLength);
  std::vector<float> parameters = RandomValues(2, kLength);
  std::vector<float> momentum(kLength);
  std::vector<double> gate(kGateLength);
  Buffer device_gradients = Uploaded(gradients);
  Buffer device_parameters = Uploaded(parameters);
  Buffer device_momentum = device_->Allocate(kLength);
  Sums device_gate = device_->AllocateSums(kGateLength);
  const double nan = std::nan("");
  const double loss = 1;
  Sums device_loss = UploadedSums({loss});

  for (const double norm2 : {2.0, 1e9, nan, 3.0}) {
    const StepGate asked{.samples = 32, .clip_norm = 5};
    Sums device_norm2 = UploadedSums({norm2});
    SgdStep step{.learning_rate = 0.1f, .momentum = 0.9f};
    host::Gate(asked, {.norm2 = {&norm2, 1}, .loss = {&loss, 1}}, gate);
    step.gate = gate.data();
    host::Sgd(step, gradients, parameters, momentum);
    device_->Gate(asked, {.norm2 = device_norm2.span(), .loss = device_loss.span()},
                  device_gate.span());
    step.gate = device_gate.span().data();
    device_->Sgd(step, device_gradients.span(), device_parameters.span(), device_momentum.span());
  }

  ExpectSameBits(Read(device_parameters.span()), parameters);
}

}  // namespace
}  // namespace tactus::cuda
