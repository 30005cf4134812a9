// How a group that goes on where another was lost comes to one state.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/comparison.h"

namespace tactus::engine {

class Group;
struct Member;

// What a member of such a group knows of it.
struct Rejoining {
  std::vector<std::uint64_t> rounds{};  // that each has applied, by rank; as they were told
  // This member is the one to keep what had the least validation loss, and has nothing: where there
  // was a best one, all forget it.
  bool lacks_best = false;
  // What the model keeps beside the parameters, in the host's memory; as long on all members.
  std::span<float> buffers{};
  // Ranks whose state is wrong, however many rounds they have applied; not all. Equal on all
  // members.
  std::vector<std::uint32_t> wrong{};
  // Of this member's parameters. Where all have one, and the same, none of them is sent: hashing
  // them takes less than any link. On all members or on none.
  std::optional<HashedParameters> own{};
};

// The group's vector <- the donor's parameters, to be cleared when it was read; but where all
// members give hashes of their own, and these are the same, nothing is sent and `equal` becomes
// true. It waits. All members call it in the same place of their collectives, with `own` or
// without.
collective::Completion ShareParameters(Member& member, Group& group, std::size_t donor,
                                       const std::optional<HashedParameters>& own, bool& equal);

// Whether all have applied as many rounds, so that no state is taken over.
bool AreLevel(const std::vector<std::uint64_t>& rounds);

// Gives the members the state of the donor: of those with the most rounds whose state is right the
// one with the lowest rank. Who has fewer rounds, or is wrong, takes over all of EngineState but
// residuals, the parameters and `buffers`; who has as many has that state already, with buffers of
// its own, but for four things that a loss leaves unequal:
//
//   parameters      where rounds look ahead, going there and back leaves other last bits; see `own`
//   validations     one may have been over on some members only
//   the subset      likewise, its choice
//   the optimizer   its states may have been averaged, or let go of with the count of its steps, on
//                   some members only: see optimizers_differ
//
// An optimizer's state that is cut up stays with who holds it, and is of the donor's round
// afterwards, or is held no more: to be shared out anew (shard_talks.h).
// Where members' parameters differ (RoundEngine::differ) each keeps its own, but for who is behind.
//
// Where a window goes on that was under way as the group before was lost, it is the group's first
// round: see open_window.h.
//
// It waits. All members call it in the same place of their collectives, before the first round.
// Where it fails, nothing of this member has changed, but that it may have let go of such a window,
// and of what its optimizer has averaged.
// Requires: no round of the member is open.
collective::Completion TakeOver(Member& member, Group& group, const Rejoining& rejoining);

}  // namespace tactus::engine
