#include "agent/engine/samples/block_cursor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

BlockCursor::BlockCursor(const SampleLedger& ledger, Block block, StepSizes sizes)
    : ledger_(ledger), block_(std::move(block)), size_(SizeOf(block_)), sizes_(sizes) {}

std::vector<std::uint64_t> BlockCursor::Take(std::vector<float>* weights) {
  const std::uint64_t first_epoch = epoch();
  const std::uint64_t count = std::min(sizes_.micro_batch, sizes_.step - of_step_);
  std::vector<std::uint64_t> indices;
  if (weights != nullptr) weights->clear();
  // A batch names one epoch, so it ends where the next one begins.
  while (indices.size() < count && !exhausted() && epoch() == first_epoch) {
    indices.push_back(ledger_.SampleAt(position()));
    if (weights != nullptr && ledger_.weighted()) weights->push_back(ledger_.WeightAt(position()));
    ++of_step_;
    Pass();
  }
  return indices;
}

void BlockCursor::Skip(std::uint64_t count) {
  TACTUS_CHECK(taken_ == 0 && count <= size_);
  while (taken_ < count) Pass();
}

void BlockCursor::Pass() {
  ++taken_;
  if (++offset_ < block_[stretch_].size()) return;
  ++stretch_;
  offset_ = 0;
}

std::uint64_t BlockCursor::epoch() const {
  return exhausted() ? ledger_.epoch() : position() / ledger_.epoch_size();
}

}  // namespace tactus::engine
