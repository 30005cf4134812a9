// Local steps: a member's parameters leave the group's for a window of steps and come back.

#pragma once

#include <cstddef>
#include <span>

#include "cuda/device.h"

namespace tactus::engine {

// The group's parameters x at a window's start, and what becomes of them at its end:
//
//   delta_i = x_i - x                                what member i puts in
//   without block momentum   x <- x + delta          delta: the combined one
//   with                     G = -delta / eta;  u <- beta u + G;  x <- x - eta u;  u = 0 at first
//
// eta   the learning rate of the window; u is in units of a gradient, so it needs no change when
//       eta does
// beta  block momentum
//
// An elastic window may end early: training ends or pauses, or no samples are left. One of a share
// r < 1 of its length is moved by as much of what u would move a whole one, and leaves the rest for
// those to come:
//
//   x <- x - eta (r beta u + G);  u <- (1 - r (1 - beta)) u + G
//
// beta / (1 - beta) of u, what it moves all windows to come by, is then the same whether windows
// are short or not, as long as beta is. A short one that u moves whole is moved by more than its
// steps are worth, and at training's end no window makes up for it (decision 55).
//
// A window that is undone leaves u as it was. Differs: the optimizers' own states are those after
// the window (SGD's momentum is reset), as a copy of them would double the memory for a rare event.
//
// u and x are equal on all members. Memory is taken when it is first needed. One thread.
//
// Source: [slowmo] algorithm 1 with alpha = 1, which is BMUF; that AdaComm uses it: memory,
// unverified. Differs: windows that end early, which it has none of.
class LocalSteps {
 public:
  explicit LocalSteps(cuda::Device& device);

  // A window begins at these parameters, with sums of zero.
  void Begin(std::span<const float> parameters);

  // delta <- parameters - x.
  void TakeDelta(std::span<const float> parameters, std::span<float> delta);

  // parameters <- the group's after the window. share: of its length, r, in (0, 1]; less than 1
  // without a gate.
  void Apply(std::span<const float> delta, const cuda::BlockMomentumStep& step,
             std::span<float> parameters, double share = 1);

  // parameters <- x, as if the window had not been.
  void Restore(std::span<float> parameters);

  // The group is lost within the window: parameters <- x, which the member's own take the place of,
  // until they go back in the same way. scratch: as long; it may be anything afterwards.
  void ChangePlaces(std::span<float> parameters, std::span<float> scratch);

  // Of the window's steps, where parameters are: their gate's row, the sum of losses, and of that
  // the first step's.
  std::span<double> gate() { return gate_.span(); }
  std::span<double> loss() { return loss_.span(); }
  std::span<double> first_loss() { return first_loss_.span(); }

  // u, for checkpoints; empty while it is zero, and for that.
  std::span<const float> Momentum() const { return momentum_.span(); }
  void RestoreMomentum(std::span<const float> momentum);

 private:
  void ApplyShort(std::span<const float> delta, const cuda::BlockMomentumStep& step,
                  std::span<float> parameters, double share);

  cuda::Device& device_;
  cuda::Buffer start_;     // x; of a window whose group was lost, the member's own parameters
  cuda::Buffer momentum_;  // u; empty without block momentum
  cuda::Sums gate_;
  cuda::Sums loss_;
  cuda::Sums first_loss_;
};

}  // namespace tactus::engine
