#include "agent/engine/residual_talks.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "base/check.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

Residuals CopyOf(Encodings& encodings, cuda::Device& device) {
  Residuals own;
  encodings.CopyResiduals(own);
  device.Synchronize();
  return own;
}

// A turn for each of them, in the order of their names.
std::span<std::byte> BytesOf(Residuals& residuals, std::size_t turn) {
  return std::as_writable_bytes(
      std::span(std::next(residuals.begin(), static_cast<std::ptrdiff_t>(turn))->second));
}

class GatherTalk : public collective::Conversation {
 public:
  // parts: of rank 0 one a member, as long as they will be; of the others their own.
  GatherTalk(std::vector<Residuals>& parts, int rank) : parts_(parts), rank_(rank) {}

  std::size_t turns() const override { return parts_.front().size(); }
  void Begin(std::size_t /*turn*/) override {}
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override {
    if (peer != 0) return {};
    return BytesOf(parts_.front(), turn);
  }
  std::span<std::byte> Incoming(std::size_t turn, int peer) override {
    if (rank_ != 0) return {};
    return BytesOf(parts_[static_cast<std::size_t>(peer)], turn);
  }
  void End() override {}

 private:
  std::vector<Residuals>& parts_;
  const int rank_;
};

// In the first turn all say who leaves, in the others go the residuals of who does.
class HandOverTalk : public collective::Conversation {
 public:
  HandOverTalk(Residuals own, const collective::Transport& transport,
               const std::vector<std::uint32_t>& leaving, std::size_t replica_members)
      : own_(std::move(own)),
        replica_members_(replica_members),
        rank_(transport.rank()),
        size_(static_cast<std::size_t>(transport.size())),
        known_(size_ * size_) {
    for (const std::uint32_t rank : leaving) {
      if (rank < size_) KnownTo(rank_)[rank] = std::byte{1};
    }
  }

  std::size_t turns() const override { return 1 + own_.size(); }

  void Begin(std::size_t turn) override {
    if (turn == 1) FindHeirs();
  }

  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override {
    if (turn == 0) return KnownTo(rank_);
    const auto heir = heirs_.find(rank_);
    if (heir == heirs_.end() || heir->second != peer) return {};
    return BytesOf(own_, turn - 1);
  }

  std::span<std::byte> Incoming(std::size_t turn, int peer) override {
    if (turn == 0) return KnownTo(peer);
    const auto left = left_.find(peer);
    return left == left_.end() ? std::span<std::byte>() : BytesOf(left->second, turn - 1);
  }

  void End() override {
    for (const auto& [rank, residuals] : left_) Add(residuals, own_);
  }

  // Known once the first turn is over.
  bool leaves() const { return heirs_.contains(rank_); }
  bool inherits() const { return !left_.empty(); }
  const Residuals& own() const { return own_; }

 private:
  // By rank: 1, it leaves.
  std::span<std::byte> KnownTo(int member) {
    return std::span(known_).subspan(static_cast<std::size_t>(member) * size_, size_);
  }

  // That a member of the rank's replica leaves.
  bool AnyKnows(std::size_t rank) {
    const std::size_t first = rank / replica_members_ * replica_members_;
    bool any = false;
    for (std::size_t member = 0; member < size_; ++member) {
      for (std::size_t of = first; of < first + replica_members_; ++of) {
        any = any || known_[member * size_ + of] != std::byte{0};
      }
    }
    return any;
  }

  // Both lists have whole replicas, so that heirs are at the same place.
  void FindHeirs() {
    std::vector<int> leaving;
    std::vector<int> staying;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      (AnyKnows(rank) ? leaving : staying).push_back(static_cast<int>(rank));
    }
    if (staying.empty()) return;
    for (std::size_t i = 0; i < leaving.size(); ++i) {
      const int heir = staying[i % staying.size()];
      heirs_[leaving[i]] = heir;
      if (heir == rank_) left_[leaving[i]] = own_;  // as long
    }
  }

  Residuals own_;
  const std::size_t replica_members_;
  const int rank_;
  const std::size_t size_;
  std::vector<std::byte> known_;   // to each member
  std::map<int, int> heirs_;       // by who leaves
  std::map<int, Residuals> left_;  // to this member, by who leaves
};

}  // namespace

Completion GatherResiduals(Encodings& encodings, cuda::Device& device,
                           collective::Transport& transport, std::vector<Residuals>& parts) {
  const bool gathers = transport.rank() == 0;
  std::vector<Residuals> found(gathers ? static_cast<std::size_t>(transport.size()) : 1,
                               CopyOf(encodings, device));
  GatherTalk talk(found, transport.rank());
  Completion completion = transport.StartConversation(talk)->Wait();
  parts.clear();
  if (gathers && completion.progress == Progress::kDone) parts = std::move(found);
  return completion;
}

Completion HandOverResiduals(Encodings& encodings, cuda::Device& device,
                             collective::Transport& transport,
                             const std::vector<std::uint32_t>& leaving,
                             std::size_t replica_members) {
  TACTUS_CHECK(static_cast<std::size_t>(transport.size()) % replica_members == 0);
  HandOverTalk talk(CopyOf(encodings, device), transport, leaving, replica_members);
  Completion completion = transport.StartConversation(talk)->Wait();
  if (talk.leaves()) encodings.Forget();
  const bool done = completion.progress == Progress::kDone;
  if (done && talk.inherits()) encodings.Restore(talk.own());
  return completion;
}

}  // namespace tactus::engine
