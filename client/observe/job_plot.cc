#include "client/observe/job_plot.h"

#include <algorithm>
#include <utility>

#include "client/render/tables.h"

namespace tactus::client {
namespace {

constexpr int kWorkersDrawn = 8;

}  // namespace

JobPlot::JobPlot(PlotAxis axis, const v1::ListDecisionsResponse& decisions,
                 const v1::ListValidationsResponse& validations)
    : axis_(axis) {
  for (const v1::ValidationPoint& point : validations.validations()) {
    if (point.rounds() == 0) continue;
    validations_.push_back({.round = point.rounds() - 1,
                            .loss = point.loss(),
                            .seconds = SaneSeconds(point.seconds())});
  }
  std::ranges::stable_sort(validations_, {}, &ValidationMark::round);
  for (const v1::Decision& decision : decisions.decisions()) {
    if (decision.from().empty()) continue;  // of the first plan: nothing changed
    decisions_.push_back({.round = decision.round(),
                          .text = AxisName(decision.axis()) + ": " + decision.from() + " to " +
                                  decision.to() + ". " + decision.reason()});
  }
  std::ranges::stable_sort(decisions_, {}, &DecisionMark::round);
}

// Where the round ends.
double JobPlot::Advance(const v1::Round& round) {
  const RoundLength length{.round = round.round(), .seconds = SaneSeconds(round.seconds())};
  seconds_ += std::exchange(between_, 0);
  const double begin = seconds_;
  if (before_) {
    seconds_ += GapBetween(*before_, length).seconds;
  } else {
    seconds_ = static_cast<double>(length.round) * length.seconds;  // before the first on record
    if (length.round == 0) x_begin_ = 0;
  }
  seconds_ += length.seconds;
  PlaceMarks(length, begin);
  PlaceValidations(length, begin);
  before_ = length;
  return axis_ == PlotAxis::kTime ? seconds_ : static_cast<double>(round.round());
}

// Where the round `at` ends, on the axis, which is `round` or one of those since the one before on
// record. `round` ends now; begin: where the one before ended.
double JobPlot::EndOf(std::uint64_t at, const RoundLength& round, double begin) const {
  if (axis_ != PlotAxis::kTime) return static_cast<double>(at);
  if (at >= round.round) return seconds_;
  const std::uint64_t first = before_ ? before_->round + 1 : 0;
  const double gap = seconds_ - round.seconds - begin;
  return begin +
         gap * static_cast<double>(at - first + 1) / static_cast<double>(round.round - first);
}

// Of decisions up to `round`.
void JobPlot::PlaceMarks(const RoundLength& round, double begin) {
  const std::uint64_t first = before_ ? before_->round + 1 : 0;
  for (; placed_ < decisions_.size() && decisions_[placed_].round <= round.round; ++placed_) {
    const std::uint64_t at = std::max(first, decisions_[placed_].round);
    marks_.push_back({.x = EndOf(at, round, begin), .text = std::move(decisions_[placed_].text)});
  }
}

// Likewise.
void JobPlot::PlaceValidations(const RoundLength& round, double begin) {
  const std::uint64_t first = before_ ? before_->round + 1 : 0;
  std::size_t& placed = validations_placed_;
  for (; placed < validations_.size() && validations_[placed].round <= round.round; ++placed) {
    const std::uint64_t at = std::max(first, validations_[placed].round);
    validation_.curve.Add(EndOf(at, round, begin), validations_[placed].loss);
    between_ += validations_[placed].seconds;
  }
}

void JobPlot::Add(const v1::Round& round) {
  ++rounds_;
  const double x = Advance(round);
  const double steps = std::max<double>(1, round.steps());
  loss_.curve.Add(x, round.loss());
  steps_.curve.Add(x, steps);
  Batch batch{.x = x,
              .epoch = round.epoch(),
              .plan_version = round.plan_version(),
              .all = static_cast<double>(round.samples()) / steps};
  const int workers = std::min(round.worker_samples_size(), kWorkersDrawn);
  for (int rank = 0; rank < workers; ++rank) {
    batch.workers.push_back(static_cast<double>(round.worker_samples(rank)) / steps);
  }
  if (waiting_ && !(waiting_->epoch != batch.epoch && IsRest(*waiting_))) {
    DrawBatch(*std::move(waiting_));
  }
  waiting_ = std::move(batch);
}

// Less than the same plan asked for before.
bool JobPlot::IsRest(const Batch& batch) const {
  return drawn_ && drawn_->plan_version == batch.plan_version && batch.all < drawn_->all;
}

void JobPlot::DrawBatch(Batch batch) {
  batch_.curve.Add(batch.x, batch.all);
  for (std::size_t rank = 0; rank < batch.workers.size(); ++rank) {
    if (rank == batches_.size()) batches_.push_back({.name = "rank " + std::to_string(rank)});
    batches_[rank].curve.Add(batch.x, batch.workers[rank]);
  }
  drawn_ = std::move(batch);
}

Plot JobPlot::Finish(const std::string& name) {
  if (waiting_ && !IsRest(*waiting_)) DrawBatch(*std::move(waiting_));
  waiting_.reset();
  std::vector<PlotSeries> losses;
  losses.push_back(std::move(loss_));
  if (!validation_.curve.empty()) losses.push_back(std::move(validation_));
  std::vector<PlotSeries> batches;
  batches.push_back(std::move(batch_));
  std::ranges::move(batches_, std::back_inserter(batches));
  const bool time = axis_ == PlotAxis::kTime;
  return {.title = name,
          .x_title = time ? "training time [s]" : "round",
          .x_begin = x_begin_,
          .x_whole = !time,
          .panels = {{.title = "Loss", .series = std::move(losses)},
                     {.title = "Batch size [samples of a step]",
                      .shape = PlotShape::kCounts,
                      .series = std::move(batches)},
                     {.title = "Period [steps of a round]",
                      .shape = PlotShape::kCounts,
                      .series = {std::move(steps_)}}},
          .marks = std::move(marks_)};
}

}  // namespace tactus::client
