// A member's way through its replica's block of a round: steps of so many samples, in
// micro-batches. Who holds all of the model is a replica by itself; else its members share each
// step.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "agent/engine/samples/ledger.h"

namespace tactus::engine {

// How large the parts are. [samples]
struct StepSizes {
  std::uint64_t step = 0;         // of all members
  std::uint64_t micro_batch = 1;  // at most, >= 1
  // Of a step, those of the members before this one and behind it; of a shorter one in proportion.
  std::uint64_t before = 0;
  std::uint64_t behind = 0;
};

// A copy goes its own way. Not thread-safe.
class BlockCursor {
 public:
  // ledger: whose block it is; outlives this.
  BlockCursor(const SampleLedger& ledger, Block block, StepSizes sizes);

  // The next micro-batch: this member's samples of the step and of one epoch, so fewer at the edge
  // of either; empty where the step or the block is used up, or the step has none for it. With its
  // last ones all other members' are passed. Requires: a step that members share is of one epoch.
  // weights: becomes how much each counts; empty where all count 1. May be null.
  std::vector<std::uint64_t> Take(std::vector<float>* weights = nullptr);

  // So many of the block were used before, in steps that are over. Requires: none was taken.
  void Skip(std::uint64_t count);

  // The next sample is of a new step.
  void EndStep() { of_step_ = 0; }

  std::uint64_t epoch() const;                  // of the next sample; without one, the ledger's
  std::uint64_t size() const { return size_; }  // of the block
  std::uint64_t taken() const { return taken_; }
  std::uint64_t own() const { return own_; }          // of these, this member's
  std::uint64_t of_step() const { return of_step_; }  // taken in the running step
  std::uint64_t step_length() const {                 // of the running step, all of it
    return std::min(sizes_.step, of_step_ + size_ - taken_);
  }
  bool step_full() const { return of_step_ == sizes_.step; }
  bool exhausted() const { return taken_ == size_; }

 private:
  // Of the running step: the members' samples up to so many of a whole one.
  std::uint64_t Edge(std::uint64_t of_whole) const;
  std::uint64_t begin() const { return Edge(sizes_.before); }
  std::uint64_t end() const { return Edge(sizes_.step - sizes_.behind); }
  void PassTo(std::uint64_t of_step);
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
  std::uint64_t own_ = 0;
};

}  // namespace tactus::engine
