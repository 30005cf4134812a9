#include "agent/engine/round_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agent/engine/gradient_facts.h"
#include "agent/engine/momentum_correction.h"
#include "agent/engine/one_bit_phase.h"
#include "base/check.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;

namespace {

// told: of the lanes' samples, those whose losses are in the sums.
policies::RoundLosses LossesOf(const Lanes& lanes, double told, std::uint64_t steps) {
  return {.common = {.sum = lanes.common_loss_sum, .samples = lanes.common_samples},
          .local = {.sum = lanes.loss_sum - lanes.common_loss_sum,
                    .samples = told - lanes.common_samples},
          .steps = steps};
}

// That a round has by the plan, where it fixes them.
double SamplesOf(const policies::Plan& plan) {
  const double steps =
      plan.synchronization == policies::Synchronization::kPeriodic ? plan.period : 1;
  double samples = 0;
  for (const std::uint32_t size : plan.batch_sizes) samples += steps * size;
  return samples;
}

}  // namespace

RoundEngine::RoundEngine(Member& member, EngineBuffers buffers, collective::Transport& transport,
                         policies::Plan plan)
    : member_(member),
      gather_parts_(std::move(buffers.gather_parts)),
      group_(member, transport,
             {.gradients = buffers.gradients,
              .loss_sum = buffers.loss_sum,
              .bring = std::move(buffers.bring),
              .replica_sums = std::move(buffers.replica_sums),
              .registered = buffers.registered},
             std::move(plan)),
      synchronizer_(&group_.synchronizer()),
      computed_(member.device.MakeMark()) {
  member_.TakeOwn();  // of a group that was lost after its end, of which others do not know
}

bool RoundEngine::Begin(Instant now, const std::optional<HashedParameters>& own) {
  member_.LetGoOfWindow();
  bool equal = false;
  const Completion completion = ShareParameters(member_, group_, 0, own, equal);
  if (completion.progress == Progress::kFailed) {
    LoseGroup(completion.reason);
    return false;
  }
  if (group_.rank() != 0 && !equal) member_.device.Copy(group_.vector(), member_.parameters);
  member_.parameters_differ = false;
  group_.ClearVector();
  Instant edge = std::max(now, completion.at);
  if (!ShareOutState(edge)) return false;
  BeginRounds(edge, ReasonTimeIsUp());
  return outcome_ != Outcome::kGroupLost;
}

bool RoundEngine::Begin(Instant now, const Rejoining& rejoining) {
  const Completion completion = TakeOver(member_, group_, rejoining);
  if (completion.progress == Progress::kFailed) {
    LoseGroup(completion.reason);
    return false;
  }
  Instant edge = std::max(now, completion.at);
  if (!ShareOutState(edge)) return false;
  member_.stop.Regrouped();
  BeginRounds(edge, "");
  return outcome_ != Outcome::kGroupLost;
}

void RoundEngine::BeginRounds(Instant edge, const std::string& time_is_up) {
  member_.edge = edge;
  FollowTrial();
  if (member_.rounds > 0) reason_ = member_.ReasonToStop();
  if (member_.rounds > 0 && reason_.empty()) reason_ = time_is_up;
  if (!reason_.empty()) outcome_ = Outcome::kFinished;
  validation_due_ = member_.validations.DueByCount(member_.validation_mark());
  comparisons_.emplace(member_.options.comparison, member_.train_time);
  MeetAtMean();
}

// All have the same state, so no clock has to be asked for a time that was up then.
std::string RoundEngine::ReasonTimeIsUp() const {
  const std::optional<Duration>& limit = member_.options.stop.time;
  return limit && member_.train_time >= *limit ? TimeIsUpWords(*limit) : "";
}

