// A job's rounds and decisions as a plot. Pure.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/observe/round_gap.h"
#include "client/render/svg_plot.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// What the horizontal axis counts.
enum class PlotAxis {
  // Seconds of training, validations included. Rounds that are not on record take as long as their
  // neighbours; a validation among them counts behind the next that is.
  kTime,
  kRounds,  // applied rounds
};

// Takes a job's rounds one by one, oldest first, in bounded memory: loss; samples of a step, of all
// workers and of each of the first 8, without the short last rounds of epochs, which are no choice
// of anybody; steps of a round. Decisions are marks at the ends of their rounds, on the same axis
// as the curves, and so are the points of the validation loss; those of rounds behind the last are
// left out.
class JobPlot {
 public:
  JobPlot(PlotAxis axis, const v1::ListDecisionsResponse& decisions,
          const v1::ListValidationsResponse& validations = {});

  void Add(const v1::Round& round);
  std::uint64_t rounds() const { return rounds_; }

  // `name` of the job.
  Plot Finish(const std::string& name);

 private:
  struct DecisionMark {
    std::uint64_t round = 0;
    std::string text{};
  };
  // Samples of a step, which are drawn once it is known what came next.
  struct Batch {
    double x = 0;
    std::uint64_t epoch = 0;
    std::uint64_t plan_version = 0;
    double all = 0;
    std::vector<double> workers{};  // the first, by rank
  };
  struct ValidationMark {
    std::uint64_t round = 0;  // the last that was applied before it
    double loss = 0;
    double seconds = 0;
  };
  double Advance(const v1::Round& round);
  double EndOf(std::uint64_t at, const RoundLength& round, double begin) const;
  bool IsRest(const Batch& batch) const;
  void DrawBatch(Batch batch);
  void PlaceMarks(const RoundLength& round, double begin);
  void PlaceValidations(const RoundLength& round, double begin);

  const PlotAxis axis_;
  std::vector<DecisionMark> decisions_;  // by round
  std::size_t placed_ = 0;               // of them
  std::vector<PlotMark> marks_{};
  std::optional<double> x_begin_{};
  std::uint64_t rounds_ = 0;
  double seconds_ = 0;
  std::optional<RoundLength> before_{};
  std::vector<ValidationMark> validations_;  // by round
  std::size_t validations_placed_ = 0;
  double between_ = 0;  // seconds of validations behind the last round on record, and before it
  PlotSeries loss_{.name = "loss"};
  PlotSeries validation_{.name = "validation"};
  PlotSeries steps_{.name = "steps"};
  PlotSeries batch_{.name = "all"};
  std::vector<PlotSeries> batches_{};  // by rank
  std::optional<Batch> waiting_{};     // of the newest round
  std::optional<Batch> drawn_{};       // the newest
};

}  // namespace tactus::client
