#include "agent/collective/root_sum.h"

#include <algorithm>

#include "agent/collective/mesh_costs.h"
#include "agent/collective/rank_sum.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

// Whole: the root receives (n - 1) length; in parts: 2 (n - 1) / n length. Equal for two members.
bool GoesWhole(std::size_t length, int size) {
  const auto members = static_cast<std::size_t>(size);
  return members <= 2 || length * (members - 1) * (members - 2) / members <= kExtraLengthMax;
}

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

AllGather::AllGather(const Transport& group, std::span<const float> own, std::span<float> all)
    : rank_(group.rank()), own_(own), all_(all) {
  TACTUS_CHECK(all.size() == own.size() * static_cast<std::size_t>(group.size()));
}

void AllGather::Begin(std::size_t /*turn*/) { std::ranges::copy(own_, PartOf(rank_).begin()); }

std::span<const std::byte> AllGather::Outgoing(std::size_t /*turn*/, int /*peer*/) {
  return std::as_bytes(own_);
}

std::span<std::byte> AllGather::Incoming(std::size_t /*turn*/, int peer) {
  return std::as_writable_bytes(PartOf(peer));
}

std::span<float> AllGather::PartOf(int rank) const {
  return all_.subspan(static_cast<std::size_t>(rank) * own_.size(), own_.size());
}

}  // namespace tactus::collective
