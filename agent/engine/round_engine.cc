#include "agent/engine/round_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tactus::engine {
namespace {

std::string TimeReason(Duration limit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.6g s are over", ToSeconds(limit));
  return text.data();
}

bool Fits(const policies::Plan& plan, int members) {
  const std::uint64_t total =
      std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), std::uint64_t{0});
  return plan.batch_sizes.size() == static_cast<std::size_t>(members) && total >= 1 &&
         total <= policies::kRoundSamplesMax;
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
      optimizer_(options.optimizer, device, length_),
      reduction_(transport,
                 collective::MakeBuckets(segments, buffers.gradients.size(), options.bucket_bytes),
                 [this](std::span<float> stretch) { BeforeReduce(stretch); }),
      ledger_(options.train_samples, options.seed),
      plan_(std::move(plan)) {
  TACTUS_CHECK(options_.micro_batch >= 1);
  TACTUS_CHECK(Fits(plan_, transport_.size()));
  TACTUS_CHECK(buffers_.parameters.size() == length_);
  TACTUS_CHECK(buffers_.gradients.size() ==
               length_ + LaneCount(static_cast<std::size_t>(transport_.size())));
  ledger_.SetShares(plan_.batch_sizes, static_cast<std::size_t>(transport_.rank()));
}

bool RoundEngine::Begin(Instant now) {
  const collective::Completion completion =
      transport_.StartBroadcast(buffers_.parameters, 0)->Wait();
  if (completion.progress == collective::Progress::kFailed) {
    outcome_ = Outcome::kGroupLost;
    reason_ = completion.reason;
    return false;
  }
  begun_ = edge_ = std::max(now, completion.at);
  return true;
}

std::optional<Batch> RoundEngine::NextBatch() {
  if (outcome_ != Outcome::kTraining) return std::nullopt;
  if (!round_open_) OpenRound();

  Batch batch{.round = rounds_, .epoch = ledger_.epoch()};
  const std::size_t count =
      std::min<std::size_t>(options_.micro_batch, indices_.size() - running_.given);
  const auto first = indices_.begin() + static_cast<std::ptrdiff_t>(running_.given);
  batch.indices.assign(first, first + static_cast<std::ptrdiff_t>(count));
  running_.given += count;
  batch.last_of_round = running_.given == indices_.size();
  return batch;
}

void RoundEngine::SegmentReady(std::size_t segment) {
  TACTUS_CHECK(round_open_ && running_.given == indices_.size());
  BeginReduction();
  reduction_.SegmentReady(segment);
}

void RoundEngine::Step(const StepResult& result) {
  TACTUS_CHECK(round_open_);
  running_.loss_sum += result.loss_sum;
  running_.compute += result.finished - result.started;
  running_.finished = result.finished;
  if (running_.given == indices_.size()) CloseRound();
}

void RoundEngine::OpenRound() {
  indices_.clear();
  for (const Stretch& stretch : ledger_.Reserve()) {
    for (std::uint64_t at = stretch.begin; at < stretch.end; ++at) {
      indices_.push_back(ledger_.SampleAt(at));
    }
  }
  running_ = {.samples = indices_.size(), .finished = edge_};
  round_open_ = true;
}

void RoundEngine::BeginReduction() {
  if (running_.reducing) return;
  running_.reducing = true;
  reduction_.Begin(buffers_.gradients);
}

// Called with each stretch of the gradients while it still holds this member's own.
void RoundEngine::BeforeReduce(std::span<float> stretch) {
  const std::size_t offset = static_cast<std::size_t>(stretch.data() - buffers_.gradients.data());
  const std::size_t end = std::min(offset + stretch.size(), length_);
  if (end > offset) running_.gradient_norm2 += device_.SquaredNorm(stretch.first(end - offset));
  if (offset + stretch.size() == buffers_.gradients.size()) WriteOwnLanes();
}

void RoundEngine::WriteOwnLanes() {
  Lanes lanes;
  lanes.samples = static_cast<double>(running_.samples);
  lanes.members = 1;
  if (std::isfinite(running_.gradient_norm2) && std::isfinite(running_.loss_sum)) {
    lanes.loss_sum = running_.loss_sum;
    // b ||s / b||^2 = ||s||^2 / b, s the summed gradient.
    if (running_.samples > 0) {
      lanes.samples_gradient_norm2 = running_.gradient_norm2 / lanes.samples;
    }
  } else {
    lanes.nonfinite = 1;
  }
  lanes.plan_votes = plans_waiting_.empty() ? 0 : 1;
  if (transport_.rank() == 0 && TimeIsUp()) RequestStop(TimeReason(*options_.stop.time), false);
  lanes.stop_votes = stop_requested_ ? 1 : 0;
  lanes.discard_votes = discard_requested_ ? 1 : 0;
  WriteLanes(lanes, static_cast<std::size_t>(transport_.rank()),
             buffers_.gradients.subspan(length_));
}

// One member's clock decides for all: rank 0's.
bool RoundEngine::TimeIsUp() const {
  return options_.stop.time && running_.finished - begun_ >= *options_.stop.time;
}

