#include <bit>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "cuda/ops/extremes.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

// Both twins over one table, in a buffer that lies `shift` elements off an aligned address.
void ExpectAgreement(Stream stream, const std::vector<float>& buffer, const SegmentTable& segments,
                     std::size_t shift) {
  const ChunkTable chunks = ChunksOf(segments);
  const DeviceChunks device_chunks(chunks);
  const DeviceArray<float> device_buffer(buffer, shift);
  const DeviceArray<float> max_abs = DeviceArray<float>::OfLength(segments.size());
  const DeviceArray<float> nonfinite = DeviceArray<float>::OfLength(segments.size());
  const DeviceArray<std::uint32_t> partials =
      DeviceArray<std::uint32_t>::OfLength(2 * chunks.chunks.size());
  const DeviceCounters counters(segments.size());
  std::vector<float> expected_max_abs(segments.size());
  std::vector<float> expected_nonfinite(segments.size());

  kernels::ExtremesPerSegment(stream, device_buffer.span(), device_chunks.view(),
                              {.extremes = {max_abs.span(), nonfinite.span()},
                               .partials = partials.span(),
                               .counters = counters.span()});
  host::ExtremesPerSegment(buffer, segments, {expected_max_abs, expected_nonfinite});

  ExpectSameBits(max_abs.Read(), expected_max_abs);
  ExpectSameBits(nonfinite.Read(), expected_nonfinite);
  ExpectSameBits(device_buffer.Read(), buffer);
  partials.Read();
  counters.ExpectZero();
}

class ExtremesKernelTest : public TwinLengthTest {};

TEST_P(ExtremesKernelTest, OneSegmentIsBitIdentical) {
  const SegmentTable segments = {{.offset = 0, .length = length()}};

  ExpectAgreement(stream_, RandomValues(1, length()), segments, shift());
}

TEST_P(ExtremesKernelTest, TheLargestAndTheFaultsAreSeenWhereverTheyAre) {
  const SegmentTable segments = {{.offset = 0, .length = length()}};
  for (const std::size_t at : {std::size_t{0}, length() / 2, length() - 1}) {
    if (at >= length()) continue;
    std::vector<float> buffer(length());
    buffer[at] = -5;
    ExpectAgreement(stream_, buffer, segments, shift());
    buffer[at] = -std::numeric_limits<float>::infinity();
    ExpectAgreement(stream_, buffer, segments, shift());
    buffer[at] = std::nanf("");
    ExpectAgreement(stream_, buffer, segments, shift());
  }
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, ExtremesKernelTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class ExtremesKernelCaseTest : public TwinTest {};

TEST_F(ExtremesKernelCaseTest, ManySegmentsWithFaultsAreBitIdentical) {
  const SegmentTable segments = TwinSegments();
  std::vector<float> buffer = RandomValues(3, FlatLength(segments));
  Rng rng(4);
  for (float& x : buffer) {
    if (rng.Below(10) == 0) x = std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()));
    if (rng.Below(10) == 0) x = std::numeric_limits<float>::infinity();
  }
  for (const std::size_t shift : kShifts) ExpectAgreement(stream_, buffer, segments, shift);
}

TEST_F(ExtremesKernelCaseTest, PaddingIsNotLookedAt) {
  const SegmentTable segments = TwinSegments();
  std::vector<float> buffer(FlatLength(segments), std::nanf(""));
  for (const Segment& segment : segments) {
    std::fill_n(buffer.begin() + static_cast<std::ptrdiff_t>(segment.offset), segment.length, 2.0f);
  }

  ExpectAgreement(stream_, buffer, segments, 1);
}

// Short chunks of one's own making, so that a segment has more of them than a block has threads.
TEST_F(ExtremesKernelCaseTest, TheChunksOfALongSegmentAreAllLookedAt) {
  constexpr std::size_t kChunks = 1000;
  ChunkTable table{.first = {0, kChunks}};
  for (std::size_t i = 0; i < kChunks; ++i) {
    table.chunks.push_back({.offset = 3 * i, .length = 3, .segment = 0});
  }
  const DeviceChunks chunks(table);
  for (std::size_t at = 0; at < kChunks; at += 37) {
    std::vector<float> buffer(3 * kChunks);
    buffer[3 * at] = 2;
    buffer[3 * (kChunks - 1 - at) + 2] = std::nanf("");
    const DeviceArray<float> device_buffer(buffer);
    const DeviceArray<float> max_abs = DeviceArray<float>::OfLength(1);
    const DeviceArray<float> nonfinite = DeviceArray<float>::OfLength(1);
    const DeviceArray<std::uint32_t> partials = DeviceArray<std::uint32_t>::OfLength(2 * kChunks);
    const DeviceCounters counters(1);

    kernels::ExtremesPerSegment(stream_, device_buffer.span(), chunks.view(),
                                {.extremes = {max_abs.span(), nonfinite.span()},
                                 .partials = partials.span(),
                                 .counters = counters.span()});

    ASSERT_EQ(max_abs.Read()[0], 2) << at;
    ASSERT_EQ(nonfinite.Read()[0], 1) << at;
  }
}

TEST_F(ExtremesKernelCaseTest, ATableWithoutSegmentsAsksNothing) {
  ExpectAgreement(stream_, std::vector<float>(16), {}, 0);
}

}  // namespace
}  // namespace tactus::cuda
