#include "agent/engine/combine/one_bit_talk.h"

#include <algorithm>
#include <array>

#include "cuda/ops/packed_layout.h"
#include "cuda/ops/sign_pack.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {
namespace {

std::size_t LengthOf(const std::vector<OneBitRun>& runs) {
  std::size_t length = 0;
  for (const OneBitRun& run : runs) length += run.place.length;
  return length;
}

// Calls each(place in the piece, place among what travels so, the run's scale) for every element.
template <typename Each>
void ForEachElement(const std::vector<OneBitRun>& runs, const Each& each) {
  std::size_t packed = 0;
  for (const OneBitRun& run : runs) {
    for (std::size_t i = 0; i < run.place.length; ++i) {
      each(run.place.offset + i, packed++, run.scale);
    }
  }
}

cuda::SegmentTable TableOf(const cuda::FlatRange& range) {
  return {{.offset = range.offset, .length = range.length}};
}

// In `range`, with a scale of its own: what is left takes the place of source.error.
void Encode(const cuda::FlatRange& range, const cuda::SignSource& source, float& scale,
            std::span<std::uint32_t> words) {
  const cuda::SegmentTable table = TableOf(range);
  cuda::host::SignScales(table, cuda::SignSharing::kSegment, source, {&scale, 1});
  cuda::host::SignPack(table, source, {&scale, 1}, words);
}

bool Within(std::size_t place, const cuda::FlatRange& range) {
  return place >= range.offset && place < range.offset + range.length;
}

}  // namespace

OneBitTalk::OneBitTalk(OneBitRuns runs)
    : runs_(std::move(runs)),
      input_(LengthOf(runs_.signs)),
      error_(input_.size()),
      dense_(LengthOf(runs_.dense)) {}

// What was left out of sums is owed once, by whoever has it.
void OneBitTalk::HandOver(std::span<float> values) {
  ForEachElement(runs_.signs, [&](std::size_t i, std::size_t, float scale) {
    values[i] += (errors_.own[i] + errors_.sums[i]) / scale;
  });
  std::ranges::fill(errors_.next_own, 0.0f);
  std::ranges::fill(errors_.next_sums, 0.0f);
}

std::uint64_t OneBitTalk::payload() const {
  const auto members = static_cast<std::uint64_t>(size());
  return members < 2 ? 0 : sent_ * members / (2 * (members - 1));
}

std::size_t OneBitTalk::BytesOf(int owner) const {
  const std::size_t words = cuda::PackedWords(SignsOf(owner).length, 1);
  return (1 + words + DenseOf(owner).length) * sizeof(float);
}

OneBitTalk::Parts OneBitTalk::PartsOf(int owner, std::span<std::byte> message) const {
  const std::size_t words = cuda::PackedWords(SignsOf(owner).length, 1);
  return {.scale = NumbersIn<float>(message).first(1),
          .words = NumbersIn<std::uint32_t>(message).subspan(1, words),
          .dense = NumbersIn<float>(message).subspan(1 + words)};
}

void OneBitTalk::Gather() {
  const cuda::FlatRange owned = SignsOf(rank());
  ForEachElement(runs_.signs, [&](std::size_t i, std::size_t packed, float scale) {
    input_[packed] = scale * values()[i];
    error_[packed] = errors_.own[i] + (Within(packed, owned) ? 0 : errors_.sums[i]);
  });
  ForEachElement(runs_.dense,
                 [&](std::size_t i, std::size_t packed, float) { dense_[packed] = values()[i]; });
}

