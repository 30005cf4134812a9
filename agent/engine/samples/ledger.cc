#include "agent/engine/samples/ledger.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/rng.h"

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

void AppendMerged(std::vector<Stretch>& stretches, const Stretch& next) {
  if (next.begin == next.end) return;
  if (!stretches.empty() && stretches.back().end == next.begin) {
    stretches.back().end = next.end;
  } else {
    stretches.push_back(next);
  }
}

std::vector<Stretch> Take(const std::vector<Stretch>& stretches, std::uint64_t count,
                          Cursor& cursor) {
  std::vector<Stretch> taken;
  Walk(stretches, count, cursor, [&](const Stretch& part) { AppendMerged(taken, part); });
  return taken;
}

std::vector<Stretch> Together(const std::vector<Block>& blocks) {
  std::vector<Stretch> all;
  for (const Block& block : blocks) all.insert(all.end(), block.begin(), block.end());
  return all;
}

// What is left of `free` without `taken`; nothing: that does not rise, or is not all there. Both
// are apart: what is taken is in one piece of what is free.
std::optional<std::vector<Stretch>> Without(const std::vector<Stretch>& free,
                                            const std::vector<Stretch>& taken) {
  std::vector<Stretch> left;
  auto next = taken.begin();
  for (Stretch piece : free) {
    while (next != taken.end() && next->begin >= piece.begin && next->end <= piece.end &&
           next->begin < next->end) {
      AppendMerged(left, {piece.begin, next->begin});
      piece.begin = next->end;
      ++next;
    }
    AppendMerged(left, piece);
  }
  return next == taken.end() ? std::optional(std::move(left)) : std::nullopt;
}

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max() / 2;

std::uint64_t LastPosition(std::uint64_t epoch_size, std::optional<std::uint64_t> epochs) {
  return epochs && *epochs < kEnd / epoch_size ? *epochs * epoch_size : kEnd;
}

}  // namespace

std::uint64_t SizeOf(const Block& block) {
  std::uint64_t size = 0;
  for (const Stretch& stretch : block) size += stretch.size();
  return size;
}

std::string ReasonAgainst(const LedgerState& state, std::uint64_t epoch_size) {
  if (state.epoch_size != epoch_size) {
    return "its epochs have " + std::to_string(state.epoch_size) + " samples, the job's have " +
           std::to_string(epoch_size) + ": of other data, or of another part of it (data.subset)";
  }
  if (state.fresh > kEnd)
    return "position " + std::to_string(state.fresh) + " is beyond all epochs";
  std::uint64_t end = 0;
  for (const Stretch& stretch : state.returned) {
    const bool apart = stretch.begin > end || (end == 0 && stretch.begin == 0);
    if (!apart || stretch.end <= stretch.begin || stretch.end >= state.fresh) {
      return "its unused positions [" + std::to_string(stretch.begin) + ", " +
             std::to_string(stretch.end) + ") are not in rising order below " +
             std::to_string(state.fresh);
    }
    end = stretch.end;
  }
  return ReasonAgainst(state.subset, epoch_size);
}

SampleLedger::SampleLedger(std::uint64_t epoch_size, std::uint64_t seed,
                           std::optional<std::uint64_t> epochs_max)
    : epoch_size_(epoch_size),
      seed_(seed),
      end_(LastPosition(epoch_size, epochs_max)),
      subset_(std::make_shared<const Subset>()),
      order_(epoch_size, seed, 0) {}

std::uint64_t SampleLedger::epoch() const {
  std::uint64_t first_unused = fresh_;
  if (!returned_.empty()) first_unused = std::min(first_unused, returned_.front().begin);
  for (const Reservation& reservation : outstanding_) {
    if (!reservation.taken.empty()) {
      first_unused = std::min(first_unused, reservation.taken.front().begin);
    }
  }
  return first_unused / epoch_size_;
}

void SampleLedger::SetShares(std::vector<std::uint64_t> shares, std::size_t member) {
  TACTUS_CHECK(member < shares.size());
  const auto own = shares.begin() + static_cast<std::ptrdiff_t>(member);
  const std::uint64_t before = std::accumulate(shares.begin(), own, std::uint64_t{0});
  const std::uint64_t wanted = std::accumulate(own, shares.end(), before);
  TACTUS_CHECK(wanted >= 1);
  shares_ = std::make_shared<const Shares>(
      Shares{.sizes = shares, .wanted = wanted, .before = before, .own = *own});
}

