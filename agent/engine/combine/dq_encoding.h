// DQ-SGD: values travel as few bits, by a quantiser whose mean is the value, so that no residual is
// needed. How many follows from how far training has come (dq_bits.h); how they travel stands in
// dq_talk.h.
//
// Values are quantised by units, stretches of a tensor. Tensors of fewer than two dimensions or of
// few values travel as float32.
//
// The spacing is calibrated in the group's first round, and again when what travels becomes another
// thing (changes of parameters after gradients): each piece then has the first bits on average, and
// the spacing is that with which all of them together would have had. It counts in units of a
// sample's, so that a larger batch does not coarsen it. A group that meets anew begins with the
// first bits again, at the state that its training is in.
//
// Source: design; section 2 of the specification. Differs: units are shorter, as a tensor's largest
// value is the further above the others the longer it is, and a scale more costs but 4 bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "agent/engine/combine/dq_talk.h"
#include "agent/engine/combine/encoded_round.h"
#include "agent/engine/combine/piece_talk.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

struct DqOptions {
  double first_bits = 4;  // a value, on average at first, [kDqBitsMin, kDqBitsMax]
  double rho = 8;         // how many times finer the last round is than the first, >= 1
};

// The stretches of a table, in its order, none empty and none longer than a unit.
inline constexpr std::size_t kDqUnitLength = 4096;
std::vector<DqStretch> DqStretchesOf(const cuda::SegmentTable& segments);

class DqEncoding : public TalkingEncoding {
 public:
  // seed: of the job. `round`, the one whose pieces leave, outlives this, as does the device.
  DqEncoding(const DqOptions& options, std::uint64_t seed, const EncodedRound& round,
             cuda::Device& device, const cuda::SegmentTable& segments);

  void Forget() override;
  // Calibrated anew: who led nothing in the group before knows no spacing.
  void Meet(const EncodedMembers& members) override;

 protected:
  std::unique_ptr<PieceTalk> MakeTalk(const Piece& piece) override;
  void Leaves(PieceTalk& talk, const Piece& piece) override;
  std::uint64_t BytesOfValues(const Piece& piece, const PieceTalk& talk) const override;

 private:
  void OpenRound();
  void Calibrate(const EncodedRound& round);

  const DqOptions options_;
  const std::uint32_t seed_;
  const EncodedRound& round_;
  const std::vector<DqStretch> stretches_;
  std::map<std::size_t, const DqTalk*> talks_;  // of each piece, by its offset
  std::optional<EncodedRound> opened_;          // the one whose pieces leave, or left last
  double last_spacing_ = 0;  // at training's end, of a sample's; 0: not calibrated
};

}  // namespace tactus::engine
