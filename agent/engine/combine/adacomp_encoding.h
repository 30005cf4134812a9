// AdaComp: of each tensor, bin by bin, what stands out of what has gathered, as signs of one scale
// (adacomp_bins.h). The rest is the member's residual.
//
// A conversation of two turns, to all each: how long the tensors' messages are, with lanes; then
// the messages. Their sum is of no bins, so everybody adds up all of them, in rank order. A tensor
// of fewer than two dimensions or of few values travels as float32; all others are shorter coded,
// whatever stands out of them, as an element takes 2 bytes at most.
//
// Source: [adacomp] from memory, unverified, as section 3 of the specification has it. Differs:
// sgd's momentum comes before it, where it may (residual_encoding.h). What was sent keeps its
// momentum, other than in [dgc]: a sign of the scale is not all that an element had, and without it
// the loss stays higher (decision 101).

#pragma once

#include <cstddef>
#include <vector>

#include "agent/engine/combine/adacomp_talk.h"
#include "agent/engine/combine/parted_encoding.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

struct AdacompOptions {
  std::size_t bin_of_convolutions = 50;  // tensors of four dimensions [elements]
  std::size_t bin = 500;                 // of all others [elements], 1 to kAdacompBinMax
};

// The tensors of a table, in its order and places, none empty.
std::vector<AdacompPart> AdacompPartsOf(const cuda::SegmentTable& segments,
                                        const AdacompOptions& options);

class AdacompEncoding : public PartedEncoding<AdacompTalk> {
 public:
  // The device outlives this.
  AdacompEncoding(const AdacompOptions& options, const ResidualRound& round, cuda::Device& device,
                  const cuda::SegmentTable& segments);
};

}  // namespace tactus::engine
