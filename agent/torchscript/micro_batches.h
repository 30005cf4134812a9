// Batches in pieces that fit the device's memory, however large that turns out to be.
//
// How many samples a pass may have is known only when one has failed. So a batch is worked off in
// passes of `ceiling()` samples at most; a pass that runs out of memory halves the ceiling, for the
// rest of the job, and everything that is in the gradients so far is computed anew in the smaller
// pieces, so that they are what they would be had the pieces been small from the start. Two things
// cannot be taken back: running statistics and random numbers of the model have seen the samples of
// a repeated pass twice, and a reduction that was announced may be over on other members.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "agent/engine/round_engine.h"
#include "agent/torchscript/passes.h"

namespace tactus::torchscript {

// What comes with a batch of the engine.
struct BatchContext {
  // As RoundEngine::SegmentReady; may be empty. Called by the last pass of a batch, and only where
  // a pass of that size has gone through under the present ceiling: those of a size that is new
  // reduce nothing early, and can so be repeated.
  SegmentReady ready{};
  std::vector<std::uint64_t> likely_next{};  // RoundEngine::LikelyNext(); may be empty
};

// One thread.
class MicroBatches {
 public:
  using Lowered = std::function<void(std::uint32_t ceiling)>;

  // `passes` outlives it. ceiling: to begin with, >= 1. `lowered`, if set, is called with every new
  // ceiling.
  MicroBatches(Passes& passes, std::uint32_t ceiling, Lowered lowered);

  // Samples of a pass, at most.
  std::uint32_t ceiling() const { return ceiling_; }

  // Passes::TryOut over all of the samples. Errors: its own; of ResourceExhausted only that of a
  // single sample.
  absl::Status TryOut(std::span<const std::uint64_t> indices);

  // Adds the gradients and losses of a batch, each once, whatever had to be repeated. Batches come
  // as the engine gives them; each first_of_sum replaces what the gradients hold.
  // Errors: those of Passes::ForwardBackward; of ResourceExhausted only that of a single sample, or
  // of a pass whose reductions had begun. Both are final, and say what to do.
  absl::Status Run(const engine::Batch& batch, const BatchContext& context);

 private:
  absl::Status RunAnew(const engine::Batch& batch, const BatchContext& context);
  absl::Status RunPieces(std::span<const std::uint64_t> indices, const BatchContext& context);
  std::span<const std::uint64_t> FirstPiece(std::span<const std::uint64_t> indices) const;
  SegmentReady Announcing(const SegmentReady& ready);
  bool Lower(std::uint64_t samples);

  Passes& passes_;
  std::uint32_t ceiling_;
  const Lowered lowered_;
  std::uint64_t proven_ = 0;  // samples of the largest pass that went through under the ceiling
  bool reducing_ = false;     // a reduction of the running pass was announced
  // Of the batches that are in the gradients, in order; those of the sum that the last one was in.
  std::vector<std::vector<std::uint64_t>> added_;
};

}  // namespace tactus::torchscript
