#include "agent/engine/combine/one_bit_encoding.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "base/check.h"

namespace tactus::engine {
namespace {

// Adds the stretches of a segment in which the second moment is not 0. second: of the segment;
// offset: its place in the piece.
void AddRuns(std::span<const float> second, std::size_t offset, float scale,
             std::vector<OneBitRun>& runs) {
  const auto end = second.end();
  auto begin = second.begin();
  while (true) {
    begin = std::find_if(begin, end, [](float v) { return v != 0; });
    if (begin == end) return;
    const auto stop = std::find(begin, end, 0.0f);
    runs.push_back({.place = {.offset = offset + static_cast<std::size_t>(begin - second.begin()),
                              .length = static_cast<std::size_t>(stop - begin)},
                    .scale = scale});
    begin = stop;
  }
}

}  // namespace

OneBitEncoding::OneBitEncoding(const SharedMomentum& momentum, cuda::Device& device,
                               const cuda::SegmentTable& segments)
    : TalkingEncoding(device),
      momentum_(momentum),
      device_(device),
      segments_(segments),
      own_(cuda::FlatLength(segments)),
      sums_(own_.size()),
      next_own_(own_.size()),
      next_sums_(own_.size()) {}

// Errors are of one time of signs: they are gone when gradients travel again.
void OneBitEncoding::FollowPhase() {
  if (!Encodes()) {
    if (since_) Forget();
  } else if (since_ != momentum_.since) {
    since_ = momentum_.since;
    ForgetTalks();
  }
}

std::unique_ptr<collective::Collective> OneBitEncoding::Exchange(collective::Transport& transport,
                                                                 const Piece& piece) {
  FollowPhase();
  if (Encodes() && transport.size() > 1) {
    const SharedMomentum& shared = momentum_;
    const bool any = shared.samples > 0;
    const double of_sum = any ? (1 - shared.beta1) / shared.samples : 0;
    const double of_momentum = any ? shared.beta1 * shared.own_samples / shared.samples : 0;
    device_.Scale(static_cast<float>(of_sum), piece.values);
    device_.Axpy(static_cast<float>(of_momentum),
                 shared.first.subspan(piece.offset, piece.values.size()), piece.values);
  }
  return TalkingEncoding::Exchange(transport, piece);
}

void OneBitEncoding::Restore(const Piece& piece) {
  TalkingEncoding::Restore(piece);
  if (!encoded()) return;
  const SharedMomentum& shared = momentum_;
  device_.Axpy(static_cast<float>(-shared.beta1),
               shared.first.subspan(piece.offset, piece.values.size()), piece.values);
  device_.Scale(static_cast<float>(shared.samples / (1 - shared.beta1)), piece.values);
}

std::unique_ptr<PieceTalk> OneBitEncoding::MakeTalk(const Piece& piece) {
  TACTUS_CHECK(momentum_.scales.size() == segments_.size());
  std::vector<float> second(piece.values.size());
  device_.Copy(momentum_.second.subspan(piece.offset, second.size()), second);
  device_.Synchronize();
  OneBitRuns runs;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const cuda::Segment& segment = segments_[i];
    const bool within = segment.offset >= piece.offset &&
                        segment.offset + segment.length <= piece.offset + second.size();
    if (!within) continue;
    const std::size_t offset = segment.offset - piece.offset;
    const auto scale = static_cast<float>(momentum_.scales[i]);
    AddRuns(std::span(second).subspan(offset, segment.length), offset, scale > 0 ? scale : 1,
            scale > 0 ? runs.signs : runs.dense);
  }
  return std::make_unique<OneBitTalk>(std::move(runs));
}

void OneBitEncoding::Leaves(PieceTalk& talk, const Piece& piece) {
  open_ = true;
  const auto part = [&](std::vector<float>& all) {
    return std::span(all).subspan(piece.offset, piece.values.size());
  };
  static_cast<OneBitTalk&>(talk).SetErrors({.own = part(own_),
                                            .sums = part(sums_),
                                            .next_own = part(next_own_),
                                            .next_sums = part(next_sums_)});
}

void OneBitEncoding::Settle(bool applied) {
  if (!std::exchange(open_, false) || !applied) return;
  std::swap(own_, next_own_);
  std::swap(sums_, next_sums_);
}

void OneBitEncoding::Forget() {
  for (std::vector<float>* const errors : {&own_, &sums_, &next_own_, &next_sums_}) {
    std::ranges::fill(*errors, 0.0f);
  }
  since_.reset();
  open_ = false;
}

std::vector<Residual> OneBitEncoding::Residuals() {
  return {{.name = "one_bit", .values = own_}, {.name = "one_bit_sums", .values = sums_}};
}

std::uint64_t OneBitEncoding::BytesOfValues(const Piece&, const PieceTalk& talk) const {
  return static_cast<const OneBitTalk&>(talk).payload();
}

}  // namespace tactus::engine
