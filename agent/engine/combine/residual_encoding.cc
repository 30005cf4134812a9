#include "agent/engine/combine/residual_encoding.h"

#include <algorithm>
#include <utility>

#include "cuda/ops/vector.h"

namespace tactus::engine {
namespace {

// What a residual is of.
enum class Travels { kGradients, kChanges, kMomentum };

}  // namespace

void ResidualTalk::HandOver(std::span<float> values) {
  cuda::host::Axpy(1 - left_.beta, left_.left, values);
  std::ranges::fill(left_.still_left, 0.0f);
  if (left_.beta == 0) return;
  const float known = left_.nesterov ? left_.beta * left_.beta : left_.beta;
  cuda::host::Axpy(known, left_.momentum, values);
  std::ranges::fill(left_.next_momentum, 0.0f);
}

void ResidualTalk::AddMomentum(cuda::FlatRange stretch) {
  const std::span<float> next = MomentumOf(stretch);
  if (next.empty()) return;
  const std::span<float> in = values().subspan(stretch.offset, stretch.length);
  const std::span<const float> before = left_.momentum.subspan(stretch.offset, stretch.length);
  const float beta = left_.beta;
  for (std::size_t i = 0; i < in.size(); ++i) {
    next[i] = beta * before[i] + in[i];
    in[i] = left_.nesterov ? in[i] + beta * next[i] : next[i];
  }
}

std::span<float> ResidualTalk::MomentumOf(cuda::FlatRange stretch) const {
  if (left_.beta == 0) return {};
  return left_.next_momentum.subspan(stretch.offset, stretch.length);
}

ResidualEncoding::ResidualEncoding(std::string name, const ResidualRound& round,
                                   cuda::Device& device, std::size_t length,
                                   std::vector<cuda::FlatRange> encoded)
    : TalkingEncoding(device),
      name_(std::move(name)),
      round_(round),
      device_(device),
      encoded_(std::move(encoded)),
      left_(length),
      still_left_(length),
      momentum_(round.carried != nullptr ? length : 0),
      next_momentum_(momentum_.size()) {}

template <typename Use>
void ResidualEncoding::ForEncoded(const Piece& piece, const Use& use) const {
  const std::size_t end = piece.offset + piece.values.size();
  for (const cuda::FlatRange& range : encoded_) {
    if (range.offset < piece.offset || range.offset >= end) continue;
    use(range, piece.values.subspan(range.offset - piece.offset, range.length));
  }
}

std::unique_ptr<collective::Collective> ResidualEncoding::Exchange(collective::Transport& transport,
                                                                   const Piece& piece) {
  if (carries() && round_.carried->weight_decay != 0 && transport.size() > 1) {
    const CarriedMomentum& carried = *round_.carried;
    const auto decay = static_cast<float>(carried.own_samples * carried.weight_decay);
    ForEncoded(piece, [&](const cuda::FlatRange& range, std::span<float> values) {
      device_.Axpy(decay, carried.parameters.subspan(range.offset, range.length), values);
    });
  }
  return TalkingEncoding::Exchange(transport, piece);
}

void ResidualEncoding::Restore(const Piece& piece) {
  TalkingEncoding::Restore(piece);
  if (!encoded() || !carries()) return;
  const CarriedMomentum& carried = *round_.carried;
  const double slope = carried.nesterov ? 1 + carried.beta : 1;
  const double known = carried.nesterov ? carried.beta * carried.beta : carried.beta;
  const auto of_momentum = static_cast<float>(-carried.samples * known / slope);
  const auto decay = static_cast<float>(-carried.samples * carried.weight_decay);
  ForEncoded(piece, [&](const cuda::FlatRange& range, std::span<float> values) {
    if (slope != 1) device_.Scale(static_cast<float>(1 / slope), values);
    device_.Axpy(of_momentum, carried.momentum.subspan(range.offset, range.length), values);
    if (decay == 0) return;
    device_.Axpy(decay, carried.parameters.subspan(range.offset, range.length), values);
  });
}

void ResidualEncoding::Leaves(PieceTalk& talk, const Piece& piece) {
  if (!open_) OpenRound();
  const auto part = [&](std::vector<float>& all) {
    return all.empty() ? std::span<float>()
                       : std::span(all).subspan(piece.offset, piece.values.size());
  };
  LeftOfPiece left = {.left = part(left_),
                      .still_left = part(still_left_),
                      .momentum = part(momentum_),
                      .next_momentum = part(next_momentum_)};
  if (carries()) {
    left.beta = static_cast<float>(round_.carried->beta);
    left.nesterov = round_.carried->nesterov;
  }
  static_cast<ResidualTalk&>(talk).SetLeft(left);
}

void ResidualEncoding::OpenRound() {
  const Travels travels = round().changes ? Travels::kChanges
                          : carries()     ? Travels::kMomentum
                                          : Travels::kGradients;
  const std::array<float, 2> now = {static_cast<float>(round().samples),
                                    static_cast<float>(travels)};
  const bool of_other = of_[0] > 0 && of_[1] != now[1];
  const bool begins = follows_ || of_other;
  if (of_other) Forget();
  if (of_[0] > 0 && of_[0] != now[0]) {
    cuda::host::Scale(now[0] / of_[0], left_);
    cuda::host::Scale(now[0] / of_[0], momentum_);
  }
  if (begins && carries()) TakeMomentumUp();
  follows_ = false;
  of_ = now;
  open_ = true;
}

void ResidualEncoding::TakeMomentumUp() {
  const CarriedMomentum& carried = *round_.carried;
  for (const cuda::FlatRange& range : encoded_) {
    const std::span<float> own = std::span(momentum_).subspan(range.offset, range.length);
    device_.Copy(carried.momentum.subspan(range.offset, range.length), own);
  }
  device_.Synchronize();
  cuda::host::Scale(static_cast<float>(carried.own_samples), momentum_);
}

void ResidualEncoding::Settle(bool applied) {
  if (!std::exchange(open_, false)) {
    follows_ = follows_ || applied;  // one that had nobody to exchange with
    return;
  }
  if (!applied) return;
  std::swap(left_, still_left_);
  std::swap(momentum_, next_momentum_);
}

void ResidualEncoding::Forget() {
  for (std::vector<float>* const each : {&left_, &still_left_, &momentum_, &next_momentum_}) {
    std::ranges::fill(*each, 0.0f);
  }
  of_ = {};
  open_ = false;
  follows_ = false;
}

std::vector<Residual> ResidualEncoding::Residuals() {
  std::vector<Residual> residuals = {{.name = name_, .values = left_},
                                     {.name = name_ + "_of", .values = of_}};
  if (!momentum_.empty()) residuals.push_back({.name = name_ + "_momentum", .values = momentum_});
  return residuals;
}

}  // namespace tactus::engine
