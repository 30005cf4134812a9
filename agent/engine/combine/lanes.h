// The lanes: a few float32 numbers behind the gradients, summed by the same all-reduce.
//
// All of them are sums over the members, so one collective carries gradients and agreement, and
// after it every member holds the same numbers and draws the same conclusions from them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/ops/lanes.h"

namespace tactus::engine {

// What one member puts in, or what all of them together gave.
//
// Counts travel as float32 and are exact to 2^24 = 16,777,216 samples a round; job files allow 2^20
// samples a member, and a group whose sum is larger must not be formed (RoundEngine checks).
struct Lanes {
  double samples = 0;
  double loss_sum = 0;  // over samples
  // Of these, at parameters that all members had: all, but for a window of local steps, of which
  // only the first begins at such.
  double common_samples = 0;
  double common_loss_sum = 0;         // over them
  double samples_gradient_norm2 = 0;  // b_i ||g_i||^2, g_i the replica's mean gradient or delta
  double members = 0;
  double nonfinite = 0;         // members whose gradient or loss is not finite
  double plan_votes = 0;        // members that hold the next plan (version in force + 1)
  double stop_votes = 0;        // members that ask to stop after this round; one is enough
  double discard_votes = 0;     // members that ask to leave no result; one is enough
  double suspend_votes = 0;     // of the stop votes, those to go on later
  double regroup_votes = 0;     // of the stop votes, those to go on in another group; it takes all
  double validation_votes = 0;  // members whose clock says that a validation is due; one is enough
  double comparison_votes = 0;  // likewise, that parameters are to be compared
  double residual_votes = 0;    // members who want to have all residuals; one is enough
  std::span<const float> member_samples{};  // one a rank: samples used in this round
};

// Lanes of a group of `members`. [elements]
std::size_t LaneCount(std::size_t members);

// What a member puts in. Three of its lanes only the device knows: the sums of losses, and
// samples_gradient_norm2, which it computes from the vector's squared norm and what stands here.
// The vector is not g_i itself but `divisor` times it (a sum over samples, say: then they are the
// divisor), so
//
//   b_i ||g_i||^2 = b_i ||vector / divisor||^2 = ||vector||^2 (b_i / divisor) / divisor
//
// which is written so, not with a square, to be exact where the divisor is b_i or 1.
//
// Where members have parts of one gradient, b_i and the divisor are their replica's, and the norm
// is of what each counts: over a replica the lane adds up to what one member would have put in.
struct OwnLanes {
  Lanes lanes{};                // where norm and loss are finite
  double gradient_samples = 0;  // b_i
  double divisor = 1;           // > 0 where gradient_samples is
};

// The lanes of the member `rank` for the device to write; among the members' samples, own samples
// stand in its place. Not looked at: lanes.member_samples, the sums of losses,
// lanes.samples_gradient_norm2 and lanes.nonfinite. Where loss or norm is not finite, the lanes say
// so and bring neither.
std::vector<cuda::LaneValue> LaneValuesOf(const OwnLanes& own, std::size_t rank);

// Reads the summed lanes; member_samples refers to the tail. tail [LaneCount(members)].
Lanes ReadLanes(std::span<const float> tail);

// What cuda::GateRound looks at, in a tail on the device.
struct GateLanes {
  std::span<const float> samples{};
  std::span<const float> nonfinite{};
};
GateLanes GateLanesOf(std::span<const float> tail);

// How the samples of a round are spread over the replicas.
struct Spread {
  std::uint32_t contributors = 0;  // replicas with samples
  double samples_squared = 0;      // sum of the squared counts
};

// replica_members: EngineOptions'. One pass over all members: to be asked once a round.
Spread SpreadOf(const Lanes& lanes, std::size_t replica_members);

// Summed samples as counts: exact, because whole numbers below 2^24 are.
std::vector<std::uint64_t> ToCounts(std::span<const float> member_samples);

}  // namespace tactus::engine
