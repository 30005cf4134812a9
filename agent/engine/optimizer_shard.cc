#include "agent/engine/optimizer_shard.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

OptimizerShard::OptimizerShard(cuda::Device& device, std::size_t length, std::size_t buffers)
    : device_(device), length_(length), buffers_(buffers) {}

std::vector<ShardStretch> OptimizerShard::held() const {
  if (whole_) return {{.begin = 0, .end = length_}};
  std::vector<ShardStretch> held;
  for (const ShardPiece& piece : pieces_) held.push_back(piece.stretch);
  return held;
}

ShardPiece OptimizerShard::MakePiece(const ShardStretch& stretch) {
  ShardPiece piece{.stretch = stretch};
  for (std::size_t i = 0; i < buffers_; ++i) {
    piece.buffers.push_back(device_.Allocate(stretch.length()));
  }
  return piece;
}

void OptimizerShard::Read(std::size_t buffer, const ShardStretch& stretch,
                          std::span<float> out) const {
  if (whole_) {
    if (on_host_.empty()) return device_.Fill(0, out);
    return device_.Copy(
        std::span<const float>(on_host_[buffer]).subspan(stretch.begin, stretch.length()), out);
  }
  const auto piece = std::ranges::find_if(pieces_, [&](const ShardPiece& each) {
    return each.stretch.begin <= stretch.begin && stretch.end <= each.stretch.end;
  });
  TACTUS_CHECK(piece != pieces_.end());
  device_.Copy(
      piece->buffers[buffer].span().subspan(stretch.begin - piece->stretch.begin, stretch.length()),
      out);
}

void OptimizerShard::Hold(std::vector<ShardPiece> pieces) {
  device_.Synchronize();  // before the memory of others goes
  pieces_ = std::move(pieces);
  whole_ = false;
  on_host_ = {};
}

void OptimizerShard::CopyOut(std::vector<std::vector<float>>& state) const {
  state.resize(buffers_);
  for (std::size_t i = 0; i < buffers_; ++i) {
    if (whole_) {
      state[i].assign(length_, 0);
      if (!on_host_.empty()) std::ranges::copy(on_host_[i], state[i].begin());
      continue;
    }
    std::size_t at = 0;
    for (const ShardPiece& piece : pieces_) at += piece.stretch.length();
    state[i].resize(at);
    at = 0;
    for (const ShardPiece& piece : pieces_) {
      device_.Copy(piece.buffers[i].span(),
                   std::span(state[i]).subspan(at, piece.stretch.length()));
      at += piece.stretch.length();
    }
  }
}

void OptimizerShard::PutBack(const std::vector<std::vector<float>>& state) {
  TACTUS_CHECK(state.size() == buffers_);
  if (buffers_ == 0) return;
  std::size_t length = 0;
  for (const ShardPiece& piece : pieces_) length += piece.stretch.length();
  if (whole_ || state.front().size() != length) {
    TACTUS_CHECK(state.front().size() == length_);
    device_.Synchronize();
    pieces_.clear();
    whole_ = true;
    on_host_ = state;
    return;
  }
  for (std::size_t i = 0; i < buffers_; ++i) {
    std::size_t at = 0;
    for (ShardPiece& piece : pieces_) {
      device_.Copy(std::span<const float>(state[i]).subspan(at, piece.stretch.length()),
                   piece.buffers[i].span());
      at += piece.stretch.length();
    }
  }
}

std::size_t OptimizerShard::bytes() const {
  std::size_t bytes = 0;
  for (const ShardPiece& piece : pieces_) {
    bytes += buffers_ * piece.stretch.length() * sizeof(float);
  }
  return bytes;
}

}  // namespace tactus::engine
