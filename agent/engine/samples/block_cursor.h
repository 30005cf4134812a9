// A member's way through its block of a round: steps of so many samples, in micro-batches.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "agent/engine/samples/ledger.h"

namespace tactus::engine {

// How large the parts are. [samples]
struct StepSizes {
  std::uint64_t step = 0;
  std::uint64_t micro_batch = 1;  // at most, >= 1
};

// A copy goes its own way. Not thread-safe.
class BlockCursor {
 public:
  // ledger: whose block it is; outlives this.
  BlockCursor(const SampleLedger& ledger, Block block, StepSizes sizes);

  // The next micro-batch: samples of the step and of one epoch, so fewer at the edge of either;
  // empty where the step or the block is used up.
  // weights: becomes how much each counts; empty where all count 1. May be null.
  std::vector<std::uint64_t> Take(std::vector<float>* weights = nullptr);

  // So many samples were used before, in steps that are over. Requires: none was taken.
  void Skip(std::uint64_t count);

  // The next sample is of a new step.
  void EndStep() { of_step_ = 0; }

  std::uint64_t epoch() const;                  // of the next sample; without one, the ledger's
  std::uint64_t size() const { return size_; }  // of the block
  std::uint64_t taken() const { return taken_; }
  std::uint64_t of_step() const { return of_step_; }  // taken in the running step
  std::uint64_t step_length() const {                 // of the running step, all of it
    return std::min(sizes_.step, of_step_ + size_ - taken_);
  }
  bool step_full() const { return of_step_ == sizes_.step; }
  bool exhausted() const { return taken_ == size_; }

 private:
  void Pass();
  std::uint64_t position() const { return block_[stretch_].begin + offset_; }

  const SampleLedger& ledger_;
  Block block_;
  const std::uint64_t size_;
  const StepSizes sizes_;
  std::size_t stretch_ = 0;   // of the next sample
  std::uint64_t offset_ = 0;  // in that
  std::uint64_t taken_ = 0;
  std::uint64_t of_step_ = 0;
};

}  // namespace tactus::engine
