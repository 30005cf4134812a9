// Synchronizers: how the rounds of a plan are run. One implementation a file:
//
//   gradient_rounds.cc  the members' gradients are combined and applied at once
//   local_rounds.cc     the members take steps of their own; what they changed is combined. Who is
//                       done early may go on (elastic) or waits
//   leader_rounds.cc    the members take steps of their own, and are pulled towards whose loss is
//                       the least
//   neighbour_rounds.cc the members take a step each, and mix their parameters with those of their
//                       neighbours
//   delayed_rounds.cc   gradients are combined while the next round computes, and applied after it
//
// The way of a round, as RoundEngine leads it:
//
//   Open   { a batch, EndStep where it ends a step }   End   Launch   Follow   Share   Apply
//
// What overlaps has the next round's Open before this one's Apply, and then no Follow; all others
// go on at once. Between Follow and Apply the engine waits for the device, once a round.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/combine/combination.h"
#include "agent/engine/round.h"
#include "cuda/ops/round_gate.h"
#include "policies/plan.h"

namespace tactus::engine {

class Group;
struct Member;

// One way to run rounds, used for one round after the other; lives as long as the group. What it
// does to the parameters is the same on all members, unless they are to differ. One thread.
class Synchronizer {
 public:
  struct Traits {
    // Each step updates this member's parameters and so uses its gradients up; otherwise the
    // gradients of a round's steps add up, and the optimizers of all members are alike.
    bool local_updates = false;
    // A round is combined while the next one computes.
    bool overlapping = false;
    // How many samples a member has in a round is an outcome. For nobody to wait, a round may have
    // samples of two epochs.
    bool elastic = false;
    // What the last backward pass leaves is what is combined: segments may leave during it.
    bool early_segments = false;
    // Between two rounds each member's parameters are its own. What all of them are to have alike,
    // such as a result, is their mean: see RoundEngine::differ.
    bool own_parameters = false;
  };

  // member, group: those that have this; used from Open on.
  Synchronizer(Member& member, Group& group, Traits traits)
      : member_(member), group_(group), traits_(traits) {}
  virtual ~Synchronizer() = default;

  const Traits& traits() const { return traits_; }

  // Whether a plan's rounds are run this way.
  virtual bool Runs(const policies::Plan& plan) const = 0;

  // A round under the group's plan for it begins; its samples are reserved after this. Parameters
  // may move to where it is to compute: Apply and Abandon find them there.
  virtual void Open(Round& round) = 0;

  // After each batch but a round's last: whether what is added up from here on is a sum of its own.
  // What the vector holds is taken from there then, to be added at the step's end.
  virtual bool EndSum(const Round&) { return false; }

  // The gradients of a step's samples, those of all members of the replica, are in the group's
  // vector. Returns how it ended: where members have parts they may have to agree on the step.
  virtual collective::Completion EndStep(const Round&, std::uint64_t /*samples*/) { return {}; }

  // Whether the batch given next may be the last though it does not use up the round's samples: its
  // end is a moment that has to be known.
  virtual bool MayEnd(const Round&) const { return false; }

  // After each batch: when the round ended, if it is over, or how the group failed. By default it
  // is with the last of its samples. exhausted: that was it.
  virtual std::optional<collective::Completion> End(const Round& round, bool exhausted);

  // Sends what the round gathered on its way; afterwards nothing of it is needed here.
  virtual void Launch(const Round& round, TellLanes lanes) = 0;

  // Queues behind what was launched, and behind a gate on the device, what the round does to the
  // parameters: before it is known here what came of it, and whether anything did. kFailed: the
  // combination has, and nothing is queued. By default only the gate, shut: for rounds of which too
  // little is known beforehand.
  virtual collective::Progress Follow(Round& round);

  // What came of it is useful, and where each member can say of a part of the parameters alone what
  // they become, the members tell one another: waits, and returns how that ended. Where it failed
  // the parameters are as before the round. By default there is nothing to tell.
  virtual collective::Completion Share(Round&, const Combined&) { return {}; }

  // What came of it is known. Where it is useful the parameters have become, or become now, what
  // follows from it; they stay as before the round where it is not: not finite, or of no samples.
  // Fills in what a round has once it is combined.
  virtual void Apply(Round& round, const Combined& combined, bool useful) = 0;

  // Of the samples of a combined round, those whose losses are in the lanes' sums. A member whose
  // numbers are not finite brings no loss, and where that spoils the round for all it does not
  // matter which are its: all of them by default.
  virtual double SamplesTold(const Lanes& lanes) const { return lanes.samples; }

  // The group is lost: parameters become those of the last round that was applied; a window of
  // local steps may be kept beside them (Member::window). The ledger has the round still.
  virtual void Abandon() {}

 protected:
  // Multiplies a vector by what the aggregation asks for, which is often 1; for the sum of the
  // round's gradients, by what makes it what this member puts in.
  void Scale(float factor, std::span<float> vector);
  void ScaleSum(const Round& round, std::span<float> vector);

  // What a gate is to know of the oldest round that is not applied. Requires: it uses what was
  // reserved for it.
  cuda::RoundGate GateOf(const Round& round, double clip_norm) const;

  // Of rounds that combine gradients: the rate of a step by so many samples, > 0, of so many
  // gradients, and what is learned from the step, where one was taken.
  void SetRate(Round& round, double samples, std::uint32_t contributors) const;
  void Learn(Round& round, const Combined& combined, bool useful);

  Member& member_;
  Group& group_;

 private:
  const Traits traits_;
};

// All there are; for any plan the first that runs it is the one.
std::vector<std::unique_ptr<Synchronizer>> AllSynchronizers(Member& member, Group& group);

std::unique_ptr<Synchronizer> MakeGradientRounds(Member& member, Group& group);
std::unique_ptr<Synchronizer> MakeLocalRounds(Member& member, Group& group);
std::unique_ptr<Synchronizer> MakeLeaderRounds(Member& member, Group& group);
std::unique_ptr<Synchronizer> MakeNeighbourRounds(Member& member, Group& group);
std::unique_ptr<Synchronizer> MakeDelayedRounds(Member& member, Group& group);

}  // namespace tactus::engine
