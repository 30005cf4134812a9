// gs-SGD: of the members' sum the largest values, which a sketch of it shows (sketch_table.h); they
// are then summed exactly. The rest is each member's residual, and is added to what comes next. How
// it travels stands in sketch_talk.h.
//
// Stretches of a tensor have sketches of their own, with their share of what is applied and of the
// columns. A tensor of fewer than two dimensions or of few values travels as float32, and so does a
// stretch of which the tables and the candidates' values would be no shorter.
//
// The hashes' seed is another in each round, so that no two elements always meet: what is left of
// one round is elements and no table.
//
// Source: section 1 of the specification, gs-SGD from memory, unverified, with [sketched-sgd] for
// candidates and their exact values. Differs: k is a share of each stretch and not of the whole
// vector, so that a stretch's table is in the cache, no piece waits for the last one, and tensors
// of small gradients have their turn as well; and members offer their largest values alone, which
// the specification leaves to choose (1c, step 4). The exact sums are of all that they have.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/engine/combine/parted_encoding.h"
#include "agent/engine/combine/sketch_talk.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/encodings.h"

namespace tactus::engine {

struct SketchOptions {
  double share = 0.01;           // of the values that a round applies, k / n, (0, 1]
  std::uint32_t candidates = 4;  // values looked at for each one applied, m, >= 1
  std::uint32_t rows = 3;        // odd, up to kSketchRowsMax
  // Of the sketch of a stretch of kSketchLength; shorter ones have them in proportion. 0: one for
  // each value looked at, with which a round sends (rows + 1) candidates share of dense bytes.
  std::uint32_t columns = 0;
  // Of a member's own values the largest, for each one applied, that its sketch is of; 0: all. What
  // is small everywhere only covers what is looked for: of normal values the noise of a row is five
  // times what one of them is, by default otherwise.
  std::uint32_t offered = 4;
};

// The stretches of a table, in its order and places, none empty and none that is sketched longer
// than this. [values]
inline constexpr std::size_t kSketchLength = policies::kSketchStretch;
std::vector<SketchPart> SketchPartsOf(const cuda::SegmentTable& segments,
                                      const SketchOptions& options);

class SketchEncoding : public PartedEncoding<SketchTalk> {
 public:
  // seed: of the job. The device outlives this.
  SketchEncoding(const SketchOptions& options, std::uint64_t seed, const ResidualRound& round,
                 cuda::Device& device, const cuda::SegmentTable& segments);

 protected:
  void Leaves(PieceTalk& talk, const Piece& piece) override;

 private:
  const std::uint64_t seed_;
  const std::size_t longest_;  // stretch that is sketched; 0: none is
  // Of the round whose pieces leave, or left last; empty before the first: most members never
  // sketch.
  SketchHash hash_;
};

}  // namespace tactus::engine
