#include "cuda/ops/quantise.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"
#include "cuda/ops/quantise_element.h"

namespace tactus::cuda::host {
namespace {

// Elements whose codes fill whole words.
constexpr std::size_t kWordGroup = 32;

// Everything about one segment of a message.
struct Part {
  std::uint32_t segment = 0;
  std::size_t offset = 0;      // [elements] in the buffer
  std::size_t length = 0;      // [elements]
  std::size_t first_word = 0;  // in the message
  std::size_t words = 0;
  unsigned bits = 0;
  QuantiseFactors factors{};
  double step = 0;
};

std::vector<Part> PartsOf(const SegmentTable& segments, const Quantisation& quantisation) {
  TACTUS_CHECK(quantisation.scales.size() == segments.size());
  const std::vector<std::uint64_t> first = FirstWords(segments, quantisation.bits);
  std::vector<Part> parts;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const unsigned bits = quantisation.bits[s];
    TACTUS_CHECK(bits == 0 || (bits >= 2 && bits <= 8));
    parts.push_back({.segment = static_cast<std::uint32_t>(s),
                     .offset = segments[s].offset,
                     .length = segments[s].length,
                     .first_word = first[s],
                     .words = first[s + 1] - first[s],
                     .bits = bits,
                     .factors = QuantiseFactorsOf(bits, quantisation.scales[s]),
                     .step = QuantiseStepOf(bits, quantisation.scales[s])});
  }
  return parts;
}

void CheckSizes(const std::vector<Part>& parts, std::size_t buffer, std::size_t words) {
  std::size_t end = 0;
  for (const Part& part : parts) {
    TACTUS_CHECK(part.offset <= buffer && part.length <= buffer - part.offset);
    end = part.first_word + part.words;
  }
  TACTUS_CHECK(words == end);
}

// The codes of the eight elements from i on, of which the segment may have fewer.
std::uint64_t EncodeEight(const Part& part, const QuantiseSource& source, std::size_t i) {
  const float* const x = source.values.data() + part.offset;
  float values[kQuantiseGroup] = {};
  std::copy_n(x + i, std::min<std::size_t>(kQuantiseGroup, part.length - i), values);
  const auto quad = static_cast<std::uint32_t>(i / 4);
  const std::uint32_t segment = source.first_segment + part.segment;
  const PhiloxBlock words[2] = {WordsOfQuad(source.draws, segment, quad),
                                WordsOfQuad(source.draws, segment, quad + 1)};
  return QuantiseEight(part.factors, part.bits, values, words);
}

// The words of up to 32 elements from i on; returns how many there are.
std::size_t EncodeWords(const Part& part, const QuantiseSource& source, std::size_t i,
                        std::uint32_t (&words)[8]) {
  const std::size_t end = std::min(part.length, i + kWordGroup);
  std::fill_n(words, 8, 0);
  for (std::size_t byte = 0; i < end; i += kQuantiseGroup) {
    std::uint64_t eight = EncodeEight(part, source, i);
    for (unsigned k = 0; k < part.bits; ++k, ++byte, eight >>= 8) {
      words[byte / 4] |= static_cast<std::uint32_t>(eight & 0xff) << (8 * (byte % 4));
    }
  }
  return PackedWords(end % kWordGroup == 0 ? kWordGroup : end % kWordGroup, part.bits);
}

// Calls each(element of the flat buffer, value of its code) for all elements of the part.
template <class Each>
void ForEachValue(const Part& part, std::span<const std::uint32_t> message, const Each& each) {
  const std::uint32_t* const words = message.data() + part.first_word;
  for (std::size_t i = 0; i < part.length; i += kQuantiseGroup) {
    const std::uint64_t eight =
        part.bits == 0 ? 0 : ReadEight(words, part.words, part.bits, i / kQuantiseGroup);
    const std::size_t count = std::min<std::size_t>(kQuantiseGroup, part.length - i);
    for (unsigned k = 0; k < count; ++k) {
      each(part.offset + i + k,
           part.bits == 0 ? 0 : CodeValue(CodeInEight(eight, part.bits, k), part.bits));
    }
  }
}

}  // namespace

void Quantise(const SegmentTable& segments, const Quantisation& quantisation,
              const QuantiseSource& source, std::span<std::uint32_t> words) {
  const std::vector<Part> parts = PartsOf(segments, quantisation);
  CheckSizes(parts, source.values.size(), words.size());
  for (const Part& part : parts) {
    if (part.bits == 0) continue;
    std::size_t at = part.first_word;
    for (std::size_t i = 0; i < part.length; i += kWordGroup) {
      std::uint32_t group[8];
      const std::size_t count = EncodeWords(part, source, i, group);
      std::copy_n(group, count, words.begin() + static_cast<std::ptrdiff_t>(at));
      at += count;
    }
  }
}

void Dequantise(const SegmentTable& segments, const Quantisation& quantisation,
                std::span<const std::uint32_t> words, std::span<float> out) {
  const std::vector<Part> parts = PartsOf(segments, quantisation);
  CheckSizes(parts, out.size(), words.size());
  for (const Part& part : parts) {
    ForEachValue(part, words,
                 [&](std::size_t i, std::int32_t value) { out[i] = StepTimes(part.step, value); });
  }
}

void DequantiseAdd(const SegmentTable& segments, const Quantisation& quantisation,
                   const WeightedMessage& message, std::span<float> out) {
  const std::vector<Part> parts = PartsOf(segments, quantisation);
  CheckSizes(parts, out.size(), message.words.size());
  for (const Part& part : parts) {
    const double step = message.weight * part.step;
    ForEachValue(part, message.words,
                 [&](std::size_t i, std::int32_t value) { out[i] += StepTimes(step, value); });
  }
}

}  // namespace tactus::cuda::host
