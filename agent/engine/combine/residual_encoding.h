// Encodings that leave out some of the values: what is left out is the member's residual, and is
// added to what it sends next.
//
// What was left out becomes the residual only once the round was applied; one that is skipped, or
// ends with its group, leaves it as it was. It counts in updates: where a round has twice the
// samples, be it of a larger batch or of a larger group, it is worth twice as much in the sum of
// their gradients.
//
// Momentum. What waits for some rounds, and is then stretched over 1 / (1 - beta) more by the
// optimizer's momentum, arrives later than either would have it. So where all members' sgd has
// momentum and a round is a step (CarriedMomentum), momentum comes before the encoding, each
// member's own of what it puts in, and gathers while it waits. Of what is encoded, with g a
// member's sum of gradients over n_r of N samples, x the parameters and w the weight decay:
//
//   u' = beta u + g + n_r w x     u: this member's momentum
//   put in                        u'; with nesterov g + n_r w x + beta u'
//
// and what came out is turned back into the sum of gradients by which the optimizer's ordinary
// step, momentum m and weight decay included, is the mean of what came out:
//
//   (out - N k m) / s - N w x     k = beta, s = 1; with nesterov k = beta^2, s = 1 + beta
//
// Without nesterov m is then what came out. What the optimizer had when another encoding, or
// windows, gave way to this one goes on as the members' shares of it, u = n_r m.
//
// Source: error feedback as in section 0 of the specification (S5). Differs: residuals are scaled
// by samples, which for equal batches is the specification's P'/P (S6). Momentum: [dgc], momentum
// correction; section 1 of the specification has it, too, for the sketch. Differs: it begins with
// the optimizer's, and weight decay has momentum as it does in the optimizer.

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/engine/combine/carried_momentum.h"
#include "agent/engine/combine/encoded_round.h"
#include "agent/engine/combine/piece_talk.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// What a member was left with of a piece, and where to put what it will be left with: all as long
// as the piece, or empty where no momentum is carried.
struct LeftOfPiece {
  std::span<const float> left{};
  std::span<float> still_left{};
  std::span<const float> momentum{};
  std::span<float> next_momentum{};
  float beta = 0;  // 0: none is carried in this round
  bool nesterov = false;
};

// The conversations of one piece that leave something out.
class ResidualTalk : public PieceTalk {
 public:
  // Of the conversation that is opened next.
  void SetLeft(const LeftOfPiece& left) { left_ = left; }

  // In gradients, whose momentum is still to come: each is worth 1 / (1 - beta) of a residual.
  void HandOver(std::span<float> values) override;

 protected:
  std::span<const float> left() const { return left_.left; }
  std::span<float> still_left() const { return left_.still_left; }

  // Puts momentum into the values of a stretch of the piece that is to be encoded.
  void AddMomentum(cuda::FlatRange stretch);
  // Of a stretch, what it will be in the next round; empty: none is carried.
  std::span<float> MomentumOf(cuda::FlatRange stretch) const;

 private:
  LeftOfPiece left_;
};

// What leaves. `round` and `carried` outlive the encoding.
struct ResidualRound {
  const EncodedRound& round;
  const CarriedMomentum* carried = nullptr;  // null: there never is one, and no room for it
};

// MakeTalk makes ResidualTalks.
class ResidualEncoding : public TalkingEncoding {
 public:
  // name: of the residual. length: of the vector. encoded: what of it is, none across two segments.
  // The device outlives this.
  ResidualEncoding(std::string name, const ResidualRound& round, cuda::Device& device,
                   std::size_t length, std::vector<cuda::FlatRange> encoded);

  std::unique_ptr<collective::Collective> Exchange(collective::Transport& transport,
                                                   const Piece& piece) override;
  void Restore(const Piece& piece) override;

  // In the host's memory; and what they are of.
  std::vector<Residual> Residuals() override;
  void Settle(bool applied) override;
  void Forget() override;
  void Follow() override { follows_ = true; }

 protected:
  void Leaves(PieceTalk& talk, const Piece& piece) override;

  const EncodedRound& round() const { return round_.round; }

 private:
  bool carries() const { return round_.carried != nullptr && round_.carried->any(); }
  void OpenRound();
  void TakeMomentumUp();
  // Calls with each stretch of the piece that is encoded: from the vector's begin, and its values.
  template <typename Use>
  void ForEncoded(const Piece& piece, const Use& use) const;

  const std::string name_;
  const ResidualRound round_;
  cuda::Device& device_;
  const std::vector<cuda::FlatRange> encoded_;
  std::vector<float> left_;           // flat
  std::vector<float> still_left_;     // flat: what will be left where the open round is applied
  std::vector<float> momentum_;       // likewise, or empty
  std::vector<float> next_momentum_;  // likewise
  // What they are of: EncodedRound's samples, 0 where nothing was left yet, and what travelled.
  std::array<float, 2> of_{};
  bool open_ = false;     // pieces of a round have left, and it is not known whether it is applied
  bool follows_ = false;  // the optimizer's momentum is that of rounds that were not encoded here
};

}  // namespace tactus::engine