std::optional<Batch> RoundEngine::NextBatch() {
  if (outcome_ == Outcome::kTraining && !cursor_) OpenRound();
  if (outcome_ != Outcome::kTraining) return std::nullopt;
  const Synchronizer::Traits& traits = synchronizer_->traits();
  Batch batch{.round = running_.number, .epoch = cursor_->epoch()};
  const std::uint64_t of_sum =
      traits.local_updates ? cursor_->of_step() : cursor_->own() - running_.first_sum;
  batch.first_of_sum = of_sum == 0;
  batch.unit = UnitOfBatches();
  batch.indices = cursor_->Take(&batch.weights);
  running_.samples = cursor_->own();
  running_.replica_samples = cursor_->taken();
  batch.awaited = synchronizer_->MayEnd(running_) || (cursor_->exhausted() && ClockDecides());
  batch.last_of_round = traits.early_segments && running_.aggregator->by_segments() &&
                        cursor_->exhausted() && running_.first_sum == 0;
  return batch;
}

std::vector<Batch> RoundEngine::UsedBefore() const {
  std::vector<Batch> batches;
  if (group_.resumed() == nullptr || !member_.window) return batches;
  BlockCursor cursor = CursorOf(member_.window->block);
  while (cursor.taken() < member_.window->taken.replica_samples) {
    if (cursor.step_full()) cursor.EndStep();
    batches.push_back({.round = member_.rounds, .epoch = cursor.epoch()});
    batches.back().indices = cursor.Take(&batches.back().weights);
  }
  return batches;
}

std::vector<std::uint64_t> RoundEngine::LikelyNext() const {
  if (group_.resumed() != nullptr && (!cursor_ || cursor_->exhausted())) return {};
  BlockCursor next = cursor_ && !cursor_->exhausted()
                         ? *cursor_
                         : CursorOf(member_.ledger.Next(EdgesOf(group_.synchronizer())));
  if (next.step_full()) next.EndStep();
  return next.Take();
}

void RoundEngine::SegmentReady(std::size_t segment) {
  TACTUS_CHECK(cursor_ && cursor_->exhausted() && synchronizer_->traits().early_segments);
  Combination& combination = group_.combination();
  if (!combination.open()) {
    combination.Begin(*running_.aggregator, group_.buffer(), TellOwnLanes());
  }
  // The last bucket, of which this is, takes the votes along: it leaves with Step, by when the
  // clock's end and what came for this member meanwhile are known.
  if (segment + 1 == group_.segments()) return;
  combination.SegmentReady(segment);
}

std::size_t RoundEngine::early_segments() const {
  const bool may = cursor_ && cursor_->exhausted() && synchronizer_->traits().early_segments &&
                   running_.first_sum == 0 && group_.size() > 1;
  return may ? running_.aggregator->early_segments() : 0;
}

void RoundEngine::Step(const StepResult& result) {
  TACTUS_CHECK(cursor_.has_value());
  running_.compute += result.finished - result.started;
  // The local step before this batch: no clock tells it apart from what else was between the two.
  if (running_.steps > 0 && synchronizer_->traits().local_updates) {
    running_.compute += std::max(Duration{}, result.started - running_.finished);
  }
  running_.finished = result.finished;
  const bool exhausted = cursor_->exhausted();
  if (exhausted || synchronizer_->MayEnd(running_)) computed_->Record();
  if (!exhausted && synchronizer_->EndSum(running_)) running_.first_sum = running_.samples;
  if (cursor_->of_step() > 0 && (exhausted || cursor_->step_full())) {
    if (++running_.steps == 1) running_.first_samples = running_.samples;
    const Completion ended = synchronizer_->EndStep(running_, cursor_->of_step());
    if (ended.progress == Progress::kFailed) return LoseGroup(ended.reason);
    cursor_->EndStep();
  }
  if (const auto end = synchronizer_->End(running_, exhausted)) CloseRound(*end);
}

