#include "agent/engine/samples/block_cursor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

BlockCursor::BlockCursor(const SampleLedger& ledger, Block block, StepSizes sizes)
    : ledger_(ledger), block_(std::move(block)), size_(SizeOf(block_)), sizes_(sizes) {}

std::vector<std::uint64_t> BlockCursor::Take(std::vector<float>* weights) {
  std::vector<std::uint64_t> indices;
  if (weights != nullptr) weights->clear();
  PassTo(begin());
  const std::uint64_t last = std::max(of_step_, end());
  const std::uint64_t count = std::min(sizes_.micro_batch, last - of_step_);
  // A batch names one epoch, so it ends where the next one begins.
  const std::uint64_t first_epoch = epoch();
  while (indices.size() < count && epoch() == first_epoch) {
    indices.push_back(ledger_.SampleAt(position()));
    if (weights != nullptr && ledger_.weighted()) weights->push_back(ledger_.WeightAt(position()));
    Pass();
  }
  own_ += indices.size();
  if (of_step_ == last) PassTo(step_length());
  return indices;
}

void BlockCursor::Skip(std::uint64_t count) {
  TACTUS_CHECK(taken_ == 0 && count <= size_);
  while (taken_ < count) {
    own_ += end() - begin();
    PassTo(step_length());
    EndStep();
  }
}

std::uint64_t BlockCursor::Edge(std::uint64_t of_whole) const {
  return sizes_.step == 0 ? 0 : step_length() * of_whole / sizes_.step;
}

void BlockCursor::PassTo(std::uint64_t of_step) {
  while (of_step_ < of_step) Pass();
}

void BlockCursor::Pass() {
  ++taken_;
  ++of_step_;
  if (++offset_ < block_[stretch_].size()) return;
  ++stretch_;
  offset_ = 0;
}

std::uint64_t BlockCursor::epoch() const {
  return exhausted() ? ledger_.epoch() : position() / ledger_.epoch_size();
}

}  // namespace tactus::engine
