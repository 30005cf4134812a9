#include "agent/collective/root_sum.h"

#include <algorithm>
#include <string>
#include <utility>

#include "agent/collective/mesh_costs.h"
#include "agent/collective/mesh_pieces.h"
#include "agent/collective/rank_sum.h"
#include "agent/collective/together.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

// Whole: the root receives (n - 1) length; in parts: 2 (n - 1) / n length. Equal for two members.
bool GoesWhole(std::size_t length, int size) {
  const auto members = static_cast<std::size_t>(size);
  return members <= 2 || length * (members - 1) * (members - 2) / members <= kExtraLengthMax;
}

// A collective that is conversations of a transport's own, one after the other.
class Conversed final : public Collective {
 public:
  Conversed(Transport& group, std::vector<std::unique_ptr<Conversation>> pieces)
      : pieces_(std::move(pieces)), started_(StartAll(group, pieces_), [](const std::string&) {}) {}

  Progress Poll() override { return started_.Poll(); }
  Completion Wait() override { return started_.Wait(); }

 private:
  static std::vector<std::unique_ptr<Collective>> StartAll(
      Transport& group, const std::vector<std::unique_ptr<Conversation>>& pieces) {
    std::vector<std::unique_ptr<Collective>> started;
    for (const auto& piece : pieces) started.push_back(group.StartConversation(*piece));
    return started;
  }

  const std::vector<std::unique_ptr<Conversation>> pieces_;  // gone behind what is under way
  Together started_;  // a transport that fails one of them fails those behind it, too
};

}  // namespace

RootSum::RootSum(const Transport& group, std::span<float> buffer, int root)
    : rank_(group.rank()),
      size_(group.size()),
      root_(root),
      buffer_(buffer),
      whole_(GoesWhole(buffer.size(), group.size())) {
  TACTUS_CHECK(root >= 0 && root < size_);
  if (whole_ && is_root()) summed_ = buffer_;
  if (!whole_) summed_ = PartOf(rank_);
  inboxes_.resize(summed_.size() * static_cast<std::size_t>(size_ - 1));
}

void RootSum::Begin(std::size_t turn) {
  if (turn == 1) SumInboxes();
}

std::span<const std::byte> RootSum::Outgoing(std::size_t turn, int peer) {
  if (!whole_ && turn == 0) return std::as_bytes(PartOf(peer));
  if (is_root() || peer != root_) return {};
  return std::as_bytes(whole_ ? buffer_ : summed_);
}

std::span<std::byte> RootSum::Incoming(std::size_t turn, int peer) {
  if (!whole_ && turn == 0) return std::as_writable_bytes(InboxOf(peer));
  if (!is_root()) return {};
  return std::as_writable_bytes(whole_ ? InboxOf(peer) : PartOf(peer));
}

void RootSum::End() {
  if (whole_) SumInboxes();
}

std::span<float> RootSum::PartOf(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  const auto count = static_cast<std::size_t>(size_);
  const std::size_t begin = buffer_.size() * index / count;
  return buffer_.subspan(begin, buffer_.size() * (index + 1) / count - begin);
}

std::span<float> RootSum::InboxOf(int peer) {
  const auto index = static_cast<std::size_t>(peer < rank_ ? peer : peer - 1);
  return std::span(inboxes_).subspan(index * summed_.size(), summed_.size());
}

void RootSum::SumInboxes() {
  if (summed_.empty()) return;
  std::vector<const float*> sources;
  for (int rank = 0; rank < size_; ++rank) {
    sources.push_back(rank == rank_ ? summed_.data() : InboxOf(rank).data());
  }
  SumInRankOrder(sources, summed_);
}

AllGather::AllGather(const Transport& group, std::span<const float> own, std::span<float> all,
                     std::size_t stride)
    : rank_(group.rank()), own_(own), all_(all), stride_(stride) {
  TACTUS_CHECK(own.size() <= stride);
  TACTUS_CHECK(all.size() >= stride * static_cast<std::size_t>(group.size() - 1) + own.size());
}

void AllGather::Begin(std::size_t /*turn*/) { std::ranges::copy(own_, PartOf(rank_).begin()); }

std::span<const std::byte> AllGather::Outgoing(std::size_t /*turn*/, int /*peer*/) {
  return std::as_bytes(own_);
}

std::span<std::byte> AllGather::Incoming(std::size_t /*turn*/, int peer) {
  return std::as_writable_bytes(PartOf(peer));
}

std::span<float> AllGather::PartOf(int rank) const {
  return all_.subspan(static_cast<std::size_t>(rank) * stride_, own_.size());
}

std::unique_ptr<Collective> Transport::StartRootSum(std::span<float> buffer, int root) {
  std::vector<std::unique_ptr<Conversation>> pieces;
  for (std::size_t i = 0; i < std::max<std::size_t>(PiecesIn(buffer.size()), 1); ++i) {
    pieces.push_back(std::make_unique<RootSum>(*this, PieceOf(buffer, i), root));
  }
  return std::make_unique<Conversed>(*this, std::move(pieces));
}

std::unique_ptr<Collective> Transport::StartAllGather(std::span<const float> own,
                                                      std::span<float> all) {
  const auto members = static_cast<std::size_t>(size());
  TACTUS_CHECK(all.size() == own.size() * members);
  const std::size_t length = PieceOfGathering(members);
  std::vector<std::unique_ptr<Conversation>> pieces;
  for (std::size_t i = 0; i < PiecesOfGathering(own.size(), members); ++i) {
    const std::span<const float> piece = own.subspan(i * length);
    pieces.push_back(std::make_unique<AllGather>(*this, piece.first(std::min(length, piece.size())),
                                                 all.subspan(i * length), own.size()));
  }
  return std::make_unique<Conversed>(*this, std::move(pieces));
}

}  // namespace tactus::collective