void RoundEngine::TakeValidation(const Validation& validation) {
  TACTUS_CHECK(at_edge() && !pending_);
  const bool trains = outcome_ == Outcome::kTraining;
  const Duration cost = std::max(Duration{}, validation.end - member_.edge);
  if (trains) member_.MoveEdge(member_.edge + cost);
  const bool best = member_.validations.IsBest(validation.loss);
  member_.validations.Take(validation, member_.validation_mark(), cost);
  validation_due_ = false;
  if (validation.samples > 0) validated_ = validation;
  if (!trains) return;
  reason_ = member_.ReasonToStop();
  if (reason_.empty()) return;
  outcome_ = Outcome::kFinished;
  // What was just found to be the best is what it ends for, whatever the training losses say.
  if (best || !member_.EndTrial()) return;
  validated_.reset();
  ForgetGathered();
  member_.at_mean = false;  // what was put back is this member's own
  MeetAtMean();
}

bool RoundEngine::selection_due() const {
  if (outcome_ != Outcome::kTraining || !at_edge() || pending_) return false;
  return IsDue(member_.options.subset, member_.ledger.subset(), member_.ledger.epoch());
}

// Gradients weighted in another way have another noise: AdaScale's averages begin anew.
void RoundEngine::TakeSubset(std::optional<Subset> subset, Instant end) {
  TACTUS_CHECK(selection_due());
  const Subset& former = member_.ledger.subset();
  if (subset && former.number > 0) member_.learning_rate.ForgetNoise();
  Subset next = subset ? *std::move(subset) : former;
  next.epoch = member_.ledger.epoch();
  next.kind = member_.options.subset.kind;
  next.by_inputs = member_.options.subset.by_inputs;
  member_.ledger.Choose(std::move(next));
  member_.MoveEdge(std::max(member_.edge, end));
}

bool RoundEngine::comparable() const {
  const bool ahead = synchronizer_->traits().overlapping && member_.options.look_ahead;
  const bool equal = !differ() || member_.at_mean;
  return member_.options.comparison.on && group_.size() > 1 && equal && !ahead;
}

void RoundEngine::Compare(const HashedParameters& own) {
  TACTUS_CHECK(at_edge() && !pending_ && comparable());
  comparison_due_ = false;
  std::vector<HashedParameters> hashes;
  Completion completion = Exchange(group_.transport(), own, hashes);
  if (completion.progress == Progress::kFailed) return LoseGroup(completion.reason);
  Comparison comparison = JudgeHashes(hashes);
  if (!comparison.wrong.empty()) {
    const Rejoining rejoining{.rounds = std::vector(hashes.size(), member_.rounds),
                              .wrong = comparison.wrong};
    completion = TakeOver(member_, group_, rejoining);
    if (completion.progress == Progress::kFailed) return LoseGroup(completion.reason);
    if (!ShareOutState(completion.at) || !GatherAnew(completion.at)) return;
    parts_gathered_ = false;
    comparison_ = std::move(comparison);
  }
  if (outcome_ != Outcome::kTraining) return;
  const Duration cost = std::max(Duration{}, completion.at - member_.edge);
  member_.MoveEdge(member_.edge + cost);
  comparisons_->Take(member_.train_time, cost);
}

std::optional<policies::Report> RoundEngine::TakeReport() {
  if (reports_.empty()) return std::nullopt;
  return reports_.Pop();
}

Edges RoundEngine::EdgesOf(const Synchronizer& synchronizer) {
  return synchronizer.traits().elastic ? Edges::kCrossed : Edges::kKept;
}

BlockCursor RoundEngine::CursorOf(Block block) const {
  return {member_.ledger, std::move(block), group_.step()};
}

