#include "agent/engine/ledger.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tactus::engine {
namespace {

// Cuts `count` positions off the front of `stretches`, starting at *index with *offset positions
// gone.
Block Take(const std::vector<Stretch>& stretches, std::uint64_t count, std::size_t& index,
           std::uint64_t& offset) {
  Block block;
  while (count > 0) {
    const Stretch& from = stretches[index];
    const std::uint64_t taken = std::min(count, from.size() - offset);
    block.push_back({from.begin + offset, from.begin + offset + taken});
    count -= taken;
    offset += taken;
    if (offset == from.size()) {
      ++index;
      offset = 0;
    }
  }
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

const std::vector<Block>& SampleLedger::Reserve(std::span<const std::uint32_t> batch_sizes) {
  const std::uint64_t wanted =
      std::accumulate(batch_sizes.begin(), batch_sizes.end(), std::uint64_t{0});
  TACTUS_CHECK(wanted >= 1);
  const std::uint64_t given = std::min(wanted, remaining());

  reserved_.clear();
  std::size_t index = 0;
  std::uint64_t offset = 0;
  std::uint64_t before = 0;
  for (const std::uint32_t size : batch_sizes) {
    // 128 bits: both factors may be large.
    const auto edge = [&](std::uint64_t prefix) {
      return static_cast<std::uint64_t>(static_cast<unsigned __int128>(given) * prefix / wanted);
    };
    const std::uint64_t count = edge(before + size) - edge(before);
    before += size;
    reserved_.push_back(Take(free_, count, index, offset));
  }
  return reserved_;
}

void SampleLedger::Apply(std::span<const std::uint64_t> counts) {
  TACTUS_CHECK(counts.size() == reserved_.size());
  std::uint64_t reserved_total = 0;
  std::vector<Stretch> left;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    reserved_total += SizeOf(reserved_[i]);
    std::uint64_t used = counts[i];
    consumed_ += used;
    for (const Stretch& stretch : reserved_[i]) {
      const std::uint64_t here = std::min(used, stretch.size());
      used -= here;
      AppendMerged(left, {stretch.begin + here, stretch.end});
    }
    TACTUS_CHECK(used == 0);
  }

  // Behind what was reserved, the free positions are as they were.
  std::size_t index = 0;
  std::uint64_t offset = 0;
  Take(free_, reserved_total, index, offset);
  for (; index < free_.size(); ++index, offset = 0) {
    AppendMerged(left, {free_[index].begin + offset, free_[index].end});
  }
  free_ = std::move(left);
  reserved_.clear();

  if (remaining() == 0) {
    ++epoch_;
    consumed_ = 0;
    order_ = EpochPermutation(epoch_size_, seed_, epoch_);
    free_ = {{0, epoch_size_}};
  }
}

}  // namespace tactus::engine
