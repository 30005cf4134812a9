#include "agent/engine/combine/adacomp_encoding.h"

#include <algorithm>
#include <utility>

#include "agent/engine/combine/adacomp_bins.h"
#include "agent/engine/combine/adacomp_talk.h"
#include "base/check.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kConvolutionDimensions = 4;
constexpr std::size_t kDenseTensorLength = 1024;  // fewer values travel as float32

}  // namespace

AdacompEncoding::AdacompEncoding(const AdacompOptions& options, const EncodedRound& round,
                                 cuda::Device& device, const cuda::SegmentTable& segments)
    : TalkingEncoding(device),
      options_(options),
      round_(round),
      segments_(segments),
      left_(cuda::FlatLength(segments)),
      still_left_(left_.size()) {
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

void AdacompEncoding::Leaves(PieceTalk& talk, const Piece& piece) {
  if (opened_ != round_) OpenRound();
  static_cast<AdacompTalk&>(talk).SetResidual(
      std::span(left_).subspan(piece.offset, piece.values.size()),
      std::span(still_left_).subspan(piece.offset, piece.values.size()));
}

void AdacompEncoding::OpenRound() {
  if (opened_ && opened_->changes != round_.changes) Forget();
  const auto samples = static_cast<float>(round_.samples);
  if (samples_[0] > 0 && samples_[0] != samples) cuda::host::Scale(samples / samples_[0], left_);
  samples_[0] = samples;
  opened_ = round_;
  open_ = true;
}

void AdacompEncoding::Settle(bool applied) {
  if (std::exchange(open_, false) && applied) std::swap(left_, still_left_);
}

void AdacompEncoding::Forget() {
  std::ranges::fill(left_, 0.0f);
  std::ranges::fill(still_left_, 0.0f);
  samples_[0] = 0;
}

std::vector<Residual> AdacompEncoding::Residuals() {
  return {{.name = "adacomp", .values = left_}, {.name = "adacomp_samples", .values = samples_}};
}

std::uint64_t AdacompEncoding::BytesOfValues(const Piece&, const PieceTalk& talk) const {
  return static_cast<const AdacompTalk&>(talk).payload();
}

}  // namespace tactus::engine