void RoundEngine::OpenRound() {
  validated_.reset();
  member_.TakeOwn();
  ForgetGathered();
  gathering_ = {};
  const policies::Plan& plan = group_.round_plan();
  synchronizer_ = &group_.synchronizer();
  if (!AlignParameters()) return;
  if (!synchronizer_->traits().local_updates && !AlignOptimizers()) return;
  const std::uint64_t ahead = pending_ ? 1 : 0;
  running_ = {.number = member_.rounds + ahead,
              .plan_version = plan.version,
              .aggregation = plan.aggregation,
              .encoding = plan.encoding,
              .aggregator = &group_.combination().For(plan.aggregation),
              .rule = plan.learning_rate_rule,
              .finished = member_.edge};
  SharedMomentum momentum = FollowOneBit(member_, plan);
  CarriedMomentum carried = CarriedBy(member_, plan);
  synchronizer_->Open(running_);
  cursor_.emplace(CursorOf(ReserveBlock()));
  cursor_->Skip(running_.replica_samples);
  if (member_.options.mean_gradients && !synchronizer_->traits().local_updates) {
    running_.unit = RoundUnit();
  }
  momentum.samples = running_.InUnits(static_cast<double>(member_.ledger.reserved()));
  momentum.own_samples = running_.InUnits(static_cast<double>(cursor_->size()));
  // The last round of an epoch may have fewer than the plan gives.
  const bool exact =
      plan.synchronization == policies::Synchronization::kEveryStep && momentum.samples > 0;
  carried.samples = momentum.samples;
  carried.own_samples = momentum.own_samples;
  member_.encodings.Open({.number = running_.number,
                          .progress = member_.progress(),
                          .samples = exact ? momentum.samples : running_.InUnits(SamplesOf(plan)),
                          .changes = synchronizer_->traits().local_updates},
                         momentum, carried);
}

Block RoundEngine::ReserveBlock() {
  if (const ResumedWindow* const resumed = group_.resumed()) {
    return member_.ledger.Resume(resumed->blocks, group_.replica());
  }
  return member_.ledger.Reserve(EdgesOf(*synchronizer_));
}

// Known to all members alike: what is reserved where that is what they use, the plan's otherwise.
double RoundEngine::RoundUnit() const {
  const auto reserved = static_cast<double>(member_.ledger.reserved());
  return synchronizer_->traits().elastic || reserved == 0 ? SamplesOf(group_.plan()) : reserved;
}

// Of a local step, which is its replica's own, all of its samples.
double RoundEngine::UnitOfBatches() const {
  if (!member_.options.mean_gradients) return 1;
  if (!synchronizer_->traits().local_updates) return running_.unit;
  return static_cast<double>(cursor_->step_length());
}

// Every round is launched and collected. What sets those that overlap apart is when: they are
// collected at the end of the next round, all others at once.
void RoundEngine::CloseRound(const Completion& end) {
  if (end.progress == Progress::kFailed) return LoseGroup(end.reason);
  running_.blocked = end.at - running_.finished;
  running_.length = end.at - member_.edge + running_.before;
  member_.MoveEdge(end.at);
  if (pending_) ApplyPending();
  if (outcome_ == Outcome::kGroupLost || outcome_ == Outcome::kDiverged) return;
  synchronizer_->Launch(running_, TellOwnLanes());
  running_.combining = member_.edge;
  pending_ = running_;
  cursor_.reset();
  if (!MayOverlap()) Drain();
}

// Whether the next round may open before the pending one is applied: it is run in the same way, and
// neither rounds nor samples are used up, nor is a validation due between the two.
bool RoundEngine::MayOverlap() const {
  if (!synchronizer_->traits().overlapping || outcome_ != Outcome::kTraining) return false;
  ValidationMark behind = member_.validation_mark();
  ++behind.rounds;
  if (validation_due_ || member_.validations.DueByCount(behind)) return false;
  if (IsDue(member_.options.subset, member_.ledger.subset(), member_.ledger.EpochBehind())) {
    return false;
  }
  if (comparison_due_ || residuals_due_) return false;
  const std::optional<std::uint64_t>& last = member_.options.stop.rounds;
  return synchronizer_ == &group_.synchronizer() && member_.ledger.HasFree() &&
         !(last && member_.rounds + 1 >= *last);
}