// 128 bits: both factors may be large.
std::uint64_t SampleLedger::Reservation::Edge(std::uint64_t prefix) const {
  if (size == shares->wanted) return prefix;
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(size) * prefix / shares->wanted);
}

Block SampleLedger::Reserve(Edges edges) {
  Reservation next = Lowest(edges);
  RemoveFree(next.size);
  Block block = BlockIn(next);
  outstanding_.push_back(std::move(next));
  return block;
}

std::uint32_t SampleLedger::contributors() const {
  if (outstanding_.empty()) return 0;
  const Reservation& oldest = outstanding_.front();
  std::uint32_t contributors = 0;
  std::uint64_t prefix = 0;
  for (const std::uint64_t share : oldest.shares->sizes) {
    contributors += oldest.Edge(prefix + share) > oldest.Edge(prefix) ? 1 : 0;
    prefix += share;
  }
  return contributors;
}

Block SampleLedger::Next(Edges edges) const { return BlockIn(Lowest(edges)); }

// A round of the lowest free positions.
SampleLedger::Reservation SampleLedger::Lowest(Edges edges) const {
  TACTUS_CHECK(shares_ != nullptr);
  const std::uint64_t size = FreeUpTo(edges, shares_->wanted);
  return {.taken = LowestFree(size), .size = size, .shares = shares_};
}

// Of this member.
Block SampleLedger::BlockIn(const Reservation& reservation) {
  const Shares& shares = *reservation.shares;
  const std::uint64_t begin = reservation.Edge(shares.before);
  const std::uint64_t end = reservation.Edge(shares.before + shares.own);
  Cursor cursor;
  Skip(reservation.taken, begin, cursor);
  return Take(reservation.taken, end - begin, cursor);
}

// Free positions that a round may take, `wanted` at most.
std::uint64_t SampleLedger::FreeUpTo(Edges edges, std::uint64_t wanted) const {
  std::uint64_t end = end_;
  if (edges == Edges::kKept) {
    const std::uint64_t first = returned_.empty() ? fresh_ : returned_.front().begin;
    end = std::min(end, (first / epoch_size_ + 1) * epoch_size_);
  }
  std::uint64_t free = 0;
  for (const Stretch& stretch : returned_) {
    if (stretch.begin >= end || free >= wanted) break;
    free += std::min(stretch.end, end) - stretch.begin;
  }
  if (free < wanted && fresh_ < end) free += end - fresh_;
  return std::min(free, wanted);
}

std::vector<Stretch> SampleLedger::LowestFree(std::uint64_t count) const {
  Cursor cursor;
  const std::uint64_t old = std::min(count, SizeOf(returned_));
  std::vector<Stretch> lowest = Take(returned_, old, cursor);
  AppendMerged(lowest, {fresh_, fresh_ + (count - old)});
  return lowest;
}

void SampleLedger::RemoveFree(std::uint64_t count) {
  Cursor cursor;
  const std::uint64_t old = std::min(count, SizeOf(returned_));
  Skip(returned_, old, cursor);
  returned_.erase(returned_.begin(), returned_.begin() + static_cast<std::ptrdiff_t>(cursor.index));
  if (!returned_.empty()) returned_.front().begin += cursor.offset;
  fresh_ += count - old;
}

