// Encodings that leave out some of the values: what is left out is the member's residual, and is
// added to what it sends next.
//
// What was left out becomes the residual only once the round was applied; one that is skipped, or
// ends with its group, leaves it as it was. It counts in updates: where a round has twice the
// samples, be it of a larger batch or of a larger group, it is worth twice as much in the sum of
// their gradients.
//
// Source: error feedback as in section 0 of the specification (S5). Differs: residuals are scaled
// by samples, which for equal batches is the specification's P'/P (S6).

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/engine/combine/encoded_round.h"
#include "agent/engine/combine/piece_talk.h"
#include "cuda/device.h"

namespace tactus::engine {

// The conversations of one piece that leave something out.
class ResidualTalk : public PieceTalk {
 public:
  // Of the conversation that is opened next, as long as the piece: what was left out before, and
  // where to put what is left out by it.
  void SetResidual(std::span<const float> left, std::span<float> still_left) {
    left_ = left;
    still_left_ = still_left;
  }

  void HandOver(std::span<float> values) override;

 protected:
  std::span<const float> left() const { return left_; }
  std::span<float> still_left() const { return still_left_; }

 private:
  std::span<const float> left_;
  std::span<float> still_left_;
};

// MakeTalk makes ResidualTalks.
class ResidualEncoding : public TalkingEncoding {
 public:
  // name: of the residual. `round`, the one whose pieces leave, outlives this, as does the device.
  // length: of the vector.
  ResidualEncoding(std::string name, const EncodedRound& round, cuda::Device& device,
                   std::size_t length);

  // In the host's memory; and what they are of.
  std::vector<Residual> Residuals() override;
  void Settle(bool applied) override;
  void Forget() override;

 protected:
  void Leaves(PieceTalk& talk, const Piece& piece) override;

  const EncodedRound& round() const { return round_; }

 private:
  void OpenRound();

  const std::string name_;
  const EncodedRound& round_;
  std::vector<float> left_;        // flat
  std::vector<float> still_left_;  // flat: what will be left where the open round is applied
  // What they are of: EncodedRound's samples, 0 where nothing was left yet, and its changes.
  std::array<float, 2> of_{};
  bool open_ = false;  // pieces of a round have left, and it is not known whether it is applied
};

}  // namespace tactus::engine
