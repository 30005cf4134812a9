// 1-bit Adam and LAMB: once the second moment v is frozen, which all members do alike, signs of the
// momentum travel, with one scale for many, and what they leave out is added to what travels next.
// Before, and alone, gradients travel as float32.
//
// Member r has the gradient g_r, a mean over its n_r of the round's N samples, and the momentum m
// that all have. It puts in its share of the momentum that is to come, summed over the members
//
//   M_r = n_r / N (beta1 m + (1 - beta1) g_r)     sum_r M_r = beta1 m + (1 - beta1) g
//
// and what came out, M, is turned back into the sum of gradients of which it would have been made:
//
//   N (M - beta1 m) / (1 - beta1)
//
// so that an optimizer's ordinary step arrives at the momentum M. That it is a difference, divided
// by a small number, amplifies no rounding in M: what the division adds the step's 1 - beta1 takes
// away, and M is right to 6 roundings of |M| + |beta1 m|.
//
// How signs travel stands in one_bit_talk.h. Elements whose v is exactly 0, which never had a
// gradient, are 0 on all members: a sign cannot say so, and the step divides by the root of v.
// Tensors that had no momentum when v was frozen travel as float32; all others as signs, biases
// too, as c_l brings them to one size.
//
// Source: [deepspeed] deepspeed/runtime/fp16/onebit/{adam,lamb}.py and runtime/comm/nccl.py, as
// section 7 of the specification has them. Differs: a scale for each piece and slice, not for the
// model; c_l for Adam, too; members' parts are weighted by their samples; owners' errors of another
// group are sent on, not reset; padding and elements without a gradient are no part of a scale.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/engine/combine/one_bit_talk.h"
#include "agent/engine/combine/piece_talk.h"
#include "agent/engine/combine/shared_momentum.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

class OneBitEncoding : public TalkingEncoding {
 public:
  // `momentum`, of the round whose pieces leave, outlives this, as does the device.
  OneBitEncoding(const SharedMomentum& momentum, cuda::Device& device,
                 const cuda::SegmentTable& segments);

  std::unique_ptr<collective::Collective> Exchange(collective::Transport& transport,
                                                   const Piece& piece) override;
  void Restore(const Piece& piece) override;

  // In the host's memory: what is left of this member's own, and of the sums of its slices.
  std::vector<Residual> Residuals() override;
  void Settle(bool applied) override;
  void Forget() override;

 protected:
  bool Encodes() const override { return !momentum_.first.empty(); }
  std::unique_ptr<PieceTalk> MakeTalk(const Piece& piece) override;
  void Leaves(PieceTalk& talk, const Piece& piece) override;
  std::uint64_t BytesOfValues(const Piece& piece, const PieceTalk& talk) const override;

 private:
  void FollowPhase();

  const SharedMomentum& momentum_;
  cuda::Device& device_;
  const cuda::SegmentTable segments_;
  // Flat. `next`: what will be left where the open round is applied.
  std::vector<float> own_;
  std::vector<float> sums_;
  std::vector<float> next_own_;
  std::vector<float> next_sums_;
  std::optional<std::uint64_t> since_;  // of the v that the pieces' runs are made for
  bool open_ = false;  // a round of which it is not known yet whether it is applied
};

}  // namespace tactus::engine
