// The round engine: one member's part in training, as a state machine over injected interfaces.
//
//   while (std::optional<Batch> batch = engine.NextBatch()) {     // which samples; empty: it is
//   over
//     const StepResult result = model.ForwardBackward(*batch);    // adds the sum of per-sample
//     gradients engine.Step(result);                                        // accumulate, or close
//     the round, or both
//   }
//
// The engine reads no clock, file or socket and knows no tensor library: samples are indices, time
// comes with StepResult and with the completions of collectives, plans come by OfferPlan.
// Production, the simulator and a user's own loop drive the same three calls.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/bucketing.h"
#include "agent/collective/transport.h"
#include "agent/engine/lanes.h"
#include "agent/engine/ledger.h"
#include "agent/engine/optimizer.h"
#include "agent/engine/stop_rule.h"
#include "base/bounded_queue.h"
#include "base/time.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/plan.h"

namespace tactus::engine {

// What holds for the whole job; equal on all members.
struct EngineOptions {
  std::uint64_t seed = 1;           // of the samples' order
  std::uint64_t train_samples = 1;  // in an epoch, >= 1
  std::uint32_t micro_batch = 64;   // samples in one Batch at most, >= 1
  OptimizerOptions optimizer{};
  std::optional<double> clip_norm{};  // > 0: the mean gradient's Euclidean norm is cut to it
  StopOptions stop{};
  std::size_t bucket_bytes = 1u << 20;      // of one all-reduce, >= 4
  std::uint32_t nonfinite_rounds_max = 10;  // so many skipped updates in a row end the job, >= 1
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
  std::uint64_t epoch = 0;
  // Samples, at most micro_batch. Empty when the round has none for this member: Step is due all
  // the same, with no work done and `started` = `finished`.
  std::vector<std::uint64_t> indices{};
  // The last piece: SegmentReady may be called during its backward pass, to start reductions early.
  bool last_of_round = false;
};

// What came of a Batch.
struct StepResult {
  double loss_sum = 0;  // over the batch's samples
  Instant started{};    // before the forward pass
  Instant finished{};   // after the backward pass
};

enum class Outcome {
  kTraining,   // it goes on
  kFinished,   // a stop condition holds; parameters are equal on all members
  kDiscarded,  // asked to stop and to leave no result
  kGroupLost,  // a collective failed; parameters are those of the last applied round
  kDiverged,   // too many non-finite gradients in a row
};

// One member's engine. One thread.
class RoundEngine {
 public:
  // All members of `transport` construct theirs with equal options, segments and plan.
  // plan.batch_sizes has transport.size() entries with 1 <= sum <= 2^24.
  RoundEngine(const EngineOptions& options, cuda::Device& device,
              const cuda::SegmentTable& segments, EngineBuffers buffers,
              collective::Transport& transport, policies::Plan plan);

  // Starts training at `now`: all take the parameters of rank 0. False when the group was lost.
  bool Begin(Instant now);

  // The next samples to work on, or empty when it is over (see outcome()). May close rounds in
  // which this member has no sample.
  std::optional<Batch> NextBatch();

  // The gradient of a segment is complete for this round; optional, in any order, only while the
  // last batch of a round is under way.
  void SegmentReady(std::size_t segment);

  // The batch given last is done and its gradient is in the buffer. Closes the round if it was the
  // last one: waits for the reduction, applies the update, adopts a plan, sees whether to stop.
  void Step(const StepResult& result);

  // A plan from the coordinator. Adopted in the round after all members voted for it. False, and
  // nothing changed, when it is not the next version, does not fit the group, or too many are
  // waiting; a version already known is true and nothing.
  bool OfferPlan(policies::Plan plan);

  // Votes to stop after the running round; all members stop together. With discard, no result is
  // wanted.
  void RequestStop(std::string reason, bool discard);

  // The report of the last closed round, once.
  std::optional<policies::Report> TakeReport();

  Outcome outcome() const { return outcome_; }
  const std::string& reason() const { return reason_; }  // of an outcome other than kTraining

  const policies::Plan& plan() const { return plan_; }
  const SampleLedger& ledger() const { return ledger_; }
  std::uint64_t rounds() const { return rounds_; }    // applied
  std::uint64_t samples() const { return samples_; }  // of this member, in applied rounds
  std::uint64_t samples_global() const { return samples_global_; }
  double train_loss() const { return losses_.Mean(); }    // of the last LossWindow::kRounds
  Duration train_time() const { return edge_ - begun_; }  // up to the last round's edge
  int nonfinite_rounds() const { return static_cast<int>(nonfinite_rounds_); }  // in a row, now

 private:
  static constexpr std::size_t kPlansWaitingMax = 16;

  // What this member gathered in the running round.
  struct Running {
    std::uint64_t samples = 0;
    double loss_sum = 0;
    Duration compute{};
    Instant finished{};         // of the last batch
    double gradient_norm2 = 0;  // of the summed gradient, stretch by stretch as reductions start
    std::size_t given = 0;      // indices handed out so far
    bool reducing = false;      // the reduction has begun
  };

  void OpenRound();
  void BeginReduction();
  void BeforeReduce(std::span<float> stretch);
  void WriteOwnLanes();
  void CloseRound();
  double GradientScale(const Lanes& lanes, double norm2_global) const;
  void Report(const Lanes& lanes, const collective::Completion& reduction, double norm2_global);
  void Settle(const Lanes& lanes);
  bool TimeIsUp() const;

  const EngineOptions options_;
  cuda::Device& device_;
  const EngineBuffers buffers_;
  collective::Transport& transport_;
  const std::size_t length_;  // of the parameters
  Optimizer optimizer_;
  collective::BucketedReduction reduction_;
  SampleLedger ledger_;
  policies::Plan plan_;
  BoundedQueue<policies::Plan, kPlansWaitingMax> plans_waiting_;
  LossWindow losses_;

  Running running_;
  std::vector<std::uint64_t> indices_;  // of this member in the running round
  bool round_open_ = false;
  bool stop_requested_ = false;
  bool discard_requested_ = false;
  std::string stop_reason_;

  Instant begun_;
  Instant edge_;  // of the last closed round
  std::uint64_t rounds_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t samples_global_ = 0;
  std::uint32_t nonfinite_rounds_ = 0;
  std::optional<policies::Report> report_;
  Outcome outcome_ = Outcome::kTraining;
  std::string reason_;
};

}  // namespace tactus::engine
