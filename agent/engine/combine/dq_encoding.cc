#include "agent/engine/combine/dq_encoding.h"

#include <algorithm>

#include "base/check.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kDenseLength = 1024;  // a tensor of fewer values travels as float32

}  // namespace

std::vector<DqStretch> DqStretchesOf(const cuda::SegmentTable& segments) {
  std::vector<DqStretch> stretches;
  for (const cuda::Segment& segment : segments) {
    const bool dense = segment.shape.size() < 2 || segment.length < kDenseLength;
    for (std::size_t begin = 0; begin < segment.length; begin += kDqUnitLength) {
      stretches.push_back({.place = {.offset = segment.offset + begin,
                                     .length = std::min(kDqUnitLength, segment.length - begin)},
                           .dense = dense});
    }
  }
  return stretches;
}

DqEncoding::DqEncoding(const DqOptions& options, std::uint64_t seed, const EncodedRound& round,
                       cuda::Device& device, const cuda::SegmentTable& segments)
    : TalkingEncoding(device),
      options_(options),
      seed_(static_cast<std::uint32_t>(seed ^ seed >> 32)),
      round_(round),
      stretches_(DqStretchesOf(segments)) {
  TACTUS_CHECK(options.first_bits >= kDqBitsMin && options.first_bits <= kDqBitsMax);
  TACTUS_CHECK(options.rho >= 1);
}

// Pieces consist of whole segments, and so of whole stretches.
std::unique_ptr<PieceTalk> DqEncoding::MakeTalk(const Piece& piece) {
  const auto at = [](const DqStretch& stretch) { return stretch.place.offset; };
  const auto first = std::ranges::lower_bound(stretches_, piece.offset, {}, at);
  const auto last =
      std::ranges::lower_bound(stretches_, piece.offset + piece.values.size(), {}, at);
  auto talk = std::make_unique<DqTalk>(
      std::span(first, last), static_cast<std::uint32_t>(first - stretches_.begin()), piece.offset);
  talks_[piece.offset] = talk.get();
  return talk;
}

void DqEncoding::Leaves(PieceTalk& talk, const Piece&) {
  if (opened_ != round_) OpenRound();
  const double spacing = DqSpacing(last_spacing_, options_.rho, round_.progress) * round_.samples;
  static_cast<DqTalk&>(talk).SetRule(
      {.spacing = spacing,
       .bits = options_.first_bits,
       .draws = {.seed = seed_, .round = static_cast<std::uint32_t>(round_.number)}});
}

// The pieces of the one before have come, all of them.
void DqEncoding::OpenRound() {
  if (opened_ && opened_->changes != round_.changes) {
    last_spacing_ = 0;
  } else if (opened_ && last_spacing_ == 0) {
    Calibrate(*opened_);
  }
  opened_ = round_;
}

void DqEncoding::Meet(const EncodedMembers& members) {
  TalkingEncoding::Meet(members);
  Forget();
}

void DqEncoding::Forget() {
  opened_.reset();
  last_spacing_ = 0;
}

// What a value spoils is no measure of the others.
void DqEncoding::Calibrate(const EncodedRound& round) {
  if (!leads()) return;
  if (std::ranges::any_of(talks_, [](const auto& talk) { return talk.second->spoilt(); })) return;
  std::vector<DqUnit> units;
  for (const auto& [offset, talk] : talks_) {
    const std::vector<DqUnit> of_piece = talk->CodedUnits();
    units.insert(units.end(), of_piece.begin(), of_piece.end());
  }
  last_spacing_ = DqSpacingFor(units, options_.first_bits) / round.samples /
                  DqSpacing(1, options_.rho, round.progress);
}

std::uint64_t DqEncoding::BytesOfValues(const Piece&, const PieceTalk& talk) const {
  return static_cast<const DqTalk&>(talk).payload();
}

}  // namespace tactus::engine
