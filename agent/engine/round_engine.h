// The round engine: one member's part in training, as a state machine over injected interfaces.
//
//   while (std::optional<Batch> batch = engine.NextBatch()) {  // which samples; none: it is over
//     StepResult result = model.ForwardBackward(*batch);       // adds the sum of gradients
//     engine.Step(result);                                     // accumulates, closes the round
//   }
//
// A round is a block of this member's samples, worked off in steps of the plan's batch size, and
// one combination of what the members learned:
//
//   every step  one step; gradients are combined and applied once
//   periodic    `period` local optimizer steps, or when elastic as many as fit until all have taken
//               so many; what they changed is combined (LocalSteps)
//   lsgd        as many local steps as fit until all have taken their shares; then each is pulled
//               towards the parameters of who has the least loss
//   decentlam   one step; each mixes its parameters with its neighbours'
//   delayed     as many steps as fit until the former round's combination is done everywhere; the
//               gradient is combined while the next round computes, and applied at its end
//
// The engine reads no clock, file or socket and knows no tensor library: samples are indices, time
// comes with StepResult and with the completions of collectives, plans come by OfferPlan.
// Production, the simulator and a user's own loop drive the same three calls.
//
// Its parts: Group, what this generation of it made; a Synchronizer for each of the three rows
// above. The engine itself leads a round through them and has what follows from what all members
// know: reports, votes, plans, the end. It goes with its group; what lives on, the caller's Member,
// it leaves as it was after the last round that was applied, for the engine of the next group.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/comparison.h"
#include "agent/engine/engine_options.h"
#include "agent/engine/engine_state.h"
#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/round.h"
#include "agent/engine/samples/block_cursor.h"
#include "agent/engine/stop_vote.h"
#include "agent/engine/synchronizer.h"
#include "agent/engine/take_over.h"
#include "agent/engine/validations.h"
#include "base/bounded_queue.h"
#include "base/time.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/checkpoint_interval.h"
#include "policies/plan.h"

namespace tactus::engine {

// What passes leave behind, in the device's memory: owned by the caller and outliving the engine.
// Gradients hold cuda::FlatLength(segments) + LaneCount(members) elements; they and the sum
// of losses are zero at the start, and it is the engine that makes them so again.
struct EngineBuffers {
  std::span<float> gradients;
  std::span<double> loss_sum;  // one number, to which a pass adds its losses
  // May be empty. With it the caller replaces the gradients at each Batch::first_of_sum instead of
  // adding to them, so that nobody makes them zero; and those of segments that it says are ready it
  // may hold back until it is asked for them.
  BringStretch bring{};
  // Where members have parts of one model: brings what they have to rank 0, called by all at the
  // same edge, at which state and parameters are whole. Empty: each has all of it.
  std::function<collective::Completion()> gather_parts{};
  // Likewise: norms are of what was combined, and of each local step's gradient, over all parts.
  collective::ReplicaSums replica_sums{};
  // Whether all members have registered the gradients with their transports
  // (collective::RegisterTogether).
  bool registered = false;
};

// A piece of this member's part of a round.
struct Batch {
  std::uint64_t round = 0;
  std::uint64_t epoch = 0;  // of these samples
  // Samples, at most micro_batch. Empty when the round has none for this member, or the step, where
  // members share it: Step is due all the same, with no work done and `started` = `finished`. Who
  // has a part of a model makes the pass with the others.
  std::vector<std::uint64_t> indices{};
  // How much each sample counts in loss and gradient; empty: 1. Their mean over an epoch is 1.
  std::vector<float> weights{};
  // What one in the gradient buffer stands for: 1, or what EngineOptions::mean_gradients asks for.
  // The mean gradient of these samples is multiplied by indices.size() / unit. [samples]
  double unit = 1;
  // The gradients are zero as it begins, or it replaces them (EngineBuffers::bring), by zeros where
  // it has no samples: what is added up from here on, up to the next such batch, is one sum, and
  // can be computed anew from these samples.
  bool first_of_sum = false;
  // SegmentReady may be called during its backward pass, to start reductions early.
  bool last_of_round = false;
  // Something goes by when it ends: the caller waits for the device before it says so by Step.
  bool awaited = false;
};

// When a Batch was worked on. Its gradients and losses are in the buffers, or queued to be.
struct StepResult {
  Instant started{};  // before the forward pass
  // After the backward pass, or where that was queued and is not awaited, after it was: how much
  // longer the device took the engine learns from the device.
  Instant finished{};
};

// One member's engine in one group. One thread.
class RoundEngine {
 public:
  // member: of no other engine now; outlives this. All members of `transport` have equal options,
  // segments and plan. Requires: policies::Fits(plan, transport.size()).
  RoundEngine(Member& member, EngineBuffers buffers, collective::Transport& transport,
              policies::Plan plan);

