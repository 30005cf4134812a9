#include "agent/engine/samples/block_cursor.h"

#include <algorithm>
#include <utility>

namespace tactus::engine {

BlockCursor::BlockCursor(const SampleLedger& ledger, Block block, StepSizes sizes)
    : ledger_(ledger), block_(std::move(block)), size_(SizeOf(block_)), sizes_(sizes) {}

std::vector<std::uint64_t> BlockCursor::Take() {
  const std::uint64_t first_epoch = epoch();
  const std::uint64_t count = std::min(sizes_.micro_batch, sizes_.step - of_step_);
  std::vector<std::uint64_t> indices;
  // A batch names one epoch, so it ends where the next one begins.
  while (indices.size() < count && !exhausted() && epoch() == first_epoch) {
    indices.push_back(ledger_.SampleAt(position()));
    ++taken_;
    ++of_step_;
    if (++offset_ < block_[stretch_].size()) continue;
    ++stretch_;
    offset_ = 0;
  }
  return indices;
}

std::uint64_t BlockCursor::epoch() const {
  return exhausted() ? ledger_.epoch() : position() / ledger_.epoch_size();
}

}  // namespace tactus::engine
