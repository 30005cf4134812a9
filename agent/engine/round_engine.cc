#include "agent/engine/round_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "agent/engine/dense_encoding.h"
#include "base/check.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;
using policies::Aggregation;
using policies::Synchronization;

std::string TimeReason(Duration limit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.6g s are over", ToSeconds(limit));
  return text.data();
}

// The optimizer's rate is where the schedule starts.
policies::LearningRateOptions WithBase(policies::LearningRateOptions options, double base) {
  options.schedule.base = base;
  return options;
}

std::unique_ptr<Encoding> MakeEncodingFor(const EngineOptions& options, cuda::Device& device,
                                          std::size_t length) {
  if (options.make_encoding) return options.make_encoding(device, length);
  return std::make_unique<DenseEncoding>();
}

}  // namespace

RoundEngine::RoundEngine(const EngineOptions& options, cuda::Device& device,
                         const cuda::SegmentTable& segments, EngineBuffers buffers,
                         collective::Transport& transport, policies::Plan plan)
    : options_(options),
      device_(device),
      buffers_(buffers),
      transport_(transport),
      length_(cuda::FlatLength(segments)),
      optimizer_(options.optimizer, device, segments),
      learning_rate_(WithBase(options.learning_rate, optimizer_.base_learning_rate())),
      encoding_(MakeEncodingFor(options, device, length_)),
      combination_(transport, device, segments, *encoding_,
                   {.bucket_bytes = options.bucket_bytes,
                    .lanes = LaneCount(static_cast<std::size_t>(transport.size())),
                    .nodes = options_.nodes}),
      local_steps_(device),
      gate_(device.AllocateSums(cuda::kGateLength)),
      step_norm2_(device.AllocateSums(1)),
      gate_on_host_(device.AllocateOnHost<double>(cuda::kGateLength)),
      ledger_(options.train_samples, options.seed, options.stop.epochs),
      plan_(std::move(plan)) {
  TACTUS_CHECK(options_.micro_batch >= 1);
  TACTUS_CHECK(policies::Fits(plan_, members()));
  TACTUS_CHECK(buffers_.parameters.size() == length_);
  TACTUS_CHECK(buffers_.gradients.size() == length_ + LaneCount(members()));
  SetShares();
}

bool RoundEngine::Begin(Instant now) {
  const Completion completion = transport_.StartBroadcast(buffers_.parameters, 0)->Wait();
  if (completion.progress == Progress::kFailed) {
    LoseGroup(completion.reason);
    return false;
  }
  edge_ = std::max(now, completion.at);
  begun_ = edge_ - trained_before_;
  if (rounds_ > 0) reason_ = WhyStopHere();
  if (!reason_.empty()) outcome_ = Outcome::kFinished;
  return true;
}

std::optional<Batch> RoundEngine::NextBatch() {
  if (outcome_ == Outcome::kTraining && !round_open_) OpenRound();
  if (outcome_ != Outcome::kTraining) return std::nullopt;
  Batch batch{.round = running_.number, .epoch = ledger_.epoch()};
  if (given_ < block_size_) {
    batch.epoch = (block_[place_.stretch].begin + place_.offset) / ledger_.epoch_size();
  }
  // A local step uses its gradients up; all others of a round add up.
  batch.first_of_sum = running_.kind == Kind::kDelta ? step_given_ == 0 : given_ == 0;
  batch.indices = SamplesFrom(block_, place_, StepLeft());
  given_ += batch.indices.size();
  step_given_ += batch.indices.size();
  // A delayed round may end with any batch.
  batch.losses_due = running_.kind == Kind::kDelayed || given_ == block_size_;
  batch.last_of_round = running_.kind == Kind::kGradient && running_.aggregator->by_segments() &&
                        given_ == block_size_;
  return batch;
}

std::vector<std::uint64_t> RoundEngine::LikelyNext() const {
  const bool goes_on = round_open_ && given_ < block_size_;
  const bool within_step = goes_on && StepLeft() > 0;
  const std::uint64_t step = within_step ? StepLeft() : plan_.batch_sizes[rank()];
  Place place = goes_on ? place_ : Place{};
  return SamplesFrom(goes_on ? block_ : ledger_.Next(RoundEdges()), place, step);
}

void RoundEngine::SegmentReady(std::size_t segment) {
  TACTUS_CHECK(round_open_ && given_ == block_size_);
  if (!combination_.open()) BeginCombination(buffers_.gradients);
  combination_.SegmentReady(segment);
}