// Applies the pending round without computing meanwhile. All that the round does on the device is
// queued before the one wait for it.
void RoundEngine::Drain() {
  synchronizer_->Follow(*pending_);
  const Completion completion = group_.combination().Wait();
  if (completion.progress == Progress::kDone) {
    const Instant end =
        computed_->ReachedAt(pending_->finished, group_.combination().mark(), completion.at);
    AddToEnd(*pending_, end - pending_->finished);
  }
  const Duration waited = std::max(Duration{}, completion.at - member_.edge);
  pending_->blocked += waited;
  pending_->length += waited;
  member_.MoveEdge(member_.edge + waited);
  ApplyPending();
  // Who goes on later starts with equal states; who goes on at once has its own still.
  const bool equal = outcome_ == Outcome::kFinished || outcome_ == Outcome::kSuspended;
  if (member_.stop.decided() && equal) AlignOptimizers();
  MeetAtMean();
  PassResiduals();
}

// The device was at its last batch for so much longer than it took to queue it.
void RoundEngine::AddToEnd(Round& round, Duration later) {
  round.compute += later;
  round.length += later;
  round.finished += later;
  round.combining += later;
  member_.MoveEdge(member_.edge + later);
}

void RoundEngine::ApplyPending() {
  const Completion completion = group_.combination().Wait();
  Round round = *std::exchange(pending_, {});
  if (completion.progress == Progress::kFailed) return LoseGroup(completion.reason);
  Apply(round, completion.finished - round.combining);
}

// What is decided here is decided from numbers that are equal on all members; so all come to the
// same conclusions.
void RoundEngine::Apply(Round& round, Duration transfer) {
  Combined combined = group_.combination().Read();
  const Lanes& lanes = combined.lanes;
  const bool expected = synchronizer_->traits().elastic ||
                        lanes.samples == static_cast<double>(member_.ledger.reserved());
  if (!expected) {
    LoseGroup(ReasonOfSamples(lanes.samples));
    return member_.LetGoOfWindow();  // its gate has undone it
  }
  const bool any = lanes.samples > 0;
  const double divisor = round.aggregator->Divisor(round.InUnits(lanes.samples));
  combined.norm2 = any ? combined.norm2 / (divisor * divisor) : 0;
  round.loss_sum = combined.own_loss_sum;
  round.spread = SpreadOf(lanes, member_.options.replica_members);
  // Where members have parameters of their own, one that is not finite is its own affair.
  const double spoilt =
      synchronizer_->traits().own_parameters ? static_cast<double>(group_.size()) : 1;
  const bool finite = lanes.nonfinite < spoilt && std::isfinite(combined.norm2);
  const bool useful = finite && any && !round.undone;
  member_.nonfinite_rounds = finite ? 0 : member_.nonfinite_rounds + 1;
  // The gate has come to the same, from the same bits, where it is one round's of all members.
  const Synchronizer::Traits& traits = synchronizer_->traits();
  const bool gated = !traits.elastic && !traits.own_parameters;
  TACTUS_CHECK(!gated || combined.applied == (finite && any));
  if (useful && member_.shard) {
    const Completion shared = synchronizer_->Share(round, combined);
    if (shared.progress == Progress::kFailed) return LoseGroup(shared.reason);
    const Duration waited = std::max(Duration{}, shared.at - member_.edge);
    round.blocked += waited;
    round.length += waited;
    transfer += waited;
    member_.MoveEdge(member_.edge + waited);
  }
  synchronizer_->Apply(round, combined, useful);
  member_.encodings.Settle(useful);
  if (useful) {
    member_.AddLosses(LossesOf(lanes, synchronizer_->SamplesTold(lanes), round.updates));
  }
  if (!finite) combined.norm2 = 0;
  Report(round, combined, transfer);
  Count(lanes);
  Settle(lanes);
}

