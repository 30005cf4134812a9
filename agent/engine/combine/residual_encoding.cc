#include "agent/engine/combine/residual_encoding.h"

#include <algorithm>
#include <utility>

#include "cuda/ops/vector.h"

namespace tactus::engine {

void ResidualTalk::HandOver(std::span<float> values) {
  cuda::host::Axpy(1, left_, values);
  std::ranges::fill(still_left_, 0.0f);
}

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
  const std::array<float, 2> now = {static_cast<float>(round_.samples), round_.changes ? 1.0f : 0};
  if (of_[0] > 0 && of_[1] != now[1]) Forget();
  if (of_[0] > 0 && of_[0] != now[0]) cuda::host::Scale(now[0] / of_[0], left_);
  of_ = now;
  open_ = true;
}

void ResidualEncoding::Settle(bool applied) {
  if (std::exchange(open_, false) && applied) std::swap(left_, still_left_);
}

void ResidualEncoding::Forget() {
  std::ranges::fill(left_, 0.0f);
  std::ranges::fill(still_left_, 0.0f);
  of_ = {};
  open_ = false;
}

std::vector<Residual> ResidualEncoding::Residuals() {
  return {{.name = name_, .values = left_}, {.name = name_ + "_of", .values = of_}};
}

}  // namespace tactus::engine
