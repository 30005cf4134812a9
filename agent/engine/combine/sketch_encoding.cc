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
          .applied = applied};
}

std::vector<cuda::FlatRange> SketchedOf(const std::vector<SketchPart>& parts) {
  std::vector<cuda::FlatRange> sketched;
  for (const SketchPart& part : parts) {
    if (part.columns > 0) sketched.push_back(part.place);
  }
  return sketched;
}

// Of what is sketched.
std::size_t LongestOf(const std::vector<SketchPart>& parts) {
  std::size_t longest = 0;
  for (const SketchPart& part : parts) {
    if (part.columns > 0) longest = std::max<std::size_t>(longest, part.place.length);
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
    : ResidualEncoding("sketch", round, device, cuda::FlatLength(segments),
                       SketchedOf(SketchPartsOf(segments, options))),
      seed_(Rng(seed).Fork("sketch").Next()),
      parts_(SketchPartsOf(segments, options)),
      longest_(LongestOf(parts_)),
      hash_(seed_, options.rows, 0) {
  TACTUS_CHECK(options.share > 0 && options.share <= 1 && options.candidates >= 1);
}

// Pieces consist of whole segments, and so of whole stretches.
std::unique_ptr<PieceTalk> SketchEncoding::MakeTalk(const Piece& piece) {
  std::vector<SketchPart> parts;
  for (SketchPart part : parts_) {
    const std::size_t end = piece.offset + piece.values.size();
    if (part.place.offset < piece.offset || part.place.offset >= end) continue;
    part.place.offset -= piece.offset;
    parts.push_back(part);
  }
  return std::make_unique<SketchTalk>(std::move(parts));
}

void SketchEncoding::Leaves(PieceTalk& talk, const Piece& piece) {
  ResidualEncoding::Leaves(talk, piece);
  const std::uint64_t seed = Rng(seed_ + round().number).Next();
  const bool at_hand = hash_.seed() == seed && hash_.length() == longest_;
  if (!at_hand) hash_ = SketchHash(seed, hash_.rows(), longest_);
  static_cast<SketchTalk&>(talk).SetHash(hash_);
}

std::uint64_t SketchEncoding::BytesOfValues(const Piece&, const PieceTalk& talk) const {
  return static_cast<const SketchTalk&>(talk).payload();
}

}  // namespace tactus::engine
