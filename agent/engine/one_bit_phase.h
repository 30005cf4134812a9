// When signs of the momentum travel in place of gradients (`one_bit`), and the second moment is
// frozen. All members hold the same numbers, so each finds it by itself before a round opens.
//
//   warm-up   gradients travel dense, and the optimizer does what it always does; LAMB's ratios are
//             averaged
//   frozen    signs travel, the second moment stays, and LAMB's ratios are corrected
//
// Warm-up ends in a group of several members, once the optimizer has momentum, after the stated
// number of base steps or, without one, when the second moment is steady: its sum, corrected for
// its bias, has stayed within 4 % of what it was for 1 / (1 - beta2) steps, at ten looks on the
// way; and 15 % of the training are done, where its end is in sight.
//
// It begins anew where another encoding comes into force, and where at all looks of so many steps
// the corrections of more than half of LAMB's layers stood at a bound: then what is frozen is out
// of date. LAMB goes on with the fresh second moment, Adam with the frozen one.
//
// Source: section 7 of the specification; the rule for the end of warm-up is 1-bit Adam's, memory,
// unverified. Differs: a sum that grows is no steadier than one that falls.

#pragma once

#include <span>
#include <vector>

#include "agent/engine/combine/shared_momentum.h"
#include "agent/engine/optimizer.h"
#include "cuda/ops/segments.h"
#include "policies/plan.h"

namespace tactus::engine {

struct Member;

// Brings the member's optimizer to the phase of the round that is about to open under `plan`, and
// returns what its encoding is to know of it, but for the round's samples. Where signs are in
// force, requires what they need: a step a round, averages, Adam or LAMB, no clipping by norm.
SharedMomentum FollowOneBit(Member& member, const policies::Plan& plan);

// c_l of every segment, by which its momentum is multiplied so that all are of one size: the mean
// of their root mean squares over its own. 0 where that is 0 or not finite; such are no part of the
// mean. momentum: flat, the host's memory.
std::vector<double> MomentumScales(std::span<const float> momentum,
                                   const cuda::SegmentTable& segments);

}  // namespace tactus::engine