void OneBitTalk::SendOwn() {
  Gather();
  const std::size_t lane_bytes = lanes().size_bytes();
  outgoing_.MakeRoom(SizesOf([&](int owner) { return lane_bytes + BytesOf(owner); }));
  incoming_.MakeRoom(
      SizesOf([&](int member) { return member == rank() ? 0 : lane_bytes + BytesOf(rank()); }));
  const cuda::SignSource source{.input = input_, .error = error_};
  std::array<float, 1> scale{};
  cuda::host::SignScales(TableOf({.offset = 0, .length = input_.size()}),
                         cuda::SignSharing::kSegment, source, scale);
  sent_ = 0;
  for (int owner = 0; owner < size(); ++owner) {
    const std::span<std::byte> message = outgoing_.Of(owner);
    PutLanes(message);
    const Parts parts = PartsOf(owner, message.subspan(lane_bytes));
    parts.scale.front() = scale.front();
    cuda::host::SignPack(TableOf(SignsOf(owner)), source, scale, parts.words);
    const cuda::FlatRange dense = DenseOf(owner);
    std::ranges::copy(std::span(dense_).subspan(dense.offset, dense.length), parts.dense.begin());
    if (owner != rank()) sent_ += BytesOf(owner);
  }
  ForEachElement(runs_.signs, [&](std::size_t i, std::size_t packed, float) {
    errors_.next_own[i] = error_[packed];
  });
}

// Of this member's slice, in the order of ranks; its own, too, is what others would get.
void OneBitTalk::AddUp() {
  const cuda::FlatRange signs = SignsOf(rank());
  const cuda::FlatRange dense = DenseOf(rank());
  const std::span<float> dense_sum = std::span(dense_).subspan(dense.offset, dense.length);
  std::fill_n(input_.begin() + static_cast<std::ptrdiff_t>(signs.offset), signs.length, 0.0f);
  std::ranges::fill(dense_sum, 0.0f);
  for (int member = 0; member < size(); ++member) {
    Messages& messages = member == rank() ? outgoing_ : incoming_;
    const Parts parts = PartsOf(rank(), messages.Of(member).subspan(lanes().size_bytes()));
    cuda::host::SignAdd(TableOf(signs), {.words = parts.words, .scales = parts.scale}, 1, input_);
    cuda::host::Axpy(1, parts.dense, dense_sum);
  }
}

void OneBitTalk::SendSums() {
  AddUp();
  SumLanes(incoming_);
  outgoing_.MakeRoom(SizesOf([&](int member) { return member == rank() ? BytesOf(rank()) : 0; }));
  incoming_.MakeRoom(SizesOf([&](int owner) { return owner == rank() ? 0 : BytesOf(owner); }));
  const cuda::FlatRange signs = SignsOf(rank());
  ForEachElement(runs_.signs, [&](std::size_t i, std::size_t packed, float) {
    error_[packed] = Within(packed, signs) ? errors_.sums[i] : 0;
  });
  const Parts parts = PartsOf(rank(), outgoing_.Of(rank()));
  Encode(signs, {.input = input_, .error = error_}, parts.scale.front(), parts.words);
  const cuda::FlatRange dense = DenseOf(rank());
  std::ranges::copy(std::span(dense_).subspan(dense.offset, dense.length), parts.dense.begin());
  sent_ += BytesOf(rank()) * static_cast<std::size_t>(size() - 1);
  ForEachElement(runs_.signs, [&](std::size_t i, std::size_t packed, float) {
    errors_.next_sums[i] = error_[packed];
  });
}

void OneBitTalk::End() {
  for (int owner = 0; owner < size(); ++owner) {
    const Parts parts = PartsOf(owner, (owner == rank() ? outgoing_ : incoming_).Of(owner));
    cuda::host::SignUnpack(TableOf(SignsOf(owner)), {.words = parts.words, .scales = parts.scale},
                           input_);
    std::ranges::copy(parts.dense,
                      dense_.begin() + static_cast<std::ptrdiff_t>(DenseOf(owner).offset));
  }
  std::ranges::fill(values(), 0.0f);
  ForEachElement(runs_.signs, [&](std::size_t i, std::size_t packed, float scale) {
    values()[i] = input_[packed] / scale;
  });
  ForEachElement(runs_.dense,
                 [&](std::size_t i, std::size_t packed, float) { values()[i] = dense_[packed]; });
}

}  // namespace tactus::engine
