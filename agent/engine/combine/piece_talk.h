// Encodings whose pieces travel by conversations: a piece is cut into slices, one a member, who
// sums what all others send it of the slice, encoded, and sends all of them the sum, encoded again.
//
// Encoding and decoding are the host's work, done by the thread that leads the conversation, so
// that it is beside the backward pass and nobody waits for it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "agent/collective/conversation.h"
#include "agent/collective/transport.h"
#include "agent/engine/combine/encoding.h"
#include "agent/engine/combine/messages.h"
#include "agent/engine/combine/tiers.h"
#include "cuda/device.h"

namespace tactus::engine {

// Values and lanes of a piece, which lie side by side.
std::span<float> StretchOf(const Piece& piece);

// The conversations of one piece, one after the other: in the end its values are the members' sum,
// of the same bits on all of them, and its lanes are what an all-reduce makes of them.
class PieceTalk : public collective::Conversation {
 public:
  // The next one is of this piece, in the host's memory; between at least two members.
  void Open(const Piece& piece, int rank, int size);

  // Lanes are in the first turn's messages.
  std::size_t FixedBytes(std::size_t turn) const override {
    return turn == 0 ? lanes().size_bytes() : 0;
  }

  // In the place of Open, where another member of the node speaks for this one: adds what was left
  // out before to the values that it is given, as nothing will be left by this member.
  virtual void HandOver(std::span<float>) {}

 protected:
  // What is known when a piece opens is taken over.
  virtual void Opened() {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::span<float> values() const { return piece_.values; }
  std::span<float> lanes() const { return piece_.lanes; }

  // The slice that a member owns, of so many things: the slices of all make up the whole.
  cuda::FlatRange SliceOf(int member, std::size_t whole) const;

  // Lanes go whole to everybody, in front of what else a message has.
  void PutLanes(std::span<std::byte> message) const;
  // lanes <- their sum over the members, in rank order, each but this one's from its message.
  void SumLanes(Messages& messages);

  // One size a member, by what is known of each.
  template <typename SizeOf>
  std::span<const std::size_t> SizesOf(const SizeOf& size_of) {
    sizes_.clear();
    for (int member = 0; member < size_; ++member) sizes_.push_back(size_of(member));
    return sizes_;
  }

 private:
  Piece piece_{};
  int rank_ = 0;
  int size_ = 1;
  std::vector<std::size_t> sizes_;
  std::vector<const float*> lane_sources_;
};

// The pieces' values are left as they are until the conversation takes them over. Alone, a member's
// values are the sum, and nothing is encoded; where nothing is to be, an all-reduce makes it.
//
// Where there are nodes with several members, values travel dense within each (node_talk.h).
//
// Where members have parts of the vector, those who have the same one talk about it, and lanes are
// everybody's all-reduce. What several places have a copy of is zero in what is talked about, and
// travels beside it as it is, over the hosts, which add up in one order: encoded, it would be
// rounded in each place's own way, as what else is scaled or chosen with it there is different, and
// the copies would go apart. They are short.
//
// Where the device is not the host its values come down to pinned memory before, for which the host
// waits, and go up again after.
class TalkingEncoding : public Encoding {
 public:
  explicit TalkingEncoding(cuda::Device& device);
  ~TalkingEncoding() override;

  void Meet(const EncodedMembers& members) override;
  void Prepare(const Piece&) override {}
  std::unique_ptr<collective::Collective> Exchange(collective::Transport& transport,
                                                   const Piece& piece) override;
  void Restore(const Piece& piece) override;
  std::uint64_t Bytes(const Piece& piece) const override;
  std::vector<Residual> Residuals() override { return {}; }
  void Settle(bool) override {}
  void Forget() override {}

 protected:
  // Whether there is anything to encode in the combination whose pieces leave.
  virtual bool Encodes() const { return true; }
  virtual std::unique_ptr<PieceTalk> MakeTalk(const Piece& piece) = 0;
  // A piece is about to leave.
  virtual void Leaves(PieceTalk& talk, const Piece& piece) = 0;
  // Of the values of a piece that was exchanged. [bytes]
  virtual std::uint64_t BytesOfValues(const Piece& piece, const PieceTalk& talk) const = 0;

  // Whether conversations were led in the combination whose pieces left last.
  bool encoded() const { return !dense_; }
  // Whether this member took part in what travelled encoded.
  bool leads() const { return leads_; }
  // Talks are made anew for the next one. Requires: no piece is on its way.
  void ForgetTalks();

 private:
  // A piece that is exchanged, by its offset.
  struct Passing;

  Piece BringDown(const Piece& piece, Passing& passing);
  std::unique_ptr<collective::Collective> ExchangeParts(collective::Transport& transport,
                                                        Passing& passing, const Piece& piece);
  std::vector<std::span<float>> CopiesIn(const Piece& piece) const;
  void TakeCopiesOut(const Piece& piece, Passing& passing);
  void PutCopiesBack(const Piece& piece, const Passing& passing);

  cuda::Device& device_;
  const bool on_host_;  // the device is
  const std::unique_ptr<cuda::Mark> down_;
  bool dense_ = true;
  bool leads_ = true;  // what travels between nodes is this member's to send
  Tiers tiers_{};      // of the group
  std::vector<cuda::FlatRange> copies_;
  std::map<std::size_t, Passing> passing_;
};

}  // namespace tactus::engine
