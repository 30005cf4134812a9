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

}  // namespace

AdacompEncoding::AdacompEncoding(const AdacompOptions& options, const EncodedRound& round,
                                 cuda::Device& device, const cuda::SegmentTable& segments)
    : ResidualEncoding("adacomp", round, device, cuda::FlatLength(segments)),
      options_(options),
      segments_(segments) {
  for (const std::size_t bin : {options.bin, options.bin_of_convolutions}) {
    TACTUS_CHECK(bin >= 1 && bin <= kAdacompBinMax);
  }
}

std::unique_ptr<PieceTalk> AdacompEncoding::MakeTalk(const Piece& piece) {
  std::vector<AdacompPart> parts;
  for (const cuda::Segment& segment : segments_) {
    const bool within = segment.offset >= piece.offset &&
                        segment.offset + segment.length <= piece.offset + piece.values.size();
    if (!within || segment.length == 0) continue;
    const bool convolution = segment.shape.size() == kConvolutionDimensions;
    const std::size_t bin = convolution ? options_.bin_of_convolutions : options_.bin;
    const bool dense =
        segment.shape.size() < 2 || segment.length < kDenseTensorLength || segment.length < 2 * bin;
    parts.push_back({.place = {.offset = segment.offset - piece.offset, .length = segment.length},
                     .bin = dense ? 0 : bin});
  }
  return std::make_unique<AdacompTalk>(std::move(parts));
}

std::uint64_t AdacompEncoding::BytesOfValues(const Piece&, const PieceTalk& talk) const {
  return static_cast<const AdacompTalk&>(talk).payload();
}

}  // namespace tactus::engine