// Where nothing is elastic every member uses what the ledger gives it.
std::string RoundEngine::ReasonOfSamples(double samples) const {
  return "the members used " + std::to_string(static_cast<std::uint64_t>(samples)) +
         " samples, by the plan " + std::to_string(member_.ledger.reserved());
}

void RoundEngine::Report(const Round& round, const Combined& combined, Duration transfer) {
  const Lanes& lanes = combined.lanes;
  const auto samples_global = static_cast<std::uint64_t>(lanes.samples);
  const policies::RoundLosses losses =
      LossesOf(lanes, synchronizer_->SamplesTold(lanes), round.updates);
  const policies::UpdateFacts gradient = GradientFactsOf(round, combined);
  member_.samples += round.samples;
  member_.samples_global += samples_global;
  const bool finite = std::isfinite(combined.own_norm2) && std::isfinite(round.loss_sum);
  while (reports_.size() >= kReportsMax) reports_.Pop();  // of a caller who takes none
  [[maybe_unused]] const bool pushed = reports_.Push(
      {.round = round.number,
       .plan_version = round.plan_version,
       .rank = static_cast<std::uint32_t>(group_.rank()),
       .samples = round.samples,
       .loss_sum = finite ? round.loss_sum : 0,
       .steps = round.steps,
       .compute_seconds = ToSeconds(round.compute),
       .blocked_seconds = ToSeconds(round.blocked),
       .transfer_seconds = ToSeconds(std::max(Duration{}, transfer)),
       .round_seconds = ToSeconds(round.length),
       .exchange_seconds = ToSeconds(round.exchange),
       .link_bytes_per_second = group_.transport().TakeLinkRate(),
       .bytes_sent = group_.combination().bytes() + round.shared_bytes,
       .gradient_norm2_local = finite && round.replica_samples > 0 ? round.gradient_norm2 : 0,
       .gradient_norm2_global = gradient.gradient_norm2,
       .samples_global = samples_global,
       .loss_mean_global = losses.common.Mean(),
       .local_samples_global = static_cast<std::uint64_t>(losses.local.samples),
       .local_loss_mean_global = losses.local.Mean(),
       .nonfinite_members = static_cast<std::uint32_t>(lanes.nonfinite),
       .contributors = ContributorsOf(round),
       .samples_gradient_norm2 = gradient.samples_gradient_norm2,
       .gradient_samples = gradient.samples,
       .orthogonality = policies::TellsNoise(round.encoding)
                            ? round.aggregator->Orthogonality(lanes, round.spread, combined.norm2)
                            : 0,
       .learning_rate = round.rate.rate,
       .gain = round.rate.gain,
       .progress = member_.learning_rate.progress(),
       .epoch = member_.ledger.epoch(),
       .epoch_consumed = member_.ledger.consumed() + samples_global});
}

// The ledger's part: which samples the round consumed.
void RoundEngine::Count(const Lanes& lanes) {
  if (static_cast<std::uint64_t>(lanes.samples) == member_.ledger.reserved()) {
    member_.ledger.ApplyWhole();
  } else {
    member_.ledger.Apply(ToCounts(lanes.member_samples));
  }
}

