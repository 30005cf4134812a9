#include "tests/policies/virtual_job.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "policies/auto_aggregation.h"
#include "policies/orthogonality.h"

namespace tactus::policies {

VirtualJob::VirtualJob(const VirtualJobOptions& options)
    : options_(options),
      planner_(std::in_place, options.planner),
      rng_(options.seed),
      slow_(options.slow, options.workers.size(), ~options.seed),
      rate_({.schedule = {.base = options.loss.rate}, .base_batch = options.planner.base_batch}),
      variance_(options.loss.curvatures.size(), 0.0),
      begun_(options.workers.size(), 0.0) {
  for (const double curvature : options.loss.curvatures) {
    mean_.push_back(options.loss.distance / std::pow(curvature, 0.25));
  }
  mean_before_ = mean_;
  Regroup();
}

void VirtualJob::Regroup(bool goes_on) {
  const std::uint64_t last = std::max(plan_.version, travelling_.version);
  plan_ = planner_
              ->Start({.members = static_cast<std::uint32_t>(options_.workers.size()),
                       .speeds = options_.tried_speeds,
                       .before = goes_on ? std::optional(plan_) : std::nullopt,
                       .goes_on = goes_on,
                       .prior = options_.prior,
                       .exchange_seconds = options_.exchange_seconds,
                       .encodings = options_.encodings})
              .plan;
  plan_.version = last + 1;
  travelling_ = {};
  plans_.push_back(plan_);
  kept_.reset();
  FollowTrial();
}

void VirtualJob::FollowTrial() {
  if (plan_.trial == Trial::kRuns) return;
  if (plan_.trial == Trial::kUndone && kept_) {
    mean_ = mean_before_ = kept_->mean;
    variance_ = kept_->variance;
    rate_.Restore(kept_->rate);
  }
  kept_.reset();
  if (plan_.trial == Trial::kBegins) kept_ = {mean_, variance_, rate_.state()};
}

void VirtualJob::Run(int rounds) {
  for (int i = 0; i < rounds; ++i) RunRound();
}

void VirtualJob::RunUntil(double seconds, int rounds_max) {
  for (int i = 0; i < rounds_max && seconds_ < seconds; ++i) RunRound();
}

std::string VirtualJob::RestartPlanner() {
  const std::string memory = planner_->Memory();
  planner_.emplace(options_.planner);
  std::string why = planner_->Recall(memory, static_cast<std::uint32_t>(begun_.size()));
  planner_->Resume(plan_, options_.encodings);
  return why;
}

double VirtualJob::loss() const {
  double loss = options_.loss.floor;
  for (std::size_t j = 0; j < mean_.size(); ++j) {
    loss += options_.loss.curvatures[j] * (mean_[j] * mean_[j] + variance_[j]) / 2;
  }
  return loss;
}

double VirtualJob::GradientNorm2() const {
  double norm2 = 0;
  for (std::size_t j = 0; j < mean_.size(); ++j) {
    const double curvature = options_.loss.curvatures[j];
    norm2 += curvature * curvature * (mean_[j] * mean_[j] + variance_[j]);
  }
  return norm2;
}

double VirtualJob::noise_scale() const { return options_.loss.variance / GradientNorm2(); }

std::vector<Decision> VirtualJob::DecisionsOf(Axis axis) const {
  std::vector<Decision> of_axis;
  for (const Decision& decision : decisions_) {
    if (decision.axis == axis) of_axis.push_back(decision);
  }
  return of_axis;
}

double VirtualJob::Noisy(double seconds) {
  return seconds * std::exp(options_.noise * rng_.Normal());
}

double VirtualJob::ShareSent() const {
  const bool rest = RowOf(plan_.encoding).deviation == Deviation::kResidual;
  if (rest && options_.residual_share > 0) return options_.residual_share;
  return ShareOf(plan_.encoding, Members());
}

double VirtualJob::TransferSeconds() {
  const double share = ShareSent();
  const double bytes = options_.transfer_seconds - options_.latency_seconds;
  const double encode = plan_.encoding == Encoding::kDense ? 0 : options_.encode_seconds;
  return Noisy(options_.latency_seconds + share * bytes + encode);
}

double VirtualJob::StepSeconds(std::size_t rank) {
  const VirtualWorker& worker = options_.workers[rank];
  return Noisy(worker.fixed_seconds + plan_.batch_sizes[rank] / worker.speed) / slow_.Factor(rank);
}

VirtualJob::Times VirtualJob::LockStep() {
  Times times;
  for (std::size_t rank = 0; rank < begun_.size(); ++rank) {
    double compute = 0;
    for (std::uint32_t step = 0; step < plan_.period; ++step) compute += StepSeconds(rank);
    times.compute.push_back(compute);
    times.steps.push_back(plan_.period);
  }
  const double end = *std::max_element(times.compute.begin(), times.compute.end()) +
                     (begun_.size() > 1 ? TransferSeconds() : 0);
  for (const double compute : times.compute) {
    times.blocked.push_back(end - compute);
    times.transfer.push_back(end - compute);
    times.round.push_back(end);
  }
  seconds_ += end;
  was_delayed_ = false;
  return times;
}

VirtualJob::Times VirtualJob::Delayed() {
  if (!std::exchange(was_delayed_, true)) {
    std::fill(begun_.begin(), begun_.end(), seconds_);
    transfer_end_ = seconds_;
  }
  Times times;
  std::vector<double> ends = begun_;
  for (std::size_t rank = 0; rank < begun_.size(); ++rank) {
    std::uint32_t steps = 0;
    do {
      ends[rank] += StepSeconds(rank) * options_.delayed_slowdown;
      ++steps;
    } while (ends[rank] < transfer_end_ && steps < plan_.period);
    times.steps.push_back(steps);
    times.compute.push_back(ends[rank] - begun_[rank]);
    times.blocked.push_back(std::max(transfer_end_ - ends[rank], 0.0));
    ends[rank] = std::max(ends[rank], transfer_end_);
    times.round.push_back(ends[rank] - begun_[rank]);
  }
  const double start = *std::max_element(ends.begin(), ends.end());
  transfer_end_ = start + TransferSeconds();
  for (const double end : ends) times.transfer.push_back(transfer_end_ - end);
  begun_ = ends;
  seconds_ = std::accumulate(ends.begin(), ends.end(), 0.0) / static_cast<double>(ends.size());
  return times;
}

void VirtualJob::Update(double rate, double samples, bool delayed) {
  const VirtualLoss& loss = options_.loss;
  const double drift = plan_.synchronization == Synchronization::kPeriodic
                           ? 1 + loss.drift * (plan_.period - 1.0)
                           : 1;
  const Deviation deviation = RowOf(plan_.encoding).deviation;
  const double noisier = deviation == Deviation::kNoise ? 1 + options_.encoding_noise : 1;
  const double worth = deviation == Deviation::kResidual ? options_.residual_worth : 1;
  const double directions = static_cast<double>(mean_.size());
  for (std::size_t j = 0; j < mean_.size(); ++j) {
    const double step = worth * rate * loss.curvatures[j];
    const double at = delayed ? mean_before_[j] : mean_[j];
    mean_before_[j] = mean_[j];
    mean_[j] -= step * at;
    variance_[j] = (1 - step) * (1 - step) * variance_[j] +
                   rate * rate * loss.variance / directions * drift * noisier / samples;
  }
}

Report VirtualJob::Learn(const Times& times) {
  const bool periodic = plan_.synchronization == Synchronization::kPeriodic;
  const bool delayed = plan_.synchronization == Synchronization::kDelayed;
  double samples = 0;
  double squares = 0;
  Report all{.round = round_, .plan_version = plan_.version};
  const double norm2 = GradientNorm2();
  const double variance = options_.loss.variance;
  for (std::size_t rank = 0; rank < times.steps.size(); ++rank) {
    const double own = 1.0 * plan_.batch_sizes[rank] * times.steps[rank];
    if (own <= 0) continue;
    ++all.contributors;
    samples += own;
    squares += own * own;
    all.samples_gradient_norm2 += own * norm2 + variance * (1 + 0.2 * rng_.Normal());
  }
  samples_ += samples;
  all.samples_global = static_cast<std::uint64_t>(samples);
  all.gradient_norm2_global = norm2 + variance / samples * (1 + 0.2 * rng_.Normal());
  const double updates = periodic ? plan_.period : 1;
  const double first = samples / updates;
  const auto measured = [&](double over) {
    return loss() + options_.loss.sample_noise / std::sqrt(over) * rng_.Normal();
  };
  all.loss_mean_global = measured(first);
  if (updates > 1) {
    all.local_samples_global = static_cast<std::uint64_t>(samples - first);
    all.local_loss_mean_global = measured(samples - first);
  }
  const bool tells = TellsNoise(plan_.encoding);
  const UpdateFacts facts{.samples = samples,
                          .contributors = tells ? all.contributors : 0,
                          .samples_gradient_norm2 = all.samples_gradient_norm2,
                          .gradient_norm2 = all.gradient_norm2_global};
  const double orthogonality = Orthogonality(facts, squares);
  if (tells) all.orthogonality = orthogonality;
  // Its steps go along the gradient, whatever the planner takes them for.
  const LearningRate::LocalStep step = {
      .samples = first, .contributors = all.contributors, .own = squares / samples / updates};
  const LearningRate::Rate rate = periodic ? rate_.NextOfWindow(plan_.learning_rate_rule, step)
                                           : rate_.Next(plan_.learning_rate_rule, samples);
  all.learning_rate = rate.rate;
  all.gain = rate.gain;
  double length = 1;
  if (plan_.aggregation == Aggregation::kAdasum) {
    length += (all.contributors - 1.0) * Disagreement(orthogonality, all.contributors);
  }
  for (int update = 0; update < updates; ++update) {
    Update(rate.rate * length, samples / updates, delayed);
  }
  if (periodic) {
    rate_.AppliedWindow(plan_.learning_rate_rule,
                        {.step = step, .samples = samples, .updates = plan_.period}, facts);
  } else {
    rate_.Applied(plan_.learning_rate_rule, facts);
  }
  all.progress = rate_.progress();
  if (plan_.aggregation == Aggregation::kAverage && tells) all.gradient_samples = samples;
  return all;
}

void VirtualJob::RunRound() {
  if (travelling_.version > plan_.version && round_ >= arrives_at_) {
    plan_ = travelling_;
    plans_.push_back(plan_);
    FollowTrial();
  }
  const double begun = seconds_;
  const Times times = plan_.synchronization == Synchronization::kDelayed ? Delayed() : LockStep();
  slow_.Pass(seconds_ - begun);
  Report report = Learn(times);
  for (std::size_t rank = 0; rank < begun_.size(); ++rank) {
    report.rank = static_cast<std::uint32_t>(rank);
    report.steps = times.steps[rank];
    report.samples = std::uint64_t{plan_.batch_sizes[rank]} * times.steps[rank];
    report.compute_seconds = times.compute[rank];
    report.blocked_seconds = times.blocked[rank];
    report.transfer_seconds = times.transfer[rank];
    report.round_seconds = times.round[rank];
    report.update_seconds = options_.update_seconds;
    if (!options_.link_rates.empty()) report.link_bytes_per_second = options_.link_rates[rank];
    report.bytes_sent =
        static_cast<std::uint64_t>(sizeof(float) * ShareSent() * options_.parameters);
    planner_->Observe(report);
  }
  if (travelling_.version <= plan_.version) {
    if (std::optional<Revision> revision = planner_->Decide(plan_, {})) {
      travelling_ = revision->plan;
      arrives_at_ = round_ + static_cast<std::uint64_t>(options_.travel_rounds);
      for (Decision& decision : revision->decisions) decisions_.push_back(std::move(decision));
    }
  }
  for (Decision& decision : planner_->TakeMeasured()) measured_.push_back(std::move(decision));
  ++round_;
}

}  // namespace tactus::policies
