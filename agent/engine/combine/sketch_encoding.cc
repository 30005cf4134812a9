#include "agent/engine/combine/sketch_encoding.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/rng.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kDenseLength = 1024;  // a tensor of fewer values travels as float32

std::size_t ShareOf(double share, std::size_t length) {
  const auto rounded = std::llround(share * static_cast<double>(length));
  return std::max<std::size_t>(1, static_cast<std::size_t>(rounded));
}

// Of a stretch of a tensor that may be sketched.
SketchPart PartOf(cuda::FlatRange place, const SketchOptions& options) {
  const std::size_t applied = ShareOf(options.share, place.length);
  const std::size_t candidates = applied * options.candidates;
  const double share_of_columns = static_cast<double>(options.columns) / kSketchLength;
  const std::size_t columns =
      options.columns == 0 ? candidates : ShareOf(share_of_columns, place.length);
  if (options.rows * columns + candidates >= place.length) return {.place = place};
  return {.place = place,
          .columns = static_cast<std::uint32_t>(columns),
          .candidates = candidates,
          .applied = applied,
          .offered = applied * options.offered};
}

// Of what is sketched.
std::size_t LongestOf(const std::vector<SketchPart>& parts) {
  std::size_t longest = 0;
  for (const SketchPart& part : parts) {
    if (part.encoded()) longest = std::max<std::size_t>(longest, part.place.length);
  }
  return longest;
}

}  // namespace

// A tensor's stretches differ by a value at most, so that none is short.
std::vector<SketchPart> SketchPartsOf(const cuda::SegmentTable& segments,
                                      const SketchOptions& options) {
  std::vector<SketchPart> parts;
  for (const cuda::Segment& segment : segments) {
    const auto [offset, length] = std::pair(segment.offset, segment.length);
    if (length == 0) continue;
    if (segment.shape.size() < 2 || length < kDenseLength) {
      parts.push_back({.place = {.offset = offset, .length = length}});
      continue;
    }
    const std::size_t count = (length + kSketchLength - 1) / kSketchLength;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t begin = length * i / count;
      const std::size_t end = length * (i + 1) / count;
      parts.push_back(PartOf({.offset = offset + begin, .length = end - begin}, options));
    }
  }
  return parts;
}

SketchEncoding::SketchEncoding(const SketchOptions& options, std::uint64_t seed,
                               const ResidualRound& round, cuda::Device& device,
                               const cuda::SegmentTable& segments)
    : PartedEncoding("sketch", round, device, segments, SketchPartsOf(segments, options)),
      seed_(Rng(seed).Fork("sketch").Next()),
      longest_(LongestOf(parts())),
      hash_(seed_, options.rows, 0) {
  TACTUS_CHECK(options.share > 0 && options.share <= 1 && options.candidates >= 1);
}

void SketchEncoding::Leaves(PieceTalk& talk, const Piece& piece) {
  ResidualEncoding::Leaves(talk, piece);
  const std::uint64_t seed = Rng(seed_ + round().number).Next();
  const bool at_hand = hash_.seed() == seed && hash_.length() == longest_;
  if (!at_hand) hash_ = SketchHash(seed, hash_.rows(), longest_);
  static_cast<SketchTalk&>(talk).SetHash(hash_);
}

}  // namespace tactus::engine
