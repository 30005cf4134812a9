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
//   periodic    `period` local optimizer steps; what they changed is combined (LocalSteps)
//   delayed     as many steps as fit until the former round's combination is done everywhere; the
//               gradient is combined while the next round computes, and applied at its end
//
// The engine reads no clock, file or socket and knows no tensor library: samples are indices, time
// comes with StepResult and with the completions of collectives, plans come by OfferPlan.
// Production, the simulator and a user's own loop drive the same three calls.
//
// Source: [adacomm] for periodic; [abs-sgd] for delayed, whose READY and START are a barrier here.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/combination.h"
#include "agent/engine/encoding.h"
#include "agent/engine/engine_state.h"
#include "agent/engine/lanes.h"
#include "agent/engine/ledger.h"
#include "agent/engine/local_steps.h"
#include "agent/engine/optimizer.h"
#include "agent/engine/stop_rule.h"
#include "base/bounded_queue.h"
#include "base/time.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/learning_rate.h"
#include "policies/plan.h"

namespace tactus::engine {

// What holds for the whole job; equal on all members.
struct EngineOptions {
  std::uint64_t seed = 1;           // of the samples' order
  std::uint64_t train_samples = 1;  // in an epoch, >= 1
  std::uint32_t micro_batch = 64;   // samples in one Batch at most, >= 1
  OptimizerOptions optimizer{};
  policies::LearningRateOptions learning_rate{};
  std::optional<double> clip_norm{};  // > 0: the mean gradient's Euclidean norm is cut to it
  double block_momentum = 0;          // of periodic rounds, [0, 1)
  bool keep_local_momentum = true;    // of periodic rounds; false: zero after each combination
  StopOptions stop{};
  std::size_t bucket_bytes = 1u << 20;      // of one all-reduce, >= 4
  std::uint32_t nonfinite_rounds_max = 10;  // so many skipped updates in a row end the job, >= 1
  // The node of each rank, for Adasum between nodes and averages within; empty: all apart.
  std::vector<std::uint32_t> nodes{};
  MakeEncoding make_encoding{};  // of what travels; empty: DenseEncoding
};

// The flat buffers, owned by the caller and outliving the engine. Gradients hold
// cuda::FlatLength(segments) + LaneCount(members) elements and are zero at the start.
struct EngineBuffers {
  std::span<float> parameters;  // [cuda::FlatLength(segments)]
  std::span<float> gradients;
};

// A piece of this member's part of a round.
struct Batch {
  std::uint64_t round = 0;
  std::uint64_t epoch = 0;  // of these samples
  // Samples, at most micro_batch. Empty when the round has none for this member: Step is due all
  // the same, with no work done and `started` = `finished`.
  std::vector<std::uint64_t> indices{};
  // The gradients are zero as it begins: what is added up from here on, up to the next such batch,
  // is one sum, and can be computed anew from these samples.
  bool first_of_sum = false;
  // SegmentReady may be called during its backward pass, to start reductions early.
  bool last_of_round = false;
  // Its StepResult is to hold all losses so far. Those of a batch before it may be left out of that
  // batch's own and come with this one's, so that nobody has to wait for them.
  bool losses_due = false;
};

// What came of a Batch.
struct StepResult {
  double loss_sum = 0;  // over the batch's samples; see Batch::losses_due
  Instant started{};    // before the forward pass
  Instant finished{};   // after the backward pass
};

enum class Outcome {
  kTraining,   // it goes on
  kFinished,   // a stop condition holds, or asked to; parameters are equal on all members
  kDiscarded,  // asked to stop and to leave no result
  kSuspended,  // asked to stop and to go on later, from State(), in another group
  kGroupLost,  // a collective failed; parameters are those of the last applied round
  kDiverged,   // too many non-finite gradients in a row
};

// What those who ask for an end want.
enum class StopKind {
  kFinish,   // the result
  kDiscard,  // nothing
  kSuspend,  // to go on later
};

// One member's engine. One thread.
class RoundEngine {
 public:
  // All members of `transport` construct theirs with equal options, segments and plan.
  // Requires: policies::Fits(plan, transport.size()).
  RoundEngine(const EngineOptions& options, cuda::Device& device,
              const cuda::SegmentTable& segments, EngineBuffers buffers,
              collective::Transport& transport, policies::Plan plan);

