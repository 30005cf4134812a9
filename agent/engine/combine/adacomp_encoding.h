// AdaComp: of each tensor, bin by bin, what stands out of what has gathered, as signs of one scale
// (adacomp_bins.h). The rest is the member's residual, and is added to what comes next.
//
// A conversation of two turns, to all each: how long the tensors' messages are, with lanes; then
// the messages. Their sum is of no bins, so everybody adds up all of them, in rank order. A tensor
// of fewer than two dimensions or of few values travels as float32; all others are shorter coded,
// whatever stands out of them, as an element takes 2 bytes at most.
//
// What was left out becomes the residual only once the round was applied; one that is skipped, or
// ends with its group, leaves it as it was. It counts in updates: where a round has twice the
// samples, be it of a larger batch or of a larger group, it is worth twice as much in the sum of
// their gradients.
//
// Source: [adacomp] from memory, unverified, as section 3 of the specification has it. Differs:
// residuals are scaled by samples, which for equal batches is the specification's P'/P.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/engine/combine/encoded_round.h"
#include "agent/engine/combine/piece_talk.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

struct AdacompOptions {
  std::size_t bin_of_convolutions = 50;  // tensors of four dimensions [elements]
  std::size_t bin = 500;                 // of all others [elements], 1 to kAdacompBinMax
};

class AdacompEncoding : public TalkingEncoding {
 public:
  // `round`, the one whose pieces leave, outlives this, as does the device.
  AdacompEncoding(const AdacompOptions& options, const EncodedRound& round, cuda::Device& device,
                  const cuda::SegmentTable& segments);

  // In the host's memory; and the samples of the round that they are of.
  std::vector<Residual> Residuals() override;
  void Settle(bool applied) override;
  void Forget() override;

 protected:
  std::unique_ptr<PieceTalk> MakeTalk(const Piece& piece) override;
  void Leaves(PieceTalk& talk, const Piece& piece) override;
  std::uint64_t BytesOfValues(const Piece& piece, const PieceTalk& talk) const override;

 private:
  void OpenRound();

  const AdacompOptions options_;
  const EncodedRound& round_;
  const cuda::SegmentTable segments_;
  std::vector<float> left_;         // flat
  std::vector<float> still_left_;   // flat: what will be left where the open round is applied
  std::array<float, 1> samples_{};  // 0: nothing was left yet
  std::optional<EncodedRound> opened_;
  bool open_ = false;  // a round of which it is not known yet whether it is applied
};

}  // namespace tactus::engine
