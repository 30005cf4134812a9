#include "agent/engine/combine/dq_talk.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "cuda/ops/extremes.h"
#include "cuda/ops/quantise.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {
namespace {

// The uses of random words in a round: whether they are of what is sent or of sums.
constexpr std::uint32_t kCodesStream = 0;
constexpr std::uint32_t kSumsStream = 1;

}  // namespace

DqTalk::DqTalk(std::span<const DqStretch> stretches, std::uint32_t first_number, std::size_t offset)
    : stretches_(stretches),
      first_number_(first_number),
      largest_(stretches.size()),
      nonfinite_(stretches.size()),
      dense_(stretches.size()),
      bits_(stretches.size()),
      sum_bits_(stretches.size()),
      exact_(stretches.size()),
      code_scales_(stretches.size()),
      sum_scales_(stretches.size()) {
  for (const DqStretch& stretch : stretches) {
    table_.push_back({.offset = stretch.place.offset - offset, .length = stretch.place.length});
  }
}

void DqTalk::Opened() {
  if (slices_.size() != static_cast<std::size_t>(size())) CutSlices();
  draws_ = rule_.draws;
  draws_.worker = static_cast<std::uint32_t>(rank());
  sent_ = 0;
}

// A unit is owned by whom its first value falls to, so that slices differ by a unit at most.
void DqTalk::CutSlices() {
  slices_.assign(static_cast<std::size_t>(size()), {});
  std::size_t total = 0;
  for (const cuda::Segment& unit : table_) total += unit.length;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    Slice& slice = slices_[begin * slices_.size() / total];
    if (slice.table.empty()) slice.first = i;
    slice.table.push_back(table_[i]);
    begin += table_[i].length;
  }
}

std::vector<DqUnit> DqTalk::CodedUnits() const {
  std::vector<DqUnit> units;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (stretches_[i].dense) continue;
    units.push_back({.length = table_[i].length, .largest = largest_[i]});
  }
  return units;
}

std::uint64_t DqTalk::payload() const {
  const auto members = static_cast<std::uint64_t>(size());
  return members < 2 ? 0 : sent_ * members / (2 * (members - 1));
}

void DqTalk::Begin(std::size_t turn) {
  if (turn == kNorms) SendNorms();
  if (turn == kCodes) SendCodes();
  if (turn == kSums) SendSums();
}

void DqTalk::SendNorms() {
  cuda::host::ExtremesPerSegment(values(), table_, {.max_abs = largest_, .nonfinite = nonfinite_});
  const std::size_t bytes = (1 + table_.size()) * sizeof(float);
  const std::size_t whole = lanes().size_bytes() + bytes;
  outgoing_.MakeRoom(SizesOf([&](int member) { return member == rank() ? whole : 0; }));
  incoming_.MakeRoom(SizesOf([&](int member) { return member == rank() ? 0 : whole; }));
  sent_ += bytes * static_cast<std::size_t>(size() - 1);
  const std::span<std::byte> message = outgoing_.Of(rank());
  PutLanes(message);
  const std::span<float> norms = NumbersIn<float>(message.subspan(lanes().size_bytes()));
  norms.front() = std::accumulate(nonfinite_.begin(), nonfinite_.end(), 0.0f);
  std::ranges::copy(largest_, norms.begin() + 1);
}

void DqTalk::AgreeOnNorms() {
  SumLanes(incoming_);
  spoilt_ = false;
  for (int member = 0; member < size(); ++member) {
    Messages& messages = member == rank() ? outgoing_ : incoming_;
    const std::span<const float> norms =
        NumbersIn<float>(messages.Of(member).subspan(lanes().size_bytes()));
    spoilt_ = spoilt_ || norms.front() > 0;
    for (std::size_t i = 0; i < largest_.size(); ++i) {
      largest_[i] = std::max(largest_[i], norms[i + 1]);
    }
  }
}

void DqTalk::ChooseBits() {
  const std::vector<DqUnit> coded = CodedUnits();
  const double spacing = rule_.spacing > 0 ? rule_.spacing : DqSpacingFor(coded, rule_.bits);
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const unsigned bits =
        stretches_[i].dense ? (largest_[i] > 0 ? kDqDense : 0) : DqBits(largest_[i], spacing);
    dense_[i] = bits == kDqDense ? 1 : 0;
    bits_[i] = static_cast<std::uint8_t>(bits == kDqDense ? 0 : bits);
    sum_bits_[i] = bits_[i];
    exact_[i] = 0;
    code_scales_[i] = largest_[i];
    if (bits_[i] == 0) continue;
    const unsigned wide = DqSumBits(bits_[i], static_cast<unsigned>(size()));
    if (wide == 0) continue;
    sum_bits_[i] = static_cast<std::uint8_t>(wide);
    exact_[i] = 1;
    code_scales_[i] = static_cast<float>(DqLevels(bits_[i]));  // a code stands for itself
  }
}

std::size_t DqTalk::BytesOf(const Slice& slice, std::size_t turn) {
  if (spoilt_) return 0;
  std::size_t numbers = turn == kSums ? slice.table.size() : 0;
  numbers += cuda::FirstWords(slice.table, slice.Of(turn == kSums ? sum_bits_ : bits_)).back();
  for (std::size_t i = 0; i < slice.table.size(); ++i) {
    if (dense_[slice.first + i] != 0) numbers += slice.table[i].length;
  }
  return numbers * sizeof(float);
}

