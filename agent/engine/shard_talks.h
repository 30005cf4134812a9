// How the members of a group come to hold what each is to hold of the optimizer's state, and how
// one of them comes to all of it.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/transport.h"

namespace tactus::engine {

class Group;
struct Member;

// weights [members] <- what each put in, ShardOptions::weight. Waits; returns how it ended.
collective::Completion ExchangeWeights(Group& group, std::uint64_t own,
                                       std::vector<std::uint64_t>& weights);

// Each member holds from now on what the weights give it (shards.h): what it lacks comes from the
// others. What anybody holds is of the same step. lost: what nobody holds, for a person; then
// nothing has changed on any member, and the group cannot go on. It waits. All members call it in
// the same place of their collectives. Where it fails this member holds at least what it held.
// Requires: nothing adds up in the group's vector.
collective::Completion ShareOut(Member& member, Group& group,
                                std::span<const std::uint64_t> weights, std::string& lost);

// state <- on rank 0 the whole state, in the host's memory, as a member that holds all of it has
// it; on others nothing. The same rules.
collective::Completion GatherState(Member& member, Group& group,
                                   std::vector<std::vector<float>>& state);

}  // namespace tactus::engine
