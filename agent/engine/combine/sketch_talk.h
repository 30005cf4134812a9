// gs-SGD's conversation over one piece. Of each stretch of a tensor that it sketches
//
//   v = e + x              x: what is new, e: what was left out before
//   T = sum of sketch(v)   over the members, or of the largest of each one's v
//   candidates             the m k largest estimates from T, those that are 0 left out
//   w = sum of v           over the members, of each candidate
//   applied                the k largest w; all other values of the sum are 0
//   e' = v                 but 0 where applied, and so is the momentum (residual_encoding.h)
//
// Ties go to the first. T and w are each summed in two turns: everybody sends each member its slice
// and gets the slices' sums, in rank order. So all have the same bits and come to the same
// candidates. Stretches that travel as float32, and lanes, are summed with the tables.
//
// A value that is not finite shows in the tables' sum, so all members see it, and then the piece is
// not a number on any of them.
//
// Source: section 1 of the specification, steps 4 to 10. Differs: no hash of the candidates is
// compared, as sums are of the same bits by construction; and see sketch_encoding.h.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "agent/engine/combine/messages.h"
#include "agent/engine/combine/residual_encoding.h"
#include "agent/engine/combine/sketch_table.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// A stretch of a tensor, sketched by itself or sent as float32.
struct SketchPart {
  cuda::FlatRange place{};     // of the talk's: from the piece's begin
  std::uint32_t columns = 0;   // 0: as float32
  std::size_t candidates = 0;  // m k, > 0 where it is sketched
  std::size_t applied = 0;     // k, likewise
  std::size_t offered = 0;     // of a member's own values, that its sketch is of; 0: all

  bool encoded() const { return columns > 0; }
};

class SketchTalk : public ResidualTalk {
 public:
  using Part = SketchPart;

  explicit SketchTalk(std::vector<SketchPart> parts) : parts_(std::move(parts)) {}

  // Of the conversation that is opened next, the same on all members; outlives it.
  void SetHash(const SketchHash& hash) { hash_ = &hash; }

  // Of what was summed in the last conversation, lanes left out. [bytes]
  std::uint64_t payload() const { return summed_ * sizeof(float); }

  std::size_t turns() const override { return 4; }
  void Begin(std::size_t turn) override;
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override;
  std::span<std::byte> Incoming(std::size_t turn, int peer) override;
  void End() override;

 private:
  // The second turn of each sum.
  static bool GivesSums(std::size_t turn) { return turn % 2 == 1; }

  void PutTables();
  void PutSketch(const SketchPart& part, std::span<const float> gathered, std::span<float> table);
  void TakeTables();
  void FindCandidates(const SketchPart& part, std::span<const float> table);
  void PutCandidates();
  void SumOwnSlice();
  // Those of a member among what is summed.
  std::span<float> SliceFor(int member);

  // Of what is summed first.
  std::size_t LengthOf(const SketchPart& part) const {
    return part.encoded() ? std::size_t{hash_->rows()} * part.columns : part.place.length;
  }
  // The stretch's own of what is as long as the piece.
  template <typename T>
  static std::span<T> Within(std::span<T> whole, const SketchPart& part) {
    return whole.subspan(part.place.offset, part.place.length);
  }

  const std::vector<SketchPart> parts_;
  const SketchHash* hash_ = nullptr;
  bool spoilt_ = false;                    // a value is not finite
  std::size_t summed_ = 0;                 // numbers, without lanes
  std::vector<float> shared_;              // what is summed: this member's, then the members'
  Messages incoming_;                      // of this member's slice
  std::vector<const float*> sources_;      // of a sum, by rank
  std::vector<std::uint32_t> candidates_;  // of all parts, places in their parts
  std::vector<std::size_t> counts_;        // of candidates, one a part
};

}  // namespace tactus::engine
