// All encodings of one member, by their names in a plan.
//
//   dense      encoding.h          float32, summed by an all-reduce
//   float16    sixteen_bits.h      half the bytes
//   bfloat16   sixteen_bits.h      half the bytes, the range of float32
//   dq         dq_encoding.h       a sixth of the bytes or so; noise, and right on average
//   sketch     sketch_encoding.h   the largest values of the sum, and the rest later
//   adacomp    adacomp_encoding.h  what stands out of each tensor, and the rest later
//   one_bit    one_bit_encoding.h  signs of the momentum, and what they miss later

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "agent/engine/combine/adacomp_encoding.h"
#include "agent/engine/combine/carried_momentum.h"
#include "agent/engine/combine/dq_encoding.h"
#include "agent/engine/combine/encoded_round.h"
#include "agent/engine/combine/encoding.h"
#include "agent/engine/combine/residuals.h"
#include "agent/engine/combine/shared_momentum.h"
#include "agent/engine/combine/sketch_encoding.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/encoding.h"

namespace tactus::engine {

// Makes a member's encoding of vectors of `length` elements; the device outlives it.
using MakeEncoding =
    std::function<std::unique_ptr<Encoding>(cuda::Device& device, std::size_t length)>;

// When signs begin to travel: see one_bit_phase.h.
struct OneBitOptions {
  std::uint64_t warm_up = 0;  // [base steps]; 0: by the second moment's steadiness
};

// Equal on all members.
struct EncodingOptions {
  std::uint64_t seed = 1;  // of the job
  DqOptions dq{};
  SketchOptions sketch{};
  AdacompOptions adacomp{};
  OneBitOptions one_bit{};
  bool carries_momentum = false;  // CarriedMomentum comes with some rounds
  MakeEncoding dense{};           // what kDense stands for; empty: DenseEncoding
};

// Each encoding is made when it is first asked for and lives as long as this. One thread.
class Encodings {
 public:
  // device and segments outlive this.
  Encodings(const EncodingOptions& options, cuda::Device& device,
            const cuda::SegmentTable& segments);

  // A group meets.
  void Meet(EncodedMembers members);

  // The encoding that is in force from now on; another that was forgets what it has left out, which
  // is of a time that is over when it comes into force again.
  Encoding& For(policies::Encoding kind);

  // A round begins whose pieces leave next; none of another leaves any more. What `momentum` and
  // `carried` refer to outlives the round.
  void Open(const EncodedRound& round, const SharedMomentum& momentum = {},
            const CarriedMomentum& carried = {}) {
    round_ = round;
    momentum_ = momentum;
    carried_ = carried;
  }

  // Of the one in force, as Encoding has them; before one is, what it will go on with.
  std::vector<Residual> Residuals();
  // The same in the host's memory, whose own is used again; complete once the device was waited
  // for.
  void CopyResiduals(engine::Residuals& copy);
  void Settle(bool applied);
  void Forget();

  // Keeps what was left out and forgets all else, as Restore does: all members of a group begin
  // anew where one of them takes over another's state, so that none knows what another does not.
  void BeginAnew();

  // Goes on with what an encoding had left out, by its names; what the one in force does not know,
  // or not in that length, is of another and forgotten. Before one is in force: of the first one.
  void Restore(const engine::Residuals& residuals);

 private:
  std::unique_ptr<Encoding> Make(policies::Encoding kind);

  const EncodingOptions options_;
  cuda::Device& device_;
  const cuda::SegmentTable segments_;
  EncodedMembers members_{};
  EncodedRound round_{};
  SharedMomentum momentum_{};
  CarriedMomentum carried_{};
  engine::Residuals restored_{};  // for the first one
  Encoding* in_force_ = nullptr;  // null: none was asked for
  std::array<std::unique_ptr<Encoding>, policies::kEncodingNames.size()> made_{};
};

}  // namespace tactus::engine
