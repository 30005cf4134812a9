#include "agent/engine/combine/residual_encoding.h"

#include <algorithm>
#include <utility>

#include "cuda/ops/vector.h"

namespace tactus::engine {

ResidualEncoding::ResidualEncoding(std::string name, const EncodedRound& round,
                                   cuda::Device& device, std::size_t length)
    : TalkingEncoding(device),
      name_(std::move(name)),
      round_(round),
      left_(length),
      still_left_(length) {}

void ResidualEncoding::Leaves(PieceTalk& talk, const Piece& piece) {
  if (!open_) OpenRound();
  static_cast<ResidualTalk&>(talk).SetResidual(
      std::span(left_).subspan(piece.offset, piece.values.size()),
      std::span(still_left_).subspan(piece.offset, piece.values.size()));
}

void ResidualEncoding::OpenRound() {
  if (changes_ && *changes_ != round_.changes) Forget();
  const auto samples = static_cast<float>(round_.samples);
  if (samples_[0] > 0 && samples_[0] != samples) cuda::host::Scale(samples / samples_[0], left_);
  samples_[0] = samples;
  changes_ = round_.changes;
  open_ = true;
}

void ResidualEncoding::Settle(bool applied) {
  if (std::exchange(open_, false) && applied) std::swap(left_, still_left_);
}

void ResidualEncoding::Forget() {
  std::ranges::fill(left_, 0.0f);
  std::ranges::fill(still_left_, 0.0f);
  samples_[0] = 0;
  changes_.reset();
  open_ = false;
}

std::vector<Residual> ResidualEncoding::Residuals() {
  return {{.name = name_, .values = left_}, {.name = name_ + "_samples", .values = samples_}};
}

}  // namespace tactus::engine
