// Half the bytes: values travel as float16 or bfloat16, both ways, and are summed in float32.
//
//   member i to the owner of a slice    round(2^k_i x_i), k_i          for each slice
//   the owner to all                    round(2^k S), k, S = sum_i x_i in rank order; its own x
//                                       is not rounded
//
// Rounding is to nearest, ties to even, so each value errs by at most 2^-11 of itself on either way
// (bfloat16: 2^-8) and no residual is kept. All members, the owner too, take the rounded sum.
//
// float16 ends at 65504, and a sum of gradients may be anywhere: k is chosen by each sender for
// each slice, so that the slice's largest finite magnitude comes to [2^14, 2^15), and sent along.
// So nothing overflows, and what is 2^-29 of the largest or more keeps bits. bfloat16 has the range
// of float32: k = 0.
//
// A value that is not finite stays so in the sum, and all skip the update, as with dense values.
//
// Source: design.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "agent/engine/combine/piece_talk.h"

namespace tactus::engine {

// 2^k for the finite values of a slice in float16; 1 where there are none but zeros.
float Float16Factor(std::span<const float> values);

// Of a 16-bit format what the encoding needs; see cuda/ops/convert.h.
struct SixteenBitFormat {
  float (*factor)(std::span<const float> values) = nullptr;
  void (*to)(float factor, std::span<const float> from, std::span<std::uint16_t> to) = nullptr;
  void (*from)(float factor, std::span<const std::uint16_t> from, std::span<float> to) = nullptr;
};
extern const SixteenBitFormat kFloat16Format;
extern const SixteenBitFormat kBfloat16Format;

class SixteenBitEncoding : public TalkingEncoding {
 public:
  SixteenBitEncoding(const SixteenBitFormat& format, cuda::Device& device)
      : TalkingEncoding(device), format_(format) {}

 protected:
  std::unique_ptr<PieceTalk> MakeTalk(const Piece& piece) override;
  void Leaves(PieceTalk&, const Piece&) override {}
  std::uint64_t BytesOfValues(const Piece& piece, const PieceTalk&) const override {
    return piece.values.size() * sizeof(std::uint16_t);
  }

 private:
  const SixteenBitFormat& format_;
};

}  // namespace tactus::engine
