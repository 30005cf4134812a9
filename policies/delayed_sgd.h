// Delayed rounds (ABS-SGD): what the gradient is, which rates are stable, how a group keeps time.

#pragma once

#include <cstdint>
#include <vector>

namespace tactus::policies {

// What one member accumulated in a round.
struct GradientSum {
  std::vector<double> sum{};  // of the samples' gradients
  double samples = 0;         // b_i >= 0
};

// G = sum_i s_i / sum_i b_i: the mean over samples, however they were split. A mean of the members'
// means would lean towards the slow members, whose few samples would count as much.
// REQUIRES: sums of one length, at least one sample in all.
//
// Source: [abs-sgd] abstract: accumulated gradients; memory, unverified: the weights.
std::vector<double> MeanGradient(const std::vector<GradientSum>& members);

// The factor by which a delayed update x_{k+1} = x_k - eta v_k, v_k = momentum v_{k-1} +
// g(x_{k-1}), shrinks the error of a quadratic in the long run: the largest root of
//
//   z^2 - (1 + momentum) z + (momentum + c) = 0,   c = eta lambda
//
// c         [1]  learning rate times curvature, >= 0
// momentum  [1]  of heavy-ball updates, in [0, 1)
// Returns the spectral radius: stable below 1.
//
// Source: design, derived from the update.
struct QuadraticStep {
  double rate_times_curvature = 0;  // c
  double momentum = 0;
};
double DelayedRadius(const QuadraticStep& step);

// Bounds on c, learning rate times curvature, for a momentum in [0, 1).
//   stable, delayed:       1 - momentum           at momentum 0.9: 0.1
//   stable, synchronous:   2 (1 + momentum)       at momentum 0.9: 3.8
//   delayed, smooth:       (1 - momentum)^2 / 4   at and below which nothing oscillates
//
// Source: design, derived from the update.
double DelayedStabilityLimit(double momentum);
double SynchronousStabilityLimit(double momentum);
double DelayedSmoothLimit(double momentum);

// Learning rate times smoothness up to which the delayed update is shown to converge in
// expectation: c + c^2 <= 1, c <= (sqrt(5) - 1) / 2.
// Source: design, derived; not the paper's theorem.
inline constexpr double kDelayedConvergenceLimit = 0.6180339887498949;

struct DelayedMember {
  double batch_seconds = 1;         // of one micro-batch, > 0
  std::uint32_t batch_samples = 1;  // 0: the member contributes nothing and keeps nobody waiting
};

struct DelayedGroup {
  std::vector<DelayedMember> members{};  // at least one with samples
  double transfer_seconds = 0;           // T_c >= 0, of one combination
  std::uint32_t batches_min = 1;         // micro-batches of each member and round, >= 1
  std::uint32_t batches_max = 1024;      // at which a member waits, >= batches_min
};

// One round of a delayed group. Times from the start of the first.
struct DelayedRound {
  std::vector<std::uint32_t> batches{};  // one a member
  std::uint64_t samples = 0;             // of all members
  double start_seconds = 0;              // when START closed it
  double transfer_begin_seconds = 0;     // when the last member had finished its micro-batch
  double transfer_end_seconds = 0;
};

// How a group keeps time, round by round:
//
//   START_k  once each member has batches_min micro-batches and transfer k-1 has ended
//   member   computes until its first boundary at or after START_k, then begins round k+1
//   transfer k begins when the last member has come to its boundary
//
// A boundary within kBoundarySlack of START, of the micro-batch's length, is at START.
//
// Source: design, from [abs-sgd] abstract: a round lasts until the next synchronization starts.
std::vector<DelayedRound> DelayedTimeline(const DelayedGroup& group, std::uint32_t rounds);

inline constexpr double kBoundarySlack = 1e-9;

// What delayed rounds would give, from a timeline of so many rounds, its start and last transfer
// included.
struct DelayedPace {
  double samples_per_second = 0;
  double samples_per_round = 0;  // the mean total batch
};
DelayedPace PredictDelayedPace(const DelayedGroup& group, std::uint32_t rounds = 200);

}  // namespace tactus::policies