void SampleLedger::Apply(std::span<const std::uint64_t> counts) {
  TACTUS_CHECK(!outstanding_.empty());
  Return(Unused(outstanding_.front(), counts));
  outstanding_.pop_front();
  consumed_ += std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void SampleLedger::ApplyWhole() {
  TACTUS_CHECK(!outstanding_.empty());
  consumed_ += outstanding_.front().size;
  outstanding_.pop_front();
}

void SampleLedger::Abandon() {
  for (const Reservation& reservation : outstanding_) Return(reservation.taken);
  outstanding_.clear();
}

Block SampleLedger::OwnBlock() const {
  TACTUS_CHECK(!outstanding_.empty());
  return BlockIn(outstanding_.front());
}

std::uint64_t SampleLedger::RoundId() const {
  TACTUS_CHECK(!outstanding_.empty());
  const Reservation& oldest = outstanding_.front();
  std::uint64_t id = 0;
  const auto mix = [&id](std::uint64_t word) { id = Mix64((id ^ word) + 0x9e3779b97f4a7c15ULL); };
  for (const Stretch& stretch : oldest.taken) {
    mix(stretch.begin);
    mix(stretch.end);
  }
  for (const std::uint64_t share : oldest.shares->sizes) mix(share);
  return id;
}

// What was never reserved is one piece more, up to the end of all epochs.
std::vector<Stretch> SampleLedger::AllFree() const {
  std::vector<Stretch> free = returned_;
  if (fresh_ < end_) AppendMerged(free, {fresh_, end_});
  return free;
}

bool SampleLedger::MayResume(const std::vector<Block>& blocks) const {
  return Without(AllFree(), Together(blocks)).has_value();
}

Block SampleLedger::Resume(const std::vector<Block>& blocks, std::size_t member) {
  TACTUS_CHECK(member < blocks.size());
  std::optional<std::vector<Stretch>> left = Without(AllFree(), Together(blocks));
  TACTUS_CHECK(left.has_value());
  returned_ = *std::move(left);
  fresh_ = end_;
  if (!returned_.empty() && returned_.back().end == end_) {
    fresh_ = returned_.back().begin;
    returned_.pop_back();
  }
  Shares shares;
  for (const Block& block : blocks) {
    if (shares.sizes.size() == member) {
      shares.before = shares.wanted;
      shares.own = SizeOf(block);
    }
    shares.sizes.push_back(SizeOf(block));
    shares.wanted += shares.sizes.back();
  }
  Reservation reservation;
  reservation.size = shares.wanted;
  reservation.shares = std::make_shared<const Shares>(std::move(shares));
  for (const Stretch& stretch : Together(blocks)) AppendMerged(reservation.taken, stretch);
  outstanding_.push_back(std::move(reservation));
  return blocks[member];
}

LedgerState SampleLedger::State() const {
  SampleLedger without = *this;
  without.Abandon();
  return {.epoch_size = epoch_size_,
          .fresh = without.fresh_,
          .returned = without.returned_,
          .subset = *subset_};
}

void SampleLedger::Restore(const LedgerState& state) {
  TACTUS_CHECK(outstanding_.empty() && ReasonAgainst(state, epoch_size_).empty());
  fresh_ = state.fresh;
  returned_ = state.returned;
  consumed_ = fresh_ - SizeOf(returned_);
  Choose(state.subset);
}

void SampleLedger::Choose(Subset subset) {
  TACTUS_CHECK(ReasonAgainst(subset, epoch_size_).empty());
  subset_ = std::make_shared<const Subset>(std::move(subset));
}

void SampleLedger::PassOver(std::uint64_t positions) {
  TACTUS_CHECK(outstanding_.empty());
  const std::uint64_t free = SizeOf(returned_) + (end_ - std::min(end_, fresh_));
  const std::uint64_t passed = std::min(positions, free);
  RemoveFree(passed);
  consumed_ += passed;
}

// In its epoch, in no order.
std::uint64_t SampleLedger::PlaceOf(std::uint64_t position) const {
  const std::uint64_t epoch = position / epoch_size_;
  if (epoch != order_epoch_) {
    order_ = EpochPermutation(epoch_size_, seed_, epoch);
    order_epoch_ = epoch;
  }
  return order_.At(position % epoch_size_);
}

std::uint64_t SampleLedger::SampleAt(std::uint64_t position) const {
  const std::uint64_t place = PlaceOf(position);
  return subset_->samples.empty() ? place : subset_->samples[place];
}

float SampleLedger::WeightAt(std::uint64_t position) const {
  return weighted() ? subset_->weights[PlaceOf(position)] : 1;
}

// What the members left of their blocks.
std::vector<Stretch> SampleLedger::Unused(const Reservation& reservation,
                                          std::span<const std::uint64_t> counts) {
  const std::vector<std::uint64_t>& shares = reservation.shares->sizes;
  TACTUS_CHECK(counts.size() == shares.size());
  std::vector<Stretch> left;
  Cursor cursor;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint64_t after = before + shares[i];
    const std::uint64_t size = reservation.Edge(after) - reservation.Edge(before);
    before = after;
    TACTUS_CHECK(counts[i] <= size);
    Skip(reservation.taken, counts[i], cursor);
    for (const Stretch& stretch : Take(reservation.taken, size - counts[i], cursor)) {
      AppendMerged(left, stretch);
    }
  }
  return left;
}

void SampleLedger::Return(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> all;
  all.reserve(returned_.size() + stretches.size());
  std::ranges::merge(returned_, stretches, std::back_inserter(all), {}, &Stretch::begin,
                     &Stretch::begin);
  returned_.clear();
  for (const Stretch& stretch : all) AppendMerged(returned_, stretch);
  // What reaches up to fresh_ is as if it had never been reserved.
  if (!returned_.empty() && returned_.back().end == fresh_) {
    fresh_ = returned_.back().begin;
    returned_.pop_back();
  }
}

}  // namespace tactus::engine
