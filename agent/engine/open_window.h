// Windows of local steps that outlive the group in which they began.
//
// A window that is under way when its group is lost is not undone. Each of its members keeps what
// its steps have made, and the next group goes on with it: who has not taken all of its steps takes
// the rest, and those who live combine. What is lost is the share of who is gone; those samples are
// free again.
//
// Members that hold one copy of the model together go on together: with one block, if they all have
// a window, in which they have taken as many steps. Who had given up a step that others took leaves
// parts that are of no step: parameters are those of the window's start again, and what optimizers
// have averaged is let go of, by all.
//
// It goes on where all who have a window have the same: begun by one group, after as many rounds as
// the most advanced have, under a plan whose kind the group's own plan has. Else all let go of it.
// Who has none (joiners, who is behind, who was between two rounds) takes no step of it.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/round.h"
#include "agent/engine/samples/ledger.h"
#include "base/time.h"
#include "policies/learning_rate.h"
#include "policies/plan.h"

namespace tactus::engine {

class Group;
struct Member;

// What a member keeps of such a window, beside what LocalSteps has: its own parameters in the place
// of the start, which they have changed places with, and the sums of its steps.
struct OpenWindow {
  std::uint64_t id = 0;  // of IdOf
  std::uint32_t period = 1;
  std::uint32_t batch_size = 0;  // of this member's steps
  Block block{};                 // its replica's: at least one sample
  Round taken{};                 // as its last step left it
  Duration length{};             // of the window so far
  Duration uncounted{};          // of that, what is no part of the training time yet
};

// What a group goes on with; equal on all of its members.
struct ResumedWindow {
  policies::Plan plan{};  // that it runs under: sizes are of those who have it, by rank, or 0
  policies::LearningRate::Rate rate{};
  std::vector<Block> blocks{};  // by replica; empty: has no part in it
};

// Of the window that is under way, as no other has it: begun after as many rounds, for the same
// samples, under such a plan. Requires: its round is the ledger's oldest one.
std::uint64_t IdOf(const Member& member, const policies::Plan& plan,
                   const policies::LearningRate::Rate& rate);

// Finds out together whether a window goes on, and which; nothing: none does, and what this member
// had is let go of, unless it is behind and so takes over another state. All members call it in the
// same place of their collectives. Waits; where it fails, nothing has changed but what may
// have been let go of.
collective::Completion AgreeOnWindow(Member& member, Group& group, bool behind,
                                     std::optional<ResumedWindow>& resumed);

}  // namespace tactus::engine
