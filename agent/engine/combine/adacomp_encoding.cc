#include "agent/engine/combine/adacomp_encoding.h"

#include <utility>
#include <vector>

#include "agent/engine/combine/adacomp_bins.h"
#include "agent/engine/combine/adacomp_talk.h"
#include "base/check.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kConvolutionDimensions = 4;
constexpr std::size_t kDenseTensorLength = 1024;  // fewer values travel as float32

std::vector<cuda::FlatRange> EncodedOf(const std::vector<AdacompPart>& parts) {
  std::vector<cuda::FlatRange> encoded;
  for (const AdacompPart& part : parts) {
    if (part.bin > 0) encoded.push_back(part.place);
  }
  return encoded;
}

}  // namespace

std::vector<AdacompPart> AdacompPartsOf(const cuda::SegmentTable& segments,
                                        const AdacompOptions& options) {
  for (const std::size_t bin : {options.bin, options.bin_of_convolutions}) {
    TACTUS_CHECK(bin >= 1 && bin <= kAdacompBinMax);
  }
  std::vector<AdacompPart> parts;
  for (const cuda::Segment& segment : segments) {
    if (segment.length == 0) continue;
    const bool convolution = segment.shape.size() == kConvolutionDimensions;
    const std::size_t bin = convolution ? options.bin_of_convolutions : options.bin;
    const bool dense =
        segment.shape.size() < 2 || segment.length < kDenseTensorLength || segment.length < 2 * bin;
    parts.push_back(
        {.place = {.offset = segment.offset, .length = segment.length}, .bin = dense ? 0 : bin});
  }
  return parts;
}

AdacompEncoding::AdacompEncoding(const AdacompOptions& options, const ResidualRound& round,
                                 cuda::Device& device, const cuda::SegmentTable& segments)
    : ResidualEncoding("adacomp", round, device, cuda::FlatLength(segments),
                       EncodedOf(AdacompPartsOf(segments, options))),
      parts_(AdacompPartsOf(segments, options)) {}

// Pieces consist of whole segments.
std::unique_ptr<PieceTalk> AdacompEncoding::MakeTalk(const Piece& piece) {
  std::vector<AdacompPart> parts;
  const std::size_t end = piece.offset + piece.values.size();
  for (AdacompPart part : parts_) {
    if (part.place.offset < piece.offset || part.place.offset >= end) continue;
    part.place.offset -= piece.offset;
    parts.push_back(part);
  }
  return std::make_unique<AdacompTalk>(std::move(parts));
}

std::uint64_t AdacompEncoding::BytesOfValues(const Piece&, const PieceTalk& talk) const {
  return static_cast<const AdacompTalk&>(talk).payload();
}

}  // namespace tactus::engine