  // Starts training at `now`: all take the parameters of rank 0, which are not sent where all give
  // a hash of their own, and these are the same. Members that go on from a state (Member::Restore)
  // all do so from the same. False when the group was lost. Who goes on may find that a stop
  // condition holds already.
  bool Begin(Instant now, const std::optional<HashedParameters>& own = {});

  // The same of a group that goes on where others were lost, maybe within a window of local steps:
  // see TakeOver. Time alone does not end
  // it before a round, as members' times differ.
  bool Begin(Instant now, const Rejoining& rejoining);

  // The next samples to work on, or empty when it is over (see outcome()).
  std::optional<Batch> NextBatch();

  // Of a group whose first round goes on with a window of the group before, from Begin to the end
  // of that round: the samples that this member has used of it there, in their order.
  std::vector<Batch> UsedBefore() const;

  // The samples that NextBatch will probably return next, so that they can be read ahead: those
  // that it does return if plan and shares stay as they are and nobody leaves samples over. May
  // also be called between NextBatch and Step. Empty: none are in sight.
  std::vector<std::uint64_t> LikelyNext() const;

  // The gradient of a segment is complete for this round; optional, in any order, only while the
  // last batch of a round is under way. The last segment leaves with Step all the same, and with
  // it what this member has to say in the round: its losses, and its votes. May be called from
  // another thread while the engine's own waits.
  void SegmentReady(std::size_t segment);

  // Of the batch given last: how many segments, from the front, may leave by SegmentReady before
  // the losses are added; 0 where nothing would leave early, or there is nobody to send it to.
  std::size_t early_segments() const;

  // The batch given last is done, or queued, its gradient and losses in the buffers. Closes the
  // round if it was the last one: queues the update that is due, waits for the combination (when
  // delayed, for nothing), adopts a plan, sees whether to stop. On a device the update may be under
  // way when it returns.
  void Step(const StepResult& result);

  // A plan from the coordinator. Adopted in the round after all members voted for it. False, and
  // nothing changed, when it is not the next version, does not fit the group, or too many are
  // waiting; a version already known is true and nothing.
  bool OfferPlan(policies::Plan plan);

  // Votes to stop after the running round; all members stop together. A later request of another
  // kind takes the place of the former one, unless its round has been voted on. The vote outlives a
  // group that is lost, but for one to regroup, which the next group answers. Of members' votes a
  // discard wins, then a finish, then a suspension; and a stop condition that holds in the same
  // round wins over a suspension and a regroup.
  void RequestStop(std::string reason, StopKind kind) {
    member_.stop.Request(std::move(reason), kind);
  }

  // The group is lost beside the engine's own collectives, or all leave it after kRegrouped: gives
  // it up as if one of these had failed; what was applied stays. Requires: the transport has
  // failed, or was aborted, or all leave; no batch is under way.
  void LoseGroup(const std::string& reason);

  // Whether a round was just closed and the next one is not open: from Begin, or the Step that
  // closes a round, to the next NextBatch. State and parameters are whole then:
  //
  //   every step  those after the last round
  //   periodic    those after the last window. Within a window they are no edge: parameters are the
  //               member's own, and there is no way back for the optimizer's state
  //   lsgd        those after the last pull: each member's own, or the mean (see differ)
  //   decentlam   those after the last step: likewise
  //   delayed     those after the last round that was applied. The one that is combined now has
  //               touched neither, and its samples are free in the state: it will be done anew.
  //               Between edges parameters may be ahead of them (EngineOptions::look_ahead)
  bool at_edge() const { return !cursor_ && outcome_ != Outcome::kGroupLost; }

  // What another group may go on from, with the parameters and all residuals. Copied into `state`,
  // whose memory is used again; waits for the device. Equal on all members, but for the times, the
  // encoding's residuals and, after local steps of a group that was not suspended, the optimizer's
  // state, which is this member's then. Where that state is cut up, rank 0 has all of it where it
  // was gathered at this edge, and the others have what they hold. Requires: at_edge().
  void CopyState(EngineState& state);
  EngineState State();