void RoundEngine::CloseRound() {
  BeginReduction();
  reduction_.FinishTail();
  const collective::Completion reduction = reduction_.Wait();
  round_open_ = false;
  if (reduction.progress == collective::Progress::kFailed) {
    ledger_.Abandon();
    device_.Fill(0, buffers_.gradients);
    outcome_ = Outcome::kGroupLost;
    reason_ = reduction.reason;
    return;
  }
  const Lanes lanes = ReadLanes(buffers_.gradients.subspan(length_));
  const double norm2 =
      device_.SquaredNorm(buffers_.gradients.first(length_)) / (lanes.samples * lanes.samples);
  // The lanes and the reduced gradient are equal on all members, so all skip together.
  const bool skip = lanes.nonfinite > 0 || !std::isfinite(norm2);
  nonfinite_rounds_ = skip ? nonfinite_rounds_ + 1 : 0;
  if (!skip) {
    optimizer_.Step(buffers_.gradients.first(length_), GradientScale(lanes, norm2),
                    buffers_.parameters);
    losses_.Add(lanes.loss_sum, lanes.samples);
  }
  Report(lanes, reduction, skip ? 0 : norm2);
  if (static_cast<std::uint64_t>(lanes.samples) == ledger_.reserved()) {
    ledger_.ApplyWhole();
  } else {
    ledger_.Apply(ToCounts(lanes.member_samples));
  }
  device_.Fill(0, buffers_.gradients);
  edge_ = reduction.at;
  Settle(lanes);
}

// Sum to mean, and clipping: min(1, clip / ||g||) / samples. Source: design; clipping as
// torch.nn.utils.clip_grad_norm_ without its 1e-6 in the denominator.
double RoundEngine::GradientScale(const Lanes& lanes, double norm2_global) const {
  double scale = 1.0 / lanes.samples;
  if (options_.clip_norm) {
    const double norm = std::sqrt(norm2_global);
    if (norm > *options_.clip_norm) scale *= *options_.clip_norm / norm;
  }
  return scale;
}

void RoundEngine::Report(const Lanes& lanes, const collective::Completion& reduction,
                         double norm2_global) {
  samples_ += running_.samples;
  samples_global_ += static_cast<std::uint64_t>(lanes.samples);
  const double own = static_cast<double>(running_.samples);
  const bool finite = std::isfinite(running_.gradient_norm2) && std::isfinite(running_.loss_sum);
  report_ = policies::Report{
      .round = rounds_,
      .plan_version = plan_.version,
      .rank = static_cast<std::uint32_t>(transport_.rank()),
      .samples = running_.samples,
      .loss_sum = finite ? running_.loss_sum : 0,
      .compute_seconds = ToSeconds(running_.compute),
      .blocked_seconds = ToSeconds(reduction.at - running_.finished),
      .round_seconds = ToSeconds(reduction.at - edge_),
      .bytes_sent = reduction_.bytes(),
      .gradient_norm2_local = finite && own > 0 ? running_.gradient_norm2 / (own * own) : 0,
      .gradient_norm2_global = norm2_global,
      .samples_global = static_cast<std::uint64_t>(lanes.samples),
      .loss_mean_global = lanes.loss_sum / lanes.samples,
      .nonfinite_members = static_cast<std::uint32_t>(lanes.nonfinite),
      .epoch = ledger_.epoch(),
      .epoch_consumed = ledger_.consumed() + static_cast<std::uint64_t>(lanes.samples)};
}

// After a round: who stops, which plan is in force. Every member comes to the same conclusion.
void RoundEngine::Settle(const Lanes& lanes) {
  ++rounds_;
  if (lanes.plan_votes == transport_.size()) {
    plan_ = plans_waiting_.Pop();
    ledger_.SetShares(plan_.batch_sizes, static_cast<std::size_t>(transport_.rank()));
  }

  if (nonfinite_rounds_ >= options_.nonfinite_rounds_max) {
    outcome_ = Outcome::kDiverged;
    reason_ =
        "the gradient was not finite in " + std::to_string(nonfinite_rounds_) + " rounds in a row";
    return;
  }
  reason_ = ReasonToStop(options_.stop,
                         {.rounds = rounds_, .epochs = ledger_.epoch(), .losses = &losses_});
  if (reason_.empty() && lanes.stop_votes > 0) {
    reason_ = stop_reason_.empty() ? "another member asked to stop" : stop_reason_;
  }
  if (!reason_.empty()) {
    outcome_ = lanes.discard_votes > 0 ? Outcome::kDiscarded : Outcome::kFinished;
  }
}

bool RoundEngine::OfferPlan(policies::Plan plan) {
  const std::uint64_t known = plan_.version + plans_waiting_.size();
  if (plan.version <= known) return true;
  if (plan.version != known + 1 || !Fits(plan, transport_.size())) return false;
  return plans_waiting_.Push(std::move(plan));
}

void RoundEngine::RequestStop(std::string reason, bool discard) {
  if (!stop_requested_) stop_reason_ = std::move(reason);
  stop_requested_ = true;
  discard_requested_ = discard_requested_ || discard;
}

std::optional<policies::Report> RoundEngine::TakeReport() {
  return std::exchange(report_, std::nullopt);
}

}  // namespace tactus::engine