DqTalk::Parts DqTalk::PartsOf(const Slice& slice, std::size_t turn, std::span<std::byte> message) {
  const std::size_t scales = turn == kSums ? slice.table.size() : 0;
  const std::size_t words =
      cuda::FirstWords(slice.table, slice.Of(turn == kSums ? sum_bits_ : bits_)).back();
  return {.scales = NumbersIn<float>(message).first(scales),
          .words = NumbersIn<std::uint32_t>(message).subspan(scales, words),
          .dense = NumbersIn<float>(message).subspan(scales + words)};
}

template <typename Each>
void DqTalk::ForEachDense(const Slice& slice, std::span<float> dense, const Each& each) {
  for (std::size_t i = 0; i < slice.table.size(); ++i) {
    if (dense_[slice.first + i] == 0) continue;
    const cuda::Segment& unit = slice.table[i];
    each(values().subspan(unit.offset, unit.length), dense.first(unit.length));
    dense = dense.subspan(unit.length);
  }
}

void DqTalk::SendCodes() {
  AgreeOnNorms();
  if (!spoilt_) ChooseBits();
  outgoing_.MakeRoom(SizesOf([&](int owner) { return BytesOf(SliceOf(owner), kCodes); }));
  incoming_.MakeRoom(
      SizesOf([&](int member) { return member == rank() ? 0 : BytesOf(SliceOf(rank()), kCodes); }));
  if (spoilt_) return;
  draws_.stream = kCodesStream;
  for (int owner = 0; owner < size(); ++owner) {
    const Slice& slice = SliceOf(owner);
    const std::span<std::byte> message = outgoing_.Of(owner);
    const Parts parts = PartsOf(slice, kCodes, message);
    cuda::host::Quantise(slice.table, {.bits = slice.Of(bits_), .scales = slice.Of(largest_)},
                         {.values = values(),
                          .draws = draws_,
                          .first_segment = first_number_ + static_cast<std::uint32_t>(slice.first)},
                         parts.words);
    ForEachDense(slice, parts.dense, [](std::span<float> own, std::span<float> sent) {
      std::ranges::copy(own, sent.begin());
    });
    if (owner != rank()) sent_ += message.size();
  }
}

// Its own, too, are what others would get.
void DqTalk::SumCodes() {
  const Slice& own = SliceOf(rank());
  for (const cuda::Segment& unit : own.table) {
    std::ranges::fill(values().subspan(unit.offset, unit.length), 0.0f);
  }
  for (int member = 0; member < size(); ++member) {
    const Parts parts = PartsOf(own, kCodes, (member == rank() ? outgoing_ : incoming_).Of(member));
    cuda::host::DequantiseAdd(own.table, {.bits = own.Of(bits_), .scales = own.Of(code_scales_)},
                              {.words = parts.words}, values());
    ForEachDense(own, parts.dense, [](std::span<float> sum, std::span<float> sent) {
      cuda::host::Axpy(1, sent, sum);
    });
  }
}

// A sum of codes has its own number of levels for a scale, and is quantised as it is, whatever is
// drawn. One that is not finite any more spoils its unit.
void DqTalk::ScaleSums() {
  const Slice& own = SliceOf(rank());
  cuda::host::ExtremesPerSegment(values(), own.table,
                                 {.max_abs = own.Of(sum_scales_), .nonfinite = own.Of(nonfinite_)});
  for (std::size_t i = own.first; i < own.first + own.table.size(); ++i) {
    if (exact_[i] != 0) sum_scales_[i] = static_cast<float>(DqLevels(sum_bits_[i]));
    if (nonfinite_[i] > 0) sum_scales_[i] = std::numeric_limits<float>::infinity();
  }
}

void DqTalk::SendSums() {
  if (!spoilt_) SumCodes();
  const auto size_of = [&](int owner) { return BytesOf(SliceOf(owner), kSums); };
  outgoing_.MakeRoom(SizesOf([&](int member) { return member == rank() ? size_of(member) : 0; }));
  incoming_.MakeRoom(SizesOf([&](int owner) { return owner == rank() ? 0 : size_of(owner); }));
  if (spoilt_) return;
  ScaleSums();
  const Slice& own = SliceOf(rank());
  const std::span<std::byte> message = outgoing_.Of(rank());
  const Parts parts = PartsOf(own, kSums, message);
  draws_.stream = kSumsStream;
  cuda::host::Quantise(own.table, {.bits = own.Of(sum_bits_), .scales = own.Of(sum_scales_)},
                       {.values = values(),
                        .draws = draws_,
                        .first_segment = first_number_ + static_cast<std::uint32_t>(own.first)},
                       parts.words);
  for (std::size_t i = 0; i < own.table.size(); ++i) {
    const std::size_t unit = own.first + i;
    const double scale = sum_scales_[unit];
    parts.scales[i] = static_cast<float>(
        exact_[unit] != 0 ? scale * largest_[unit] / DqLevels(bits_[unit]) : scale);
  }
  ForEachDense(own, parts.dense, [](std::span<float> sum, std::span<float> sent) {
    std::ranges::copy(sum, sent.begin());
  });
  sent_ += message.size() * static_cast<std::size_t>(size() - 1);
}

void DqTalk::End() {
  if (spoilt_) {
    std::ranges::fill(values(), std::numeric_limits<float>::quiet_NaN());
    return;
  }
  for (int owner = 0; owner < size(); ++owner) {
    const Slice& slice = SliceOf(owner);
    const Parts parts = PartsOf(slice, kSums, (owner == rank() ? outgoing_ : incoming_).Of(owner));
    cuda::host::Dequantise(slice.table, {.bits = slice.Of(sum_bits_), .scales = parts.scales},
                           parts.words, values());
    ForEachDense(slice, parts.dense, [](std::span<float> sum, std::span<float> sent) {
      std::ranges::copy(sent, sum.begin());
    });
  }
}

}  // namespace tactus::engine