void RoundEngine::Step(const StepResult& result) {
  TACTUS_CHECK(round_open_);
  running_.samples = given_;
  running_.loss_sum += result.loss_sum;
  running_.compute += result.finished - result.started;
  // The local step before this batch: no clock tells it apart from what else was between the two.
  if (running_.steps > 0 && running_.kind == Kind::kDelta) {
    running_.compute += std::max(Duration{}, result.started - running_.finished);
  }
  running_.finished = result.finished;
  const bool exhausted = given_ == block_size_;
  if (step_given_ > 0 && (exhausted || StepLeft() == 0)) EndStep();
  if (running_.kind == Kind::kDelayed) {
    if (PostReady(exhausted)) CloseDelayed();
  } else if (exhausted) {
    CloseRound();
  }
}

void RoundEngine::OpenRound() {
  const bool delayed = plan_.synchronization == Synchronization::kDelayed;
  const bool deltas =
      plan_.synchronization == Synchronization::kPeriodic ||
      (!delayed && plan_.aggregation == Aggregation::kAdasum && !optimizer_.linear());
  running_ = {.number = rounds_ + (pending_ ? 1 : 0),
              .plan_version = plan_.version,
              .kind = delayed  ? Kind::kDelayed
                      : deltas ? Kind::kDelta
                               : Kind::kGradient,
              .synchronization = plan_.synchronization,
              .updates = deltas ? plan_.period : 1,
              .aggregator = &combination_.For(plan_.aggregation),
              .rule = plan_.learning_rate_rule,
              .finished = edge_};
  if (optimizers_differ_ && !deltas && !AlignOptimizers()) return;
  if (deltas) {
    const auto& sizes = plan_.batch_sizes;
    const double step = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    running_.rate = learning_rate_.Next(running_.rule, step);
    local_steps_.Begin(buffers_.parameters);
    device_.Clear(gate_.span());
  }
  if (delayed) SetDelayedShares();
  block_ = ledger_.Reserve(RoundEdges());
  block_size_ = SizeOf(block_);
  given_ = step_given_ = 0;
  place_ = {};
  round_open_ = true;
}

void RoundEngine::SetShares() {
  std::vector<std::uint64_t> shares;
  shares.reserve(plan_.batch_sizes.size());
  for (const std::uint32_t size : plan_.batch_sizes) {
    shares.push_back(std::uint64_t{size} * plan_.period);
  }
  ledger_.SetShares(std::move(shares), rank());
  combination_.SetBatchSizes(plan_.batch_sizes);
}

void RoundEngine::Scale(float factor, std::span<float> vector) {
  if (factor != 1) device_.Scale(factor, vector);
}

// Samples that the running step still takes.
std::uint64_t RoundEngine::StepLeft() const { return plan_.batch_sizes[rank()] - step_given_; }

Edges RoundEngine::RoundEdges() const {
  return plan_.synchronization == Synchronization::kDelayed ? Edges::kCrossed : Edges::kKept;
}

// A micro-batch from `place` on, which moves behind it: `count` samples at most, and of one epoch,
// so fewer at its edge.
std::vector<std::uint64_t> RoundEngine::SamplesFrom(const Block& block, Place& place,
                                                    std::uint64_t count) const {
  std::vector<std::uint64_t> indices;
  std::uint64_t epoch = 0;  // of the first
  count = std::min<std::uint64_t>(count, options_.micro_batch);
  while (indices.size() < count && place.stretch < block.size()) {
    const Stretch& stretch = block[place.stretch];
    const std::uint64_t position = stretch.begin + place.offset;
    if (indices.empty()) epoch = position / ledger_.epoch_size();
    if (position / ledger_.epoch_size() != epoch) break;
    indices.push_back(ledger_.SampleAt(position));
    if (++place.offset == stretch.size()) place = {.stretch = place.stretch + 1};
  }
  return indices;
}

void RoundEngine::EndStep() {
  ++running_.steps;
  if (running_.kind == Kind::kDelta) LocalStep();
  step_given_ = 0;
}

void RoundEngine::LocalStep() {
  const std::span<float> gradients = buffers_.gradients.first(length_);
  device_.Clear(step_norm2_.span());
  device_.AddSquaredNorm(gradients, step_norm2_.span());
  device_.Gate({.samples = static_cast<double>(step_given_),
                .clip_norm = options_.clip_norm.value_or(0),
                .open = std::isfinite(running_.loss_sum)},
               step_norm2_.span(), gate_.span());
  optimizer_.Step(gradients, {.learning_rate = running_.rate.rate, .gate = gate_.span()},
                  buffers_.parameters);
  device_.Fill(0, gradients);
}

