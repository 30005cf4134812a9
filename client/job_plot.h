// A job's rounds and decisions as a plot. Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/svg_plot.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// What the horizontal axis counts.
enum class PlotAxis {
  kTime,    // seconds of training; rounds that are not on record take as long as their neighbours
  kRounds,  // applied rounds
};

// Takes a job's rounds one by one, oldest first, in bounded memory: loss; samples of a step, of all
// workers and of each of the first 8; steps of a round.
class JobPlot {
 public:
  explicit JobPlot(PlotAxis axis) : axis_(axis) {}

  void Add(const v1::Round& round);
  std::uint64_t rounds() const { return rounds_; }

  // `name` of the job, its decisions as marks.
  Plot Finish(const std::string& name, const v1::ListDecisionsResponse& decisions);

 private:
  double Advance(const v1::Round& round);

  const PlotAxis axis_;
  std::uint64_t rounds_ = 0;
  double seconds_ = 0;
  double seconds_before_ = 0;  // of the round before
  std::optional<std::uint64_t> round_before_{};
  PlotSeries loss_{.name = "loss"};
  PlotSeries steps_{.name = "steps"};
  PlotSeries batch_{.name = "all"};
  std::vector<PlotSeries> batches_{};  // by rank
};

}  // namespace tactus::client
