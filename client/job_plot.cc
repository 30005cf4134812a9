#include "client/job_plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "client/progress_view.h"
#include "client/tables.h"

namespace tactus::client {
namespace {

constexpr int kWorkersDrawn = 8;

double Sane(double seconds) { return std::isfinite(seconds) && seconds > 0 ? seconds : 0; }

}  // namespace

// Where the round ends.
double JobPlot::Advance(const v1::Round& round) {
  const double seconds = Sane(round.seconds());
  if (round_before_ && round.round() > *round_before_ + 1) {
    const auto missing = static_cast<double>(round.round() - *round_before_ - 1);
    seconds_ += missing * (seconds_before_ + seconds) / 2;
  } else if (!round_before_) {
    seconds_ = static_cast<double>(round.round()) * seconds;  // before the first on record
  }
  seconds_ += seconds;
  seconds_before_ = seconds;
  round_before_ = round.round();
  return axis_ == PlotAxis::kTime ? seconds_ : static_cast<double>(round.round());
}

void JobPlot::Add(const v1::Round& round) {
  ++rounds_;
  const double x = Advance(round);
  const double steps = std::max<double>(1, round.steps());
  loss_.curve.Add(x, round.loss());
  steps_.curve.Add(x, steps);
  batch_.curve.Add(x, static_cast<double>(round.samples()) / steps);
  const int workers = std::min(round.worker_samples_size(), kWorkersDrawn);
  for (int rank = 0; rank < workers; ++rank) {
    if (rank == static_cast<int>(batches_.size())) {
      batches_.push_back({.name = "rank " + std::to_string(rank)});
    }
    batches_[static_cast<std::size_t>(rank)].curve.Add(
        x, static_cast<double>(round.worker_samples(rank)) / steps);
  }
}

Plot JobPlot::Finish(const std::string& name, const v1::ListDecisionsResponse& decisions) {
  std::vector<PlotSeries> batches;
  batches.push_back(std::move(batch_));
  std::ranges::move(batches_, std::back_inserter(batches));
  Plot plot{.title = name,
            .x_title = axis_ == PlotAxis::kTime ? "training time [s]" : "round",
            .panels = {{.title = "Loss", .series = {std::move(loss_)}},
                       {.title = "Batch size [samples of a step]", .series = std::move(batches)},
                       {.title = "Period [steps of a round]", .series = {std::move(steps_)}}}};
  for (const v1::Decision& decision : decisions.decisions()) {
    if (decision.from().empty()) continue;  // of the first plan: nothing changed
    const double x = axis_ == PlotAxis::kTime ? ToSeconds(FromProto(decision.train_time()))
                                              : static_cast<double>(decision.round());
    plot.marks.push_back({.x = x,
                          .text = AxisName(decision.axis()) + ": " + decision.from() + " to " +
                                  decision.to() + ". " + decision.reason()});
  }
  return plot;
}

}  // namespace tactus::client
