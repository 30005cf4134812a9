// AdaComp: of each tensor, bin by bin, what stands out of what has gathered, as signs of one scale
// (adacomp_bins.h). The rest is the member's residual.
//
// A conversation of two turns, to all each: how long the tensors' messages are, with lanes; then
// the messages. Their sum is of no bins, so everybody adds up all of them, in rank order. A tensor
// of fewer than two dimensions or of few values travels as float32; all others are shorter coded,
// whatever stands out of them, as an element takes 2 bytes at most.
//
// Source: [adacomp] from memory, unverified, as section 3 of the specification has it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "agent/engine/combine/encoded_round.h"
#include "agent/engine/combine/residual_encoding.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

struct AdacompOptions {
  std::size_t bin_of_convolutions = 50;  // tensors of four dimensions [elements]
  std::size_t bin = 500;                 // of all others [elements], 1 to kAdacompBinMax
};

class AdacompEncoding : public ResidualEncoding {
 public:
  // `round`, the one whose pieces leave, outlives this, as does the device.
  AdacompEncoding(const AdacompOptions& options, const EncodedRound& round, cuda::Device& device,
                  const cuda::SegmentTable& segments);

 protected:
  std::unique_ptr<PieceTalk> MakeTalk(const Piece& piece) override;
  std::uint64_t BytesOfValues(const Piece& piece, const PieceTalk& talk) const override;

 private:
  const AdacompOptions options_;
  const cuda::SegmentTable segments_;
};

}  // namespace tactus::engine