  // What encodings have left with each member is its own, as parameters are where they differ, and
  // so is what it holds of an optimizer's state that is cut up. It comes to rank 0 where it is
  // needed: residuals when the group is suspended, and all of it at the end of a round in which
  // rank 0 asks for it, with no round under way. All wait for that.
  void RequestResiduals() { residuals_wanted_ = true; }
  // Whether TakeResiduals, and CopyState, have all of it at this edge, and EngineBuffers's
  // gather_parts has brought what it brings. Of rank 0.
  bool residuals_at_hand() const;
  // An optimizer's state that is cut up comes to rank 0, for CopyState, and so does what
  // gather_parts brings; nothing happens where there is neither, or it is there. All wait for it,
  // in the same place of their collectives. The group may be lost by it. Requires: at_edge(), no
  // round under way.
  void GatherShards();
  // The group was lost, and with members that are gone a part of the optimizer's state: no group of
  // those who are left can go on. All know it alike.
  bool state_lost() const { return state_lost_; }
  // By rank, once; empty where nothing is left out, or it did not come here.
  std::vector<Residuals> TakeResiduals();
  // How long the members stood still for it, the last time.
  Duration gathering() const { return gathering_; }

  // Ranks that the next group will not have, as far as this member was told, where a regroup is
  // asked for: what encodings have left with them goes to those who stay.
  void NoteLeaving(std::vector<std::uint32_t> ranks) { leaving_ = std::move(ranks); }

  // Whether each member's parameters are its own, as the synchronization has it. Where one of them
  // has to stand for all, each holds the mean of all instead, the same bits: at the edge where a
  // validation is due, where rank 0 asks for what checkpoints need (RequestResiduals), and from the
  // end of training on. With the next round each goes on from its own.
  bool differ() const;

  // Whether all members are to validate now, before the next round: so all found by what they know
  // alike, or by a vote of the first one's clock. It is an edge then with no round under way.
  bool validation_due() const {
    return validation_due_ && outcome_ == Outcome::kTraining && at_edge() && !pending_;
  }
  // They have, or they have so at training's end. The time that it took while training goes on is
  // part of the training time and of no round; a stop condition may hold after it. Where that ends
  // a trial which led up, what was before it is put back, and is not validated yet. One without
  // samples, whose loss is no number, counts as made, and decides nothing. Requires: at_edge(), no
  // round under way.
  void TakeValidation(const Validation& validation);
  const Validations& validations() const { return member_.validations; }

  // Whether all members are to choose now, before the next round, which samples epochs are made of
  // from here on: at the beginning, where so many epochs are over as the options say, and where
  // what was chosen is of another kind than theirs, be it within an epoch. All know it alike. It is
  // an edge then with no round under way.
  bool selection_due() const;
  // They have, all the same; its epoch and kind are set here. `end` on this member's clock: the
  // time counts as a validation's. Nothing: what was chosen before stays, for as many epochs, in
  // place of what was looked for. Requires: selection_due(), and something was chosen before where
  // nothing is now.
  void TakeSubset(std::optional<Subset> subset, Instant end);

  // Whether all members are to compare their parameters now, before the next round: as one's clock
  // says, because a number was not finite, or because what is validated here may be kept as the
  // best. All know it alike. Not where rounds look ahead, which leaves each member other last
  // bits, nor where parameters differ. It is an edge then with no round under way.
  bool comparison_due() const {
    return comparison_due_ && outcome_ == Outcome::kTraining && at_edge() && !pending_;
  }
  // Whether parameters may be compared at this edge, due or not; those that differ at their mean.
  bool comparable() const;
  // They compare: `own` is of this member's parameters, and who differs from most takes over
  // all that these hold. Waits; the group may be lost by it. The time counts as a validation's.
  // Requires: comparable(), at_edge(), no round under way.
  void Compare(const HashedParameters& own);
  // What was found since the last call, where somebody was wrong.
  std::optional<Comparison> TakeComparison() { return std::exchange(comparison_, {}); }
  // What was found at this very edge; nothing: nothing was.
  const std::optional<Validation>& validated() const { return validated_; }

  // The reports of rounds applied since the last call, one at a time, oldest first; at most the two
  // latest of a caller who does not ask.
  std::optional<policies::Report> TakeReport();

  Outcome outcome() const { return outcome_; }
  const std::string& reason() const { return reason_; }  // of an outcome other than kTraining
  // Whether it ended because a member was asked to, not by a stop condition. On rank 0; the others
  // take the time that is up for a request.
  bool asked_to_stop() const { return member_.stop.asked(); }

