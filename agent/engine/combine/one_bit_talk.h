// The conversation of 1-bit Adam and LAMB over one piece; see one_bit_encoding.h. In two turns a
// member sends
//
//   to the owners  signs of their slices with one scale for the piece, dense values, lanes
//   to all         signs of the slice's sum with one scale for the slice, dense sums
//
// Signs are of q, the elements' scaled values and what was left of them before:
//
//   member  q = c x + e          sigma = ||q|| / sqrt(n)   sent = +-sigma   e <- q - sent
//   owner   s = sum of sent + f  sigma' = ||s|| / sqrt(k)  sent = +-sigma'  f <- s - sent
//
// n, k: how many elements of the piece, and of the slice, travel as signs. What comes out is
// sent / c, of the same bits on all members; a scale of 0 sends zeros.
//
// What a member owes of a slice as its owner, and no longer owns, as the group or its pieces are
// others, it sends as its own: e <- e + f, f <- 0. Both count in the members' sum, so nothing is
// lost, and nobody has to be asked.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "agent/engine/combine/messages.h"
#include "agent/engine/combine/piece_talk.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// Neighbours in a tensor that travel in one form.
struct OneBitRun {
  cuda::FlatRange place{};  // from the piece's begin, not empty
  float scale = 1;          // c > 0
};

// Which elements of a piece travel how, in rising order; what is in neither is zero on all members.
struct OneBitRuns {
  std::vector<OneBitRun> signs{};
  std::vector<OneBitRun> dense{};  // as float32, whatever their scale
};

// What was left out, of a piece: before the conversation, and where to put what is left by it.
struct OneBitErrors {
  std::span<const float> own{};   // e
  std::span<const float> sums{};  // f
  std::span<float> next_own{};
  std::span<float> next_sums{};
};

class OneBitTalk : public PieceTalk {
 public:
  explicit OneBitTalk(OneBitRuns runs);

  // Of the conversation that is opened next, as long as it takes.
  void SetErrors(const OneBitErrors& errors) { errors_ = errors; }

  void HandOver(std::span<float> values) override;

  // What all-reduces that send as much would be of, lanes left out. [bytes]
  std::uint64_t payload() const;

  std::size_t turns() const override { return 2; }
  void Begin(std::size_t turn) override { turn == kOwn ? SendOwn() : SendSums(); }
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override {
    return outgoing_.Of(turn == kOwn ? peer : rank());
  }
  std::span<std::byte> Incoming(std::size_t, int peer) override { return incoming_.Of(peer); }
  void End() override;

 private:
  static constexpr std::size_t kOwn = 0;

  // The parts of a message of a slice, behind the lanes.
  struct Parts {
    std::span<float> scale{};  // one
    std::span<std::uint32_t> words{};
    std::span<float> dense{};
  };

  cuda::FlatRange SignsOf(int owner) const { return SliceOf(owner, input_.size()); }
  cuda::FlatRange DenseOf(int owner) const { return SliceOf(owner, dense_.size()); }
  std::size_t BytesOf(int owner) const;
  Parts PartsOf(int owner, std::span<std::byte> message) const;

  void Gather();
  void SendOwn();
  void AddUp();
  void SendSums();

  const OneBitRuns runs_;
  OneBitErrors errors_{};
  // One behind the other, what of the piece travels as signs, and dense.
  std::vector<float> input_;
  std::vector<float> error_;
  std::vector<float> dense_;
  std::size_t sent_ = 0;  // [bytes], without lanes
  Messages outgoing_;
  Messages incoming_;
};

}  // namespace tactus::engine
