// What holds of members that keep parameters of their own, whatever they exchange: for the tests of
// each synchronization that has such.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tests/agent/engine/linear_task.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {

// In these rounds the gradients of that rank are no numbers; of everybody where there is none.
struct Spoilt {
  std::uint64_t from = 0;
  std::uint64_t to = UINT64_MAX;
  std::optional<int> rank{};
};
void SpoilGradients(GroupRun& run, const Spoilt& spoilt);

// Members of unlike shares, one without any, use each of 157 samples once in each of 3 epochs, and
// end with the mean of all. The plan is of four.
void ExpectEpochsThatEndWithTheMean(GroupRun run);

// Trains with a validation after every second round. All members look at the same, the mean.
struct LookedAt {
  std::vector<MemberRun> group{};
  std::map<std::uint64_t, double> parameters{};  // the first one, by rounds that were applied
};
LookedAt TrainAndLook(GroupRun run);

// `run` is suspended after 3 rounds or a little later: all have the same bits then. Returns what
// becomes of `next`, which goes on from them to its end.
std::vector<MemberRun> GoOnFromTheMean(GroupRun run, GroupRun next);

// A plan of every step is offered after 2 rounds: from round 6 on members have the same bits, in
// round 1 they have not.
void ExpectToBecomeAlike(GroupRun run);

// A group loses rank 1 in the round after 4, and goes on under the plan's graph or period with one
// more: those who live keep parameters of their own, who joins begins as the first of them, and
// training comes to its end. The plan is of those who begin, three at least.
void ExpectALossToLeaveEachItsOwn(const EngineOptions& options, policies::Plan plan);

}  // namespace tactus::engine
