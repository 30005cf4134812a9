#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cuda/ops/lamb.h"
#include "cuda/ops/round_gate.h"
#include "cuda/ops/rows.h"
#include "cuda/ops/step_gate.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class RowsKernelTest : public TwinTest {
 protected:
  static std::vector<double> Row(std::uint64_t seed, std::size_t length) {
    const std::vector<float> values = RandomValues(seed, length, 3);
    std::vector<double> row(values.begin(), values.end());
    for (double& value : row) value /= 3;  // with bits that a float32 has not
    return row;
  }
};

TEST_F(RowsKernelTest, RowsOfEveryLengthAreAddedAndConvertedToTheSameBits) {
  for (const std::size_t length : {0u, 1u, 31u, 255u, 256u, 257u, 3000u}) {
    const std::vector<double> lower = Row(1, length);
    const std::vector<double> higher = Row(2, length);
    const DeviceArray<double> a(lower);
    const DeviceArray<double> b(higher);
    const DeviceArray<float> narrow = DeviceArray<float>::OfLength(length, 1);
    const DeviceArray<double> wide = DeviceArray<double>::OfLength(length);
    std::vector<double> sum(length);
    std::vector<float> rounded(length);
    std::vector<double> widened(length);

    kernels::AddRows(stream_, a.span(), b.span(), a.span());
    kernels::Narrow(stream_, a.span(), narrow.span());
    kernels::Widen(stream_, narrow.span(), wide.span());
    host::AddRows(lower, higher, sum);
    host::Narrow(sum, rounded);
    host::Widen(rounded, widened);

    EXPECT_EQ(a.Read(), sum);
    ExpectSameBits(narrow.Read(), rounded);
    EXPECT_EQ(wide.Read(), widened);
  }
}

TEST_F(RowsKernelTest, WhatIsNotFiniteIsCountedOntoWhatIsThere) {
  std::vector<double> values = Row(1, 1000);
  for (const std::size_t at : {0u, 255u, 256u, 999u}) values[at] = at % 2 == 0 ? kInfinity : NAN;
  const DeviceArray<double> row(values);
  const DeviceArray<double> count(std::vector<double>{2});
  double expected = 2;

  kernels::CountNonFinite(stream_, row.span(), count.span());
  host::CountNonFinite(values, {&expected, 1});

  EXPECT_EQ(count.Read().front(), 6);
  EXPECT_EQ(expected, 6);
}

TEST_F(RowsKernelTest, AGateGivesTheSameBits) {
  std::vector<double> gate(kGateLength);
  const DeviceArray<double> device_gate(gate);
  for (const double norm2 : {7.0, 0.0, 1e12, kInfinity, 1e-300, static_cast<double>(NAN)}) {
    for (const StepGate& step :
         {StepGate{.samples = 7}, StepGate{.samples = 3, .clip_norm = 0.7}}) {
      for (const double loss : {0.5, kInfinity}) {
        const DeviceArray<double> device_norm2(std::vector<double>{norm2});
        const DeviceArray<double> device_loss(std::vector<double>{loss});
        kernels::Gate(stream_, step, {.norm2 = device_norm2.span(), .loss = device_loss.span()},
                      device_gate.span());
        host::Gate(step, {.norm2 = {&norm2, 1}, .loss = {&loss, 1}}, gate);
        const std::vector<double> found = device_gate.Read();
        for (const std::size_t place : {kGateScale, kGateOpen, kGateNorm2Sum}) {
          EXPECT_EQ(found[place], gate[place]) << place;
        }
        EXPECT_EQ(std::isnan(found[kGatePoison]), std::isnan(gate[kGatePoison]));
      }
    }
  }
}

TEST_F(RowsKernelTest, ARoundsGateGivesTheSameBits) {
  std::uint32_t flag = 0;
  for (const double norm2 : {7.0, 0.0, 1e12, kInfinity, 1e-300, static_cast<double>(NAN)}) {
    for (const float nonfinite : {0.0f, 2.0f}) {
      for (const RoundGate& round :
           {RoundGate{.samples = 7, .divisor = 7}, RoundGate{.samples = 7, .clip_norm = 0.7},
            RoundGate{.samples = 8, .divisor = 8}, RoundGate{}}) {
        const DeviceArray<double> device_norm2(std::vector<double>{norm2});
        const DeviceArray<float> lanes(std::vector<float>{7, nonfinite});
        const DeviceArray<double> device_gate = DeviceArray<double>::OfLength(kRoundGateLength);
        const std::vector<float> lanes_on_host = {7, nonfinite};
        std::vector<double> gate(kRoundGateLength, 5);

        kernels::GateRound(stream_, round,
                           {.norm2 = device_norm2.span(),
                            .samples = lanes.span().first(1),
                            .nonfinite = lanes.span().last(1)},
                           device_gate.span());
        host::GateRound(round,
                        {.norm2 = {&norm2, 1},
                         .samples = std::span(lanes_on_host).first(1),
                         .nonfinite = std::span(lanes_on_host).last(1),
                         .lost = &flag},
                        gate);

        EXPECT_EQ(device_gate.Read(), gate);
      }
    }
  }
}

TEST_F(RowsKernelTest, LambBehindAShutGateChangesNothing) {
  const SegmentTable segments = TwinSegments();
  const std::size_t length = FlatLength(segments);
  const std::vector<float> values = RandomValues(1, length);
  const DeviceArray<float> gradients(values);
  const DeviceArray<float> parameters(values);
  const DeviceArray<float> first(values);
  const DeviceArray<float> second(std::vector<float>(length, 1));
  const std::vector<double> shut(kGateLength);
  const DeviceArray<double> gate(shut);
  const ChunkTable table = ChunksOf(segments);
  const DeviceChunks chunks(table);
  const DeviceSums sums(segments.size() * kernels::kLambSumsPerSegment,
                        table.chunks.size() * kernels::kLambSumsPerSegment);

  kernels::Lamb(stream_, {.learning_rate = 1, .gate = gate.span().data()}, chunks.view(),
                {gradients.span(), parameters.span(), first.span(), second.span()}, sums.into());

  ExpectSameBits(parameters.Read(), values);
  ExpectSameBits(first.Read(), values);
  ExpectSameBits(second.Read(), std::vector<float>(length, 1));
}

}  // namespace
}  // namespace tactus::cuda