// After a round: which plan is in force, who stops. Every member comes to the same conclusion.
void RoundEngine::Settle(const Lanes& lanes) {
  ++member_.rounds;
  if (lanes.plan_votes == group_.size()) {
    group_.AdoptNextPlan();
    FollowTrial();
  }
  if (outcome_ != Outcome::kTraining) return;  // the last round, after which it was to end

  if (member_.nonfinite_rounds >= member_.options.nonfinite_rounds_max) {
    outcome_ = Outcome::kDiverged;
    reason_ = "the gradient was not finite in " + std::to_string(member_.nonfinite_rounds) +
              " rounds in a row";
    return;
  }
  Verdict verdict = member_.stop.Decide(member_.ReasonToStop(), lanes);
  outcome_ = verdict.outcome;
  reason_ = std::move(verdict.reason);
  if (outcome_ == Outcome::kFinished || outcome_ == Outcome::kSuspended) member_.EndTrial();
  if (lanes.validation_votes > 0 || member_.validations.DueByCount(member_.validation_mark())) {
    validation_due_ = true;
  }
  if (lanes.residual_votes > 0) residuals_due_ = true;
  // A number that is not finite is the first that a member's wrong ones show. What is validated may
  // be kept as the best, by one member for all.
  const bool due = lanes.comparison_votes > 0 || member_.nonfinite_rounds == 1 || validation_due_;
  if (comparable() && due) comparison_due_ = true;
}

// The parameters are those of all, and in place.
void RoundEngine::FollowTrial() {
  switch (group_.plan().trial) {
    case policies::Trial::kNone:
      return member_.KeepNothing();
    case policies::Trial::kBegins:
      return member_.Keep();
    case policies::Trial::kRuns:
      return;
    case policies::Trial::kUndone:
      running_.undone = cursor_.has_value();
      return member_.Undo();
  }
}

// Of the running round.
TellLanes RoundEngine::TellOwnLanes() {
  return [this] { return OwnLanesOf(running_); };
}

// Whether this member's clock, rank 0's, ends training for all: then it has to know when the round
// ended before it votes.
bool RoundEngine::ClockDecides() const {
  return group_.rank() == 0 && member_.options.stop.time.has_value();
}

std::vector<cuda::LaneValue> RoundEngine::OwnLanesOf(const Round& round) {
  // Whoever waited for the others' last steps has the time of its own and of the edge behind it.
  if (ClockDecides() && member_.TimeIsUpAt(std::max(round.finished, member_.edge))) {
    member_.stop.TimeIsUp(*member_.options.stop.time);
  }
  OwnLanes own;
  own.lanes.samples = static_cast<double>(round.samples);
  own.lanes.common_samples = static_cast<double>(
      synchronizer_->traits().local_updates ? round.first_samples : round.samples);
  own.lanes.members = 1;
  own.lanes.plan_votes = group_.HasNextPlan() ? 1 : 0;
  // By the time up to the last edge: how long this round was its end may not know yet.
  const bool due = group_.rank() == 0 && member_.validations.DueByTime(member_.validation_mark());
  own.lanes.validation_votes = due ? 1 : 0;
  const bool compares = group_.rank() == 0 && comparable() && !comparison_due_ &&
                        comparisons_->Due(member_.train_time);
  own.lanes.comparison_votes = compares ? 1 : 0;
  own.lanes.residual_votes = residuals_wanted_ ? 1 : 0;
  own.gradient_samples = static_cast<double>(round.replica_samples);
  own.divisor = round.aggregator->Divisor(round.InUnits(own.gradient_samples));
  member_.stop.Cast(own.lanes);
  return LaneValuesOf(own, group_.rank());
}

// A trial ends as where training does: the next group's first plan is of none, and who is behind in
// it has kept nothing to take back.
void RoundEngine::LoseGroup(const std::string& reason) {
  if (group_.combination().open()) group_.combination().Wait();
  synchronizer_->Abandon();
  member_.TakeOwn();
  member_.ledger.Abandon();
  member_.encodings.Settle(false);
  // A step that others may have taken is one behind the state of before this trial's end, which may
  // not be theirs: who has not heard of it has no state then.
  if (member_.shard && member_.keeps()) member_.shard->undecided.reset();
  if (member_.EndTrial()) member_.window.reset();  // it began at what is no more
  member_.KeepNothing();
  pending_.reset();
  cursor_.reset();
  group_.ClearBuffer();
  member_.device.Clear(group_.loss_sum());
  outcome_ = Outcome::kGroupLost;
  reason_ = reason;
}

}  // namespace tactus::engine