// A window with a step that was not taken is of no use: its gate poisons what is combined.
void RoundEngine::BeginCombination(std::span<float> buffer) {
  const bool local = running_.kind == Kind::kDelta;
  combination_.Begin(*running_.aggregator, buffer,
                     local ? gate_.span().subspan(cuda::kGatePoison, 1) : std::span<double>());
}

// Of the running round.
std::vector<cuda::LaneValue> RoundEngine::GiveLanes() {
  OwnLanes own{.finite = std::isfinite(running_.loss_sum)};
  Lanes& lanes = own.lanes;
  lanes.samples = static_cast<double>(running_.samples);
  lanes.members = 1;
  lanes.loss_sum = running_.loss_sum;
  own.divisor = running_.aggregator->Divisor(lanes.samples);
  lanes.plan_votes = plans_waiting_.empty() ? 0 : 1;
  const bool to_finish = stop_requested_ && stop_requested_ != StopKind::kSuspend;
  if (transport_.rank() == 0 && TimeIsUp() && !to_finish) {
    time_is_up_ = true;
    RequestStop(TimeReason(*options_.stop.time), StopKind::kFinish);
  }
  lanes.stop_votes = stop_requested_ ? 1 : 0;
  lanes.discard_votes = stop_requested_ == StopKind::kDiscard ? 1 : 0;
  lanes.suspend_votes = stop_requested_ == StopKind::kSuspend ? 1 : 0;
  return LaneValuesOf(own, rank());
}

// One member's clock decides for all: rank 0's.
bool RoundEngine::TimeIsUp() const {
  return options_.stop.time && running_.finished - begun_ >= *options_.stop.time;
}

void RoundEngine::CloseRound() {
  const std::span<float> vector = buffers_.gradients.first(length_);
  const auto samples = static_cast<float>(running_.samples);
  if (running_.kind == Kind::kDelta) {
    local_steps_.TakeDelta(buffers_.parameters, vector);
    Scale(running_.aggregator->FactorOfMean(samples), vector);
  } else if (samples > 0) {
    Scale(running_.aggregator->FactorOfSum(samples), vector);
  }
  if (!combination_.open()) BeginCombination(buffers_.gradients);
  combination_.Finish(GiveLanes());
  const Completion completion = combination_.Wait();
  if (completion.progress == Progress::kFailed) return LoseGroup(completion.reason);
  round_open_ = false;
  running_.combining = running_.finished;
  running_.blocked = completion.at - running_.finished;
  running_.length = completion.at - edge_;
  edge_ = completion.at;
  Apply(running_, buffers_.gradients.first(length_), completion);
  device_.Fill(0, buffers_.gradients);
  // Who goes on later starts with equal states.
  const bool keeps = voted_to_stop_ && outcome_ != Outcome::kDiscarded;
  if (keeps && optimizers_differ_) AlignOptimizers();
}

// Local steps gave each member momentum of its own; steps of the group need equal ones: their mean.
bool RoundEngine::AlignOptimizers() {
  for (const std::span<float> state : optimizer_.State()) {
    const Completion completion = transport_.StartAllReduceSum(state)->Wait();
    if (completion.progress == Progress::kFailed) {
      LoseGroup(completion.reason);
      return false;
    }
    device_.Scale(1 / static_cast<float>(members()), state);
  }
  optimizer_.set_steps(steps_);
  optimizers_differ_ = false;
  return true;
}

void RoundEngine::LoseGroup(const std::string& reason) {
  if (combination_.open()) combination_.Wait();
  if (round_open_ && running_.kind == Kind::kDelta) local_steps_.Restore(buffers_.parameters);
  ledger_.Abandon();
  pending_.reset();
  round_open_ = false;
  device_.Fill(0, buffers_.gradients);
  outcome_ = Outcome::kGroupLost;
  reason_ = reason;
}

bool RoundEngine::OfferPlan(policies::Plan plan) {
  const std::uint64_t known = plan_.version + plans_waiting_.size();
  if (plan.version <= known) return true;
  if (plan.version != known + 1 || !policies::Fits(plan, members())) return false;
  return plans_waiting_.Push(std::move(plan));
}

void RoundEngine::RequestStop(std::string reason, StopKind kind) {
  if (stop_requested_ == kind) return;
  stop_reason_ = std::move(reason);
  stop_requested_ = kind;
}

std::optional<policies::Report> RoundEngine::TakeReport() {
  if (reports_.empty()) return std::nullopt;
  return reports_.Pop();
}

}  // namespace tactus::engine
