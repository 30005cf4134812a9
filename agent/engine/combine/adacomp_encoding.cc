#include "agent/engine/combine/adacomp_encoding.h"

#include <vector>

#include "agent/engine/combine/adacomp_bins.h"
#include "base/check.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kConvolutionDimensions = 4;
constexpr std::size_t kDenseTensorLength = 1024;  // fewer values travel as float32

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
    : PartedEncoding("adacomp", round, device, segments, AdacompPartsOf(segments, options)) {}

}  // namespace tactus::engine