  // Goes on from a state, of a group of any size, instead of beginning; all members of the group
  // do, and the caller puts the parameters of that time into the buffer. Rounds, progress and
  // training time count on. Requires: before Begin; ReasonAgainst(state, ...) is empty.
  void Restore(const EngineState& state);

  // Starts training at `now`: all take the parameters of rank 0. False when the group was lost. Who
  // goes on may find that a stop condition holds already.
  bool Begin(Instant now);

  // The next samples to work on, or empty when it is over (see outcome()).
  std::optional<Batch> NextBatch();

  // The samples that NextBatch will probably return next, so that they can be read ahead: those
  // that it does return if plan and shares stay as they are and nobody leaves samples over. May
  // also be called between NextBatch and Step. Empty: none are in sight.
  std::vector<std::uint64_t> LikelyNext() const;

  // The gradient of a segment is complete for this round; optional, in any order, only while the
  // last batch of a round is under way.
  void SegmentReady(std::size_t segment);

  // The batch given last is done and its gradient is in the buffer. Closes the round if it was the
  // last one: waits for the combination (when delayed, for nothing), applies the update that is
  // due, adopts a plan, sees whether to stop.
  void Step(const StepResult& result);

  // A plan from the coordinator. Adopted in the round after all members voted for it. False, and
  // nothing changed, when it is not the next version, does not fit the group, or too many are
  // waiting; a version already known is true and nothing.
  bool OfferPlan(policies::Plan plan);

  // Votes to stop after the running round; all members stop together. A later request of another
  // kind takes the place of the former one, unless its round has been voted on. Of members' votes a
  // discard wins, then a finish; and a stop condition that holds in the same round wins over a
  // suspension.
  void RequestStop(std::string reason, StopKind kind);

  // What another group may go on from, with the parameters. Copied. Equal on all members, but for
  // the encoding's residuals, and, after local steps with a stop condition met, for the optimizer's
  // state, which is this member's then. Requires: the outcome is kSuspended or kFinished.
  EngineState State();

  // The reports of rounds applied since the last call, one at a time, oldest first; at most the two
  // latest of a caller who does not ask.
  std::optional<policies::Report> TakeReport();

  Outcome outcome() const { return outcome_; }
  const std::string& reason() const { return reason_; }  // of an outcome other than kTraining
  // Whether it ended because a member was asked to, not by a stop condition. On rank 0; the others
  // take the time that is up for a request.
  bool asked_to_stop() const { return voted_to_stop_ && !time_is_up_; }

  const policies::Plan& plan() const { return plan_; }
  const SampleLedger& ledger() const { return ledger_; }
  std::uint64_t rounds() const { return rounds_; }    // applied
  std::uint64_t samples() const { return samples_; }  // of this member, in applied rounds
  std::uint64_t samples_global() const { return samples_global_; }
  double train_loss() const { return losses_.Mean(); }    // of a LossWindow
  Duration train_time() const { return edge_ - begun_; }  // up to the last round's edge
  Instant edge() const { return edge_; }                  // where the last closed round ended
  int nonfinite_rounds() const { return static_cast<int>(nonfinite_rounds_); }  // in a row, now

 private:
  static constexpr std::size_t kPlansWaitingMax = 16;
  static constexpr std::size_t kReportsMax =
      2;  // a delayed round and the one that it was followed by
  // Of what a delayed round reserves for a member while its pace is not known. [steps]
  static constexpr std::uint64_t kStepsReserved = 4;

  enum class Kind {
    kGradient,  // closes with the combined gradient, applied at once
    kDelta,     // closes with what local steps changed
    kDelayed,   // closes with the former round's gradient
  };

  // What this member gathered in a round, until it is applied.
  struct Round {
    std::uint64_t number = 0;
    std::uint64_t plan_version = 0;
    Kind kind = Kind::kGradient;
    policies::Synchronization synchronization = policies::Synchronization::kEveryStep;
    std::uint32_t updates = 1;  // of the parameters: the local steps of the plan, or one
    Aggregator* aggregator = nullptr;
    policies::LearningRateRule rule = policies::LearningRateRule::kConstant;
    policies::LearningRate::Rate rate{};  // of local steps
    std::uint64_t samples = 0;
    double loss_sum = 0;
    std::uint32_t steps = 0;
    Duration compute{};
    Duration blocked{};
    Duration length{};    // from the former round's edge to its own
    Instant finished{};   // of the last batch
    Spread spread{};      // of the members' samples, once it is combined
    Instant combining{};  // since when
  };