  const policies::Plan& plan() const { return group_.plan(); }
  const SampleLedger& ledger() const { return member_.ledger; }
  std::uint64_t rounds() const { return member_.rounds; }  // applied
  // What is combined, or was last, with its lanes; not always the buffer of gradients.
  std::span<const float> combined() { return group_.combination().buffer(); }
  double base_steps() const { return member_.learning_rate.progress(); }
  std::uint64_t samples() const { return member_.samples; }  // of this member, in applied rounds
  std::uint64_t samples_global() const { return member_.samples_global; }
  double train_loss() const { return member_.losses.Mean(); }  // of a LossWindow
  Duration train_time() const { return member_.train_time; }   // up to the last round's edge
  Instant edge() const { return member_.edge; }                // where the last closed round ended
  policies::CheckpointMark mark() const { return {.trained = train_time(), .rounds = rounds()}; }
  int nonfinite_rounds() const {  // in a row, now
    return static_cast<int>(member_.nonfinite_rounds);
  }

 private:
  // A delayed round, and the one that it was followed by.
  static constexpr std::size_t kReportsMax = 2;

  static Edges EdgesOf(const Synchronizer& synchronizer);
  BlockCursor CursorOf(Block block) const;
  Block ReserveBlock();
  double RoundUnit() const;
  double UnitOfBatches() const;

  // The way of a round; the next may open before the last two.
  void OpenRound();
  void CloseRound(const collective::Completion& end);
  bool MayOverlap() const;
  void Drain();
  void MeetAtMean();
  void PassResiduals();
  bool GatherAnew(Instant& at);
  void ForgetGathered();
  void ApplyPending();

  // From what was combined to parameters, report, ledger, plan and end.
  void Apply(Round& round, Duration transfer);
  std::string ReasonOfSamples(double samples) const;
  void Report(const Round& round, const Combined& combined, Duration transfer);
  void Count(const Lanes& lanes);
  void Settle(const Lanes& lanes);
  void FollowTrial();

  void BeginRounds(Instant edge, const std::string& time_is_up);
  std::string ReasonTimeIsUp() const;
  TellLanes TellOwnLanes();
  std::vector<cuda::LaneValue> OwnLanesOf(const Round& round);
  bool ClockDecides() const;
  void AddToEnd(Round& round, Duration later);
  std::optional<Instant> TakeMean(std::span<float> values);
  bool AlignParameters();
  bool AlignOptimizers();

  // Of an optimizer's state that is cut up: engine_shards.cc.
  bool ShareOutState(Instant& at);
  collective::Completion HandOverShards();
  bool shards_apart() const {
    return member_.shard && member_.shard->buffers() > 0 && group_.size() > 1;
  }

  // Completes at once where there are no parts, or they were gathered at this edge.
  collective::Completion GatherParts();

  Member& member_;
  const std::function<collective::Completion()> gather_parts_;
  Group group_;

  Synchronizer* synchronizer_;         // how the running round is run, or the last; never null
  Round running_;                      // or the last
  std::optional<BlockCursor> cursor_;  // in its replica's samples; nothing: no round is open
  std::optional<Round> pending_;       // launched and not applied yet
  bool validation_due_ = false;
  bool comparison_due_ = false;
  bool residuals_wanted_ = false;                   // by this member
  bool residuals_due_ = false;                      // by rank 0, and known to all
  std::vector<Residuals> gathered_;                 // at this edge, by rank
  std::vector<std::vector<float>> gathered_state_;  // likewise, the optimizer's
  bool state_gathered_ = false;                     // since the latest round; equal on all members
  bool parts_gathered_ = false;                     // likewise
  std::vector<std::uint64_t> weights_;              // by which that is shared out, by rank
  bool state_lost_ = false;
  Duration gathering_{};                        // that it took
  std::vector<std::uint32_t> leaving_;          // ranks, as far as this member was told
  std::optional<Comparisons> comparisons_;      // from Begin on
  std::optional<Comparison> comparison_;        // of the last one, where somebody was wrong
  std::optional<Validation> validated_;         // since the last round
  const std::unique_ptr<cuda::Mark> computed_;  // behind the last batch that may close a round

  BoundedQueue<policies::Report, kReportsMax> reports_;
  Outcome outcome_ = Outcome::kTraining;
  std::string reason_;
};

}  // namespace tactus::engine
