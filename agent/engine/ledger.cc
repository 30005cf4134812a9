#include "agent/engine/ledger.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tactus::engine {
namespace {

// A place in a list of stretches.
struct Cursor {
  std::size_t index = 0;
  std::uint64_t offset = 0;  // positions of stretches[index] that are passed, less than its size
};

// Passes `count` positions and tells `visit` which.
template <typename Visit>
void Walk(const std::vector<Stretch>& stretches, std::uint64_t count, Cursor& cursor,
          const Visit& visit) {
  while (count > 0) {
    const Stretch& from = stretches[cursor.index];
    const std::uint64_t passed = std::min(count, from.size() - cursor.offset);
    visit(Stretch{from.begin + cursor.offset, from.begin + cursor.offset + passed});
    count -= passed;
    cursor.offset += passed;
    if (cursor.offset == from.size()) cursor = {.index = cursor.index + 1};
  }
}

void Skip(const std::vector<Stretch>& stretches, std::uint64_t count, Cursor& cursor) {
  Walk(stretches, count, cursor, [](const Stretch&) {});
}

Block Take(const std::vector<Stretch>& stretches, std::uint64_t count, Cursor& cursor) {
  Block block;
  Walk(stretches, count, cursor, [&](const Stretch& part) { block.push_back(part); });
  return block;
}

void AppendMerged(std::vector<Stretch>& stretches, const Stretch& next) {
  if (next.begin == next.end) return;
  if (!stretches.empty() && stretches.back().end == next.begin) {
    stretches.back().end = next.end;
  } else {
    stretches.push_back(next);
  }
}

}  // namespace

std::uint64_t SizeOf(const Block& block) {
  std::uint64_t size = 0;
  for (const Stretch& stretch : block) size += stretch.size();
  return size;
}

SampleLedger::SampleLedger(std::uint64_t epoch_size, std::uint64_t seed)
    : epoch_size_(epoch_size), seed_(seed), order_(epoch_size, seed, 0), free_{{0, epoch_size}} {}

void SampleLedger::SetShares(std::vector<std::uint32_t> batch_sizes, std::size_t member) {
  TACTUS_CHECK(member < batch_sizes.size() && reserved_ == 0);
  const auto own = batch_sizes.begin() + static_cast<std::ptrdiff_t>(member);
  before_ = std::accumulate(batch_sizes.begin(), own, std::uint64_t{0});
  own_ = *own;
  wanted_ = std::accumulate(own, batch_sizes.end(), before_);
  TACTUS_CHECK(wanted_ >= 1);
  batch_sizes_ = std::move(batch_sizes);
}

// 128 bits: both factors may be large.
std::uint64_t SampleLedger::Edge(std::uint64_t prefix) const {
  if (reserved_ == wanted_) return prefix;
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(reserved_) * prefix / wanted_);
}

Block SampleLedger::Reserve() {
  TACTUS_CHECK(wanted_ >= 1);
  reserved_ = std::min(wanted_, remaining());
  const std::uint64_t begin = Edge(before_);
  Cursor cursor;
  Skip(free_, begin, cursor);
  return Take(free_, Edge(before_ + own_) - begin, cursor);
}

void SampleLedger::Apply(std::span<const std::uint64_t> counts) {
  TACTUS_CHECK(counts.size() == batch_sizes_.size());
  std::vector<Stretch> left = Unused(counts);
  DropReserved();
  for (const Stretch& stretch : free_) AppendMerged(left, stretch);
  free_ = std::move(left);
  Consume(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
}

void SampleLedger::ApplyWhole() {
  const std::uint64_t used = reserved_;
  DropReserved();
  Consume(used);
}

void SampleLedger::Consume(std::uint64_t used) {
  consumed_ += used;
  if (remaining() > 0) return;
  ++epoch_;
  consumed_ = 0;
  order_ = EpochPermutation(epoch_size_, seed_, epoch_);
  free_ = {{0, epoch_size_}};
}

// What the members left of their blocks.
std::vector<Stretch> SampleLedger::Unused(std::span<const std::uint64_t> counts) const {
  std::vector<Stretch> left;
  Cursor cursor;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint64_t after = before + batch_sizes_[i];
    const std::uint64_t size = Edge(after) - Edge(before);
    before = after;
    TACTUS_CHECK(counts[i] <= size);
    Skip(free_, counts[i], cursor);
    for (const Stretch& stretch : Take(free_, size - counts[i], cursor)) {
      AppendMerged(left, stretch);
    }
  }
  return left;
}

void SampleLedger::DropReserved() {
  Cursor cursor;
  Skip(free_, reserved_, cursor);
  free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(cursor.index));
  if (!free_.empty()) free_.front().begin += cursor.offset;
  reserved_ = 0;
}

}  // namespace tactus::engine
