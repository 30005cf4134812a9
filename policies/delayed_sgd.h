// Delayed rounds (ABS-SGD): how a group keeps time.

#pragma once

#include <cstdint>
#include <vector>

namespace tactus::policies {

// The largest eta lambda up to which heavy-ball steps of sgd are stable on a quadratic of curvature
// lambda,
//
//   v_k = beta v_{k-1} + lambda y_k,   x_{k+1} = x_k - eta v_k
//
//   at common parameters             y_k = x_k                                 2 (1 + beta)
//   one round late                   y_k = x_{k-1}                             1 - beta
//   one round late, looking ahead    y_k = x_{k-1} - eta beta v_{k-2}
//                                          2 (1 - beta) / (r + sqrt(r^2 + 4 beta^2 (1 - beta)))
//                                          r = 1 - beta^2
//
// momentum: beta in [0, 1)
//
// Source: algebra. Looking ahead the characteristic polynomial is
// z^3 - (1 + beta) z^2 + (beta + c (1 + beta)) z - c beta, c = eta lambda, of which two roots reach
// the unit circle while the third is c beta.
double StabilityLimit(double momentum);
double DelayedStabilityLimit(double momentum, bool look_ahead);

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
