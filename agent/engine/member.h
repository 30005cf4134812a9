// The member: what one participant of a job keeps, whatever group it is in.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/engine/combine/encodings.h"
#include "agent/engine/engine_options.h"
#include "agent/engine/engine_state.h"
#include "agent/engine/local_steps.h"
#include "agent/engine/open_window.h"
#include "agent/engine/optimizer.h"
#include "agent/engine/optimizer_shard.h"
#include "agent/engine/samples/ledger.h"
#include "agent/engine/stop_vote.h"
#include "agent/engine/validations.h"
#include "base/time.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/learning_rate.h"
#include "policies/loss_window.h"

namespace tactus::engine {

// What training had made of a member when a trial began.
struct Kept {
  std::vector<float> parameters{};
  EngineState state{};
  std::uint64_t optimizer_steps = 0;  // its own, which local steps make differ from the group's
  bool optimizers_differ = false;
  std::optional<double> loss{};  // then; where none was known, that of the first round since
  policies::LossSum since{};     // at common parameters
};

// Its parts lie open: the engine and its rounds work on them. Nothing here knows of other members,
// ranks or plans; that is Group's. One thread.
struct Member {
  // parameters [cuda::FlatLength(segments)] and device outlive this.
  Member(const EngineOptions& options, cuda::Device& device, const cuda::SegmentTable& segments,
         std::span<float> parameters);

  // As RoundEngine has it; but of an optimizer's state that is cut up, what this member holds.
  void CopyState(EngineState& state);
  // The same without what is of the parameters' length.
  void CopyNumbers(EngineState& state) const;
  // Goes on from a state, of a group of any size; whose parameters are put into the buffer by the
  // caller. Where the optimizer's state is cut up it is whole, or not there, and then what this
  // member holds stays. Requires: no round is open; ReasonNotToTake(state) is empty.
  void Restore(const EngineState& state);
  std::string ReasonNotToTake(const EngineState& state);

  // What a trial can be undone with: what training has made of this member, as it is now, in the
  // host's memory; from the latest Keep. Undo puts it back, and does nothing where nothing is kept.
  // Both wait for the device. Requires: between two rounds.
  void Keep();
  void Undo();
  void KeepNothing() { kept_.reset(); }
  bool keeps() const { return kept_.has_value(); }  // something that Undo would put back
  // Training ends, maybe within a trial: one that led up so far is undone, by the losses of all:
  // where their mean since it began, and that of now, are above that of before. A coordinator that
  // is away does not end trials, so that one may be long, or all of the job's training.
  // Returns whether one was undone.
  bool EndTrial();

  // The window that was under way as a group was lost is undone: parameters are those of its start
  // already; momentum begins at zero, as after any other that is undone.
  void LetGoOfWindow();
  // The same of members of one replica that have not taken as many steps of it: the state of their
  // optimizers is of no step, and begins anew on all members of all replicas, as does its count.
  void LetGoOfSteps();

  // Where members' parameters differ: the mean of all takes this member's place, which it gives
  // back with TakeOwn. In between at_mean is true.
  void KeepOwn();
  void TakeOwn();

  void AddLosses(const policies::RoundLosses& round);

  // Why training ends here, from what all members know alike; empty: it goes on.
  std::string ReasonToStop() const;

  // How much of the training is done, in [0, 1], by the stop conditions that count; 0 where there
  // are none. All members know the same.
  double progress() const;

  // Where it stands, for its validations.
  ValidationMark validation_mark() const {
    return {.rounds = rounds,
            .epochs = ledger.epoch(),
            .samples = samples_global,
            .trained = train_time};
  }

  // Whether the job's time is up at `now`, by this member's clock.
  bool TimeIsUpAt(Instant now) const {
    return options.stop.time && train_time + (now - edge) >= *options.stop.time;
  }

  // The running round's edge is at `now`, from which the next one's time counts.
  void MoveEdge(Instant now);

  EngineOptions options;  // nodes and bucket_bytes are set anew for each group
  cuda::Device& device;
  const cuda::SegmentTable segments;
  const std::span<float> parameters;

  Optimizer optimizer;
  std::optional<OptimizerShard> shard;  // in place of the optimizer's own state
  policies::LearningRate learning_rate;
  LocalSteps local_steps;
  Encodings encodings;
  SampleLedger ledger;
  policies::LossWindow losses;
  Validations validations;
  StopVote stop;

  std::uint64_t rounds = 0;   // applied
  std::uint64_t samples = 0;  // of this member, in applied rounds
  std::uint64_t samples_global = 0;
  std::uint64_t steps = 0;             // of the optimizer, as the group counts them
  std::uint32_t nonfinite_rounds = 0;  // in a row, now
  bool parameters_differ = false;      // from the others': rounds left each member its own
  bool at_mean = false;                // parameters are the mean of all: see KeepOwn
  bool optimizers_differ = false;      // local steps left each member a state of its own
  std::optional<OpenWindow> window{};  // that was under way as the group was lost, and may go on
  Duration train_time{};               // up to the edge, with that before a Restore
  Instant edge{};                      // of the last closed round

 private:
  void PutBack(const EngineState& state);

  std::optional<Kept> kept_;
  cuda::Buffer own_;  // parameters, while the mean is in their place
};

}  // namespace tactus::engine