  // In a block.
  struct Place {
    std::size_t stretch = 0;
    std::uint64_t offset = 0;  // within it
  };

  // engine_state.cc: State and Restore

  // round_engine.cc: samples, steps, closing
  void OpenRound();
  void SetShares();
  Edges RoundEdges() const;
  std::vector<std::uint64_t> SamplesFrom(const Block& block, Place& place,
                                         std::uint64_t count) const;
  void Scale(float factor, std::span<float> vector);
  std::uint64_t StepLeft() const;
  void EndStep();
  void LocalStep();
  void BeginCombination(std::span<float> buffer);
  std::vector<cuda::LaneValue> GiveLanes();
  void CloseRound();
  bool AlignOptimizers();
  void LoseGroup(const std::string& reason);
  bool TimeIsUp() const;
  std::string WhyStopHere() const;

  // delayed_round.cc: the round under way and the one pending
  void SetDelayedShares();
  bool PostReady(bool exhausted);
  void CloseDelayed();
  void LaunchDelayed(Instant now);
  void ApplyPending();
  bool UsedUp() const;
  void Drain();

  // round_update.cc: from what was combined to parameters, report and plan
  void Apply(Round& round, std::span<const float> vector, const collective::Completion& completion);
  policies::LearningRate::Rate RateFor(const Round& round, const Lanes& lanes) const;
  void Update(const Round& round, std::span<const float> vector, const Combined& combined);
  void Count(const Lanes& lanes);
  void Report(const Round& round, const Combined& combined, Duration transfer);
  double LocalNorm2(const Round& round, const Combined& combined) const;
  void Settle(const Lanes& lanes);
  std::uint32_t members() const { return static_cast<std::uint32_t>(transport_.size()); }
  std::size_t rank() const { return static_cast<std::size_t>(transport_.rank()); }

  const EngineOptions options_;
  cuda::Device& device_;
  const EngineBuffers buffers_;
  collective::Transport& transport_;
  const std::size_t length_;  // of the parameters
  Optimizer optimizer_;
  policies::LearningRate learning_rate_;
  cuda::Buffer delayed_;  // gradients and lanes of the pending round; outlives the combination
  const std::unique_ptr<Encoding> encoding_;
  Combination combination_;
  LocalSteps local_steps_;
  cuda::Sums gate_;                   // of the local steps of the running window
  cuda::Sums step_norm2_;             // of the gradient of one of them
  cuda::Array<double> gate_on_host_;  // as it was when the window was combined
  SampleLedger ledger_;
  policies::Plan plan_;
  BoundedQueue<policies::Plan, kPlansWaitingMax> plans_waiting_;
  LossWindow losses_;

  // The running round.
  bool round_open_ = false;
  Round running_;
  Block block_;                   // of this member
  std::uint64_t block_size_ = 0;  // samples in it
  std::uint64_t given_ = 0;       // of them, handed out so far
  Place place_;                   // in block_, of the next sample
  std::uint64_t step_given_ = 0;  // samples of the running step

  // Delayed: the former round, whose combination is under way in delayed_, and the barrier that is
  // done when everybody is ready for the next.
  std::optional<Round> pending_;
  std::unique_ptr<collective::Collective> barrier_;
  std::vector<std::uint64_t> paces_;  // samples of each member in the round applied last

  bool optimizers_differ_ = false;          // local steps left each member a state of its own
  std::uint64_t steps_ = 0;                 // of the optimizer, as the group counts them
  std::optional<StopKind> stop_requested_;  // of this member
  std::string stop_reason_;
  bool time_is_up_ = false;     // which made this member vote
  bool voted_to_stop_ = false;  // the end came of votes

  Duration trained_before_{};  // of the state it went on from
  Instant begun_;              // that much before the first round
  Instant edge_;               // of the last closed round
  std::uint64_t rounds_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t samples_global_ = 0;
  std::uint32_t nonfinite_rounds_ = 0;
  BoundedQueue<policies::Report, kReportsMax> reports_;
  Outcome outcome_ = Outcome::kTraining;
  std::string reason_;
};

}  // namespace tactus::engine
