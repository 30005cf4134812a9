#include "agent/engine/combine/piece_talk.h"

#include <algorithm>

#include "agent/collective/rank_sum.h"
#include "agent/collective/together.h"
#include "agent/engine/combine/node_talk.h"
#include "base/check.h"

namespace tactus::engine {

struct TalkingEncoding::Passing {
  std::unique_ptr<PieceTalk> talk{};
  NodeTalk within{};             // around it, where there are tiers
  std::size_t length = 0;        // of its values: another group may have longer pieces
  cuda::Array<float> on_host{};  // values and lanes, where the device is not the host
  cuda::Array<float> copies{};   // those in it, one behind the other, where members have parts
};

std::span<float> StretchOf(const Piece& piece) {
  float* const begin = piece.values.empty() ? piece.lanes.data() : piece.values.data();
  return {begin, piece.values.size() + piece.lanes.size()};
}

void PieceTalk::Open(const Piece& piece, int rank, int size) {
  TACTUS_CHECK(size >= 2 && rank >= 0 && rank < size);
  piece_ = piece;
  rank_ = rank;
  size_ = size;
  Opened();
}

cuda::FlatRange PieceTalk::SliceOf(int member, std::size_t whole) const {
  const auto index = static_cast<std::size_t>(member);
  const auto count = static_cast<std::size_t>(size_);
  const std::size_t begin = whole * index / count;
  return {.offset = begin, .length = whole * (index + 1) / count - begin};
}

void PieceTalk::PutLanes(std::span<std::byte> message) const {
  std::ranges::copy(std::as_bytes(lanes()), message.begin());
}

void PieceTalk::SumLanes(Messages& messages) {
  if (lanes().empty()) return;
  lane_sources_.clear();
  for (int member = 0; member < size_; ++member) {
    lane_sources_.push_back(member == rank_ ? lanes().data()
                                            : NumbersIn<float>(messages.Of(member)).data());
  }
  collective::SumInRankOrder(lane_sources_, lanes());
}

TalkingEncoding::TalkingEncoding(cuda::Device& device)
    : device_(device), on_host_(!device.cuda_index().has_value()), down_(device.MakeMark()) {}

TalkingEncoding::~TalkingEncoding() = default;

void TalkingEncoding::Meet(const EncodedMembers& members) {
  tiers_ = TiersOf(members.nodes);
  copies_ = members.copies;
}

void TalkingEncoding::ForgetTalks() { passing_.clear(); }

std::unique_ptr<collective::Collective> TalkingEncoding::Exchange(collective::Transport& transport,
                                                                  const Piece& piece) {
  collective::Transport* const of_parts = transport.of_parts();
  dense_ = (of_parts != nullptr ? *of_parts : transport).size() == 1 || !Encodes();
  if (dense_) return transport.StartAllReduceSum(StretchOf(piece));
  Passing& passing = passing_[piece.offset];
  if (passing.talk == nullptr || passing.length != piece.values.size()) {
    passing.talk = MakeTalk(piece);
    passing.length = piece.values.size();
  }
  Leaves(*passing.talk, piece);
  if (of_parts != nullptr) TakeCopiesOut(piece, passing);
  const Piece on_host = BringDown(piece, passing);
  leads_ = of_parts != nullptr || !tiers_.any() || tiers_.Leads(transport.rank());
  if (of_parts != nullptr) return ExchangeParts(transport, passing, on_host);
  if (!tiers_.any()) {
    passing.talk->Open(on_host, transport.rank(), transport.size());
    return transport.StartConversation(*passing.talk);
  }
  TACTUS_CHECK(tiers_.leader_of.size() == static_cast<std::size_t>(transport.size()));
  passing.within.Open(*passing.talk, on_host, transport.rank(), tiers_);
  return transport.StartConversation(passing.within);
}

std::unique_ptr<collective::Collective> TalkingEncoding::ExchangeParts(
    collective::Transport& transport, Passing& passing, const Piece& piece) {
  collective::Transport& of_parts = *transport.of_parts();
  passing.talk->Open({.offset = piece.offset, .values = piece.values}, of_parts.rank(),
                     of_parts.size());
  std::vector<std::unique_ptr<collective::Collective>> both;
  both.push_back(of_parts.StartConversation(*passing.talk));
  if (passing.copies.size() > 0) {
    both.push_back(of_parts.StartAllReduceSum(passing.copies.span()));
  }
  if (!piece.lanes.empty()) both.push_back(transport.StartAllReduceSum(piece.lanes));
  return std::make_unique<collective::Together>(
      std::move(both), [&transport](const std::string& reason) { transport.Abort(reason); });
}

Piece TalkingEncoding::BringDown(const Piece& piece, Passing& passing) {
  if (on_host_) return piece;
  const std::span<float> stretch = StretchOf(piece);
  if (passing.on_host.size() != stretch.size()) {
    passing.on_host = device_.AllocateOnHost<float>(stretch.size());
  }
  const std::span<float> on_host = passing.on_host.span();
  device_.Copy(stretch, on_host);
  down_->Record();
  down_->Wait();
  return {.offset = piece.offset,
          .values = on_host.first(piece.values.size()),
          .lanes = on_host.subspan(piece.values.size())};
}

void TalkingEncoding::Restore(const Piece& piece) {
  if (dense_) return;
  const Passing& passing = passing_.at(piece.offset);
  if (!on_host_) device_.Copy(passing.on_host.span(), StretchOf(piece));
  PutCopiesBack(piece, passing);
}

std::vector<std::span<float>> TalkingEncoding::CopiesIn(const Piece& piece) const {
  std::vector<std::span<float>> copies;
  const std::size_t piece_end = piece.offset + piece.values.size();
  for (const cuda::FlatRange& copy : copies_) {
    const std::size_t begin = std::max(piece.offset, copy.offset);
    const std::size_t end = std::min(piece_end, copy.offset + copy.length);
    if (begin < end) copies.push_back(piece.values.subspan(begin - piece.offset, end - begin));
  }
  return copies;
}

// To the host, whose transports add up in rank order: every place comes to the same bits, as
// communicators of devices need not.
void TalkingEncoding::TakeCopiesOut(const Piece& piece, Passing& passing) {
  const std::vector<std::span<float>> copies = CopiesIn(piece);
  std::size_t length = 0;
  for (const std::span<float> copy : copies) length += copy.size();
  if (passing.copies.size() != length) passing.copies = device_.AllocateOnHost<float>(length);
  std::size_t begin = 0;
  for (const std::span<float> copy : copies) {
    device_.Copy(copy, passing.copies.span().subspan(begin, copy.size()));
    device_.Fill(0, copy);
    begin += copy.size();
  }
}

// Their residuals are none, as that of zero is.
void TalkingEncoding::PutCopiesBack(const Piece& piece, const Passing& passing) {
  if (passing.copies.size() == 0) return;
  std::size_t begin = 0;
  for (const std::span<float> copy : CopiesIn(piece)) {
    device_.Copy(passing.copies.span().subspan(begin, copy.size()), copy);
    begin += copy.size();
  }
}

std::uint64_t TalkingEncoding::Bytes(const Piece& piece) const {
  const auto found = passing_.find(piece.offset);
  const bool dense = dense_ || found == passing_.end();
  if (!dense && !leads_) return piece.lanes.size_bytes();
  if (dense) return piece.lanes.size_bytes() + piece.values.size_bytes();
  const Passing& passing = found->second;
  return piece.lanes.size_bytes() + passing.copies.size() * sizeof(float) +
         BytesOfValues(piece, *passing.talk);
}

}  // namespace tactus::engine
