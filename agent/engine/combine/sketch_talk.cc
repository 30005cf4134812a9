#include "agent/engine/combine/sketch_talk.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "agent/collective/rank_sum.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {

std::span<float> SketchTalk::SliceFor(int member) {
  const cuda::FlatRange slice = SliceOf(member, shared_.size());
  return std::span(shared_).subspan(slice.offset, slice.length);
}

void SketchTalk::Begin(std::size_t turn) {
  if (GivesSums(turn)) return SumOwnSlice();
  if (turn == 0) {
    PutTables();
  } else {
    TakeTables();
    PutCandidates();
  }
  const std::size_t own = SliceFor(rank()).size_bytes();
  incoming_.MakeRoom(SizesOf([&](int member) { return member == rank() ? 0 : own; }));
}

std::span<const std::byte> SketchTalk::Outgoing(std::size_t turn, int peer) {
  return std::as_bytes(SliceFor(GivesSums(turn) ? rank() : peer));
}

// What others have summed comes to where it belongs.
std::span<std::byte> SketchTalk::Incoming(std::size_t turn, int peer) {
  return GivesSums(turn) ? std::as_writable_bytes(SliceFor(peer)) : incoming_.Of(peer);
}

void SketchTalk::SumOwnSlice() {
  const std::span<float> own = SliceFor(rank());
  sources_.clear();
  for (int member = 0; member < size(); ++member) {
    sources_.push_back(member == rank() ? own.data()
                                        : NumbersIn<float>(incoming_.Of(member)).data());
  }
  collective::SumInRankOrder(sources_, own);
}

void SketchTalk::PutTables() {
  std::size_t length = 0;
  for (const SketchPart& part : parts_) length += LengthOf(part);
  summed_ = length;
  shared_.assign(length + lanes().size(), 0);
  std::span<float> rest = shared_;
  for (const SketchPart& part : parts_) {
    const std::span<float> own = rest.first(LengthOf(part));
    rest = rest.subspan(own.size());
    const std::span<const float> fresh = Within(values(), part);
    if (!part.encoded()) {
      std::ranges::copy(fresh, own.begin());
      continue;
    }
    AddMomentum(part.place);
    const std::span<float> gathered = Within(still_left(), part);
    std::ranges::transform(Within(left(), part), fresh, gathered.begin(), std::plus());
    PutSketch(part, gathered, own);
  }
  std::ranges::copy(lanes(), rest.begin());
}

void SketchTalk::PutSketch(const SketchPart& part, std::span<const float> gathered,
                           std::span<float> table) {
  if (part.offered == 0) return AddToSketch(*hash_, gathered, table);
  AddToSketch(*hash_, gathered, LargestOf(gathered, part.offered), table);
}

void SketchTalk::TakeTables() {
  candidates_.clear();
  counts_.assign(parts_.size(), 0);
  spoilt_ = false;
  std::span<const float> rest = shared_;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const SketchPart& part = parts_[i];
    const std::span<const float> sum = rest.first(LengthOf(part));
    rest = rest.subspan(sum.size());
    if (!part.encoded()) {
      std::ranges::copy(sum, Within(values(), part).begin());
    } else if (std::isfinite(cuda::host::SquaredNorm(sum))) {
      const std::size_t before = candidates_.size();
      FindCandidates(part, sum);
      counts_[i] = candidates_.size() - before;
    } else {
      spoilt_ = true;
    }
  }
  std::ranges::copy(rest, lanes().begin());
}

// The estimates stand where the sum will.
void SketchTalk::FindCandidates(const SketchPart& part, std::span<const float> table) {
  const std::span<float> estimates = Within(values(), part);
  EstimateFromSketch(*hash_, table, estimates);
  for (const std::uint32_t place : LargestOf(estimates, part.candidates)) {
    if (estimates[place] != 0) candidates_.push_back(place);
  }
}

void SketchTalk::PutCandidates() {
  shared_.clear();
  if (spoilt_) return;
  std::span<const std::uint32_t> rest = candidates_;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::span<const float> gathered = Within(still_left(), parts_[i]);
    for (const std::uint32_t place : rest.first(counts_[i])) shared_.push_back(gathered[place]);
    rest = rest.subspan(counts_[i]);
  }
  summed_ += shared_.size();
}

void SketchTalk::End() {
  if (spoilt_) {
    std::ranges::fill(values(), std::numeric_limits<float>::quiet_NaN());
    return;
  }
  std::span<const std::uint32_t> places = candidates_;
  std::span<const float> sums = shared_;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].encoded()) continue;
    const std::span<float> values_of = Within(values(), parts_[i]);
    const std::span<float> gathered = Within(still_left(), parts_[i]);
    const std::span<float> momentum = MomentumOf(parts_[i].place);
    std::ranges::fill(values_of, 0.0f);
    for (const std::uint32_t which : LargestOf(sums.first(counts_[i]), parts_[i].applied)) {
      values_of[places[which]] = sums[which];
      gathered[places[which]] = 0;
      if (!momentum.empty()) momentum[places[which]] = 0;
    }
    places = places.subspan(counts_[i]);
    sums = sums.subspan(counts_[i]);
  }
}

}  // namespace tactus::engine
