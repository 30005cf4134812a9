#include "cuda/ops/sign_pack.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/sign_pack_element.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda::host {
namespace {

// Elements compensated at a time, for their norm: small enough for the first cache.
constexpr std::size_t kBlock = 2048;

TACTUS_VECTOR_CLONES void Compensate(const float* x, const float* e, float* q, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) q[i] = x[i] + e[i];
}

// Elements of one word, at most 32.
TACTUS_VECTOR_CLONES std::uint32_t EncodeWord(const float* x, float* e, float scale,
                                              std::size_t n) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < n; ++i) {
    word |= static_cast<std::uint32_t>(EncodeSign(x[i], scale, e[i])) << i;
  }
  return word;
}

double CompensatedNorm2(const SignSource& source, const Segment& segment) {
  float compensated[kBlock];
  double norm2 = 0;
  for (std::size_t i = 0; i < segment.length; i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.length - i);
    const std::size_t at = segment.offset + i;
    Compensate(source.input.data() + at, source.error.data() + at, compensated, length);
    norm2 += SquaredNorm({compensated, length});
  }
  return norm2;
}

void CheckInside(const SegmentTable& segments, std::size_t length) {
  for (const Segment& segment : segments) {
    TACTUS_CHECK(segment.offset <= length && segment.length <= length - segment.offset);
  }
}

// Calls each(segment's index, i, bit) for every element of the message; i is in the flat buffer.
template <class Each>
void ForEachSign(const SegmentTable& segments, const SignMessage& message, const Each& each) {
  const std::vector<std::uint64_t> first = FirstWords(segments, 1);
  TACTUS_CHECK(message.scales.size() == segments.size());
  TACTUS_CHECK(message.words.size() == first.back());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::uint32_t* const words = message.words.data() + first[s];
    for (std::size_t i = 0; i < segments[s].length; ++i) {
      each(s, segments[s].offset + i, (words[i / 32] >> (i % 32) & 1) != 0);
    }
  }
}

}  // namespace

void SignScales(const SegmentTable& segments, SignSharing sharing, const SignSource& source,
                std::span<float> scales) {
  TACTUS_CHECK(source.input.size() == source.error.size());
  TACTUS_CHECK(scales.size() == segments.size());
  CheckInside(segments, source.input.size());
  double norm2_sum = 0;
  std::uint64_t count = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const double norm2 = CompensatedNorm2(source, segments[s]);
    scales[s] = SignScale(norm2, segments[s].length);
    norm2_sum += norm2;
    count += segments[s].length;
  }
  if (sharing == SignSharing::kTable) {
    std::fill(scales.begin(), scales.end(), SignScale(norm2_sum, count));
  }
}

void SignPack(const SegmentTable& segments, const SignSource& source, std::span<const float> scales,
              std::span<std::uint32_t> words) {
  const std::vector<std::uint64_t> first = FirstWords(segments, 1);
  TACTUS_CHECK(source.input.size() == source.error.size());
  TACTUS_CHECK(scales.size() == segments.size() && words.size() == first.back());
  CheckInside(segments, source.input.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const float* const x = source.input.data() + segments[s].offset;
    float* const e = source.error.data() + segments[s].offset;
    for (std::size_t i = 0; i < segments[s].length; i += 32) {
      const std::size_t length = std::min<std::size_t>(32, segments[s].length - i);
      words[first[s] + i / 32] = EncodeWord(x + i, e + i, scales[s], length);
    }
  }
}

void SignUnpack(const SegmentTable& segments, const SignMessage& message, std::span<float> out) {
  CheckInside(segments, out.size());
  ForEachSign(segments, message, [&](std::size_t s, std::size_t i, bool bit) {
    out[i] = SentBySign(bit, message.scales[s]);
  });
}

void SignAdd(const SegmentTable& segments, const SignMessage& message, double weight,
             std::span<float> out) {
  CheckInside(segments, out.size());
  ForEachSign(segments, message, [&](std::size_t s, std::size_t i, bool bit) {
    out[i] += SentBySign(bit, WeightedScale(weight, message.scales[s]));
  });
}

}  // namespace tactus::cuda::host
