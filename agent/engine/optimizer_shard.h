// What one member holds of the optimizer's state, where that is cut up (shards.h).

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/engine/optimizer.h"
#include "agent/engine/shards.h"
#include "cuda/device.h"

namespace tactus::engine {

// A stretch with its state, buffer by buffer as Optimizer::State has them; the device's memory.
struct ShardPiece {
  ShardStretch stretch{};
  std::vector<cuda::Buffer> buffers{};  // each [stretch.length()]
};

// A step that was told to all and of which this member does not know whether somebody took it:
// whoever has heard of every part of it has. What it needs to take it later, piece by piece.
struct UndecidedStep {
  std::uint64_t rounds = 0;  // applied before it
  std::uint64_t step = 0;    // of the optimizer, counted from 1
  StepScale scale{};
  std::vector<cuda::Buffer> gradients{};
  std::vector<cuda::Buffer> parameters{};  // before it
};

// One thread.
class OptimizerShard {
 public:
  // length   of the flat vector
  // buffers  engine::StateBuffers of the optimizer
  // At first it holds all, which is zero and takes no memory.
  OptimizerShard(cuda::Device& device, std::size_t length, std::size_t buffers);

  std::size_t buffers() const { return buffers_; }

  // In the order in which it holds them; all of the vector until it is told what to hold.
  std::vector<ShardStretch> held() const;
  // Empty until then.
  std::vector<ShardPiece>& pieces() { return pieces_; }

  // A piece of zeros, which is not held yet.
  ShardPiece MakePiece(const ShardStretch& stretch);
  // out <- a buffer's values. stretch: within one that is held.
  void Read(std::size_t buffer, const ShardStretch& stretch, std::span<float> out) const;
  // From now on it holds these, and nothing else.
  void Hold(std::vector<ShardPiece> pieces);

  // What it holds, buffer by buffer, one stretch behind the other; complete once the device was
  // waited for.
  void CopyOut(std::vector<std::vector<float>>& state) const;
  // As long as CopyOut had them: these are its values now. As long as the vector: it holds all of
  // it, in the host's memory, until it is told what to hold. Requires: one of the two.
  void PutBack(const std::vector<std::vector<float>>& state);

  // Of the device's memory, for what it holds. [bytes]
  std::size_t bytes() const;

  std::optional<UndecidedStep> undecided{};

 private:
  cuda::Device& device_;
  const std::size_t length_;
  const std::size_t buffers_;
  bool whole_ = true;
  std::vector<std::vector<float>> on_host_;  // where it holds all; empty: zeros
  std::vector<ShardPiece> pieces_;
};

}  // namespace tactus::engine
