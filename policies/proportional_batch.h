// Batch sizes in proportion to measured speed, so that unequal workers finish a round together.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fields.h"
#include "policies/least_gain.h"
#include "policies/plan.h"
#include "policies/planner_options.h"
#include "policies/share_forecasts.h"
#include "policies/speed_stretches.h"

namespace tactus::policies {

// A decision about the batch sizes. Empty `batch_sizes` means "leave it as it is".
struct BatchDecision {
  std::vector<std::uint32_t> batch_sizes{};  // one a rank
  std::string reason{};                      // never empty
  double predicted_gain = 0;  // relative fall of the round's compute time, 0.25 = a quarter shorter
};

// Starts with ProportionalShares of the speeds that the workers tried out before the first round,
// or equal ones. Then, after each stretch of time, proposes the shares of which ShareForecasts
// expects most, if that is above a LeastGain of kGainMin to kGainLarge with a half-life of
// kHalfLifeSeconds, which every proposal below kGainLarge tires. So small corrections get rarer the
// more of them there are, while a real change, which gains more, is acted on at once. One that a
// worker's agent knows the reason of (Report::slowdown) is told from noise by that.
//
// Where a batch costs a fixed time beside the time of its samples, the measured speed falls with
// the batch: each proposal goes a part of the way, always towards equal times.
//
// Pure and total: every report may be folded in, every question has an answer. Not thread-safe.
//
// Source: design.
class ProportionalBatch {
 public:
  static constexpr double kGainMin = 0.03;
  static constexpr double kGainLarge = 0.10;
  static constexpr double kHalfLifeSeconds = 240;

  explicit ProportionalBatch(const BatchOptions& options)
      : options_(options), forecasts_(options) {}

  // A (new) group starts; what was learned of former ranks is forgotten. Returns the sizes to start
  // with.
  BatchDecision Start(const StartingGroup& group);

  // Folds one worker's report in.
  void Observe(const Report& report);

  // Proposes sizes given those in force, or leaves them. The caller asks when the former plan is in
  // force everywhere, so that a proposal is never made on top of one that is still travelling.
  BatchDecision Decide(const std::vector<std::uint32_t>& in_force);

  // Samples of a step from now on, until a new group starts.
  void SetTotal(std::uint64_t total) { total_ = total; }

  friend void Fields(auto& archive, Of<ProportionalBatch> auto& batch) {
    archive("stretches", batch.stretches_);
    archive("slowdowns", batch.slowdowns_);
    archive("forecasts", batch.forecasts_);
    archive("total", batch.total_);
    archive("fresh", batch.fresh_);
    archive("gain_least", batch.gain_least_);
  }
  friend bool Sound(const ProportionalBatch& batch) {
    return batch.forecasts_.Suits(batch.stretches_.members()) &&
           batch.slowdowns_.size() == batch.stretches_.members() &&
           (!batch.fresh_ || batch.forecasts_.any());
  }

 private:
  // Report::slowdown says something else than before of this worker.
  void NoteSlowdown(const Report& report);

  const BatchOptions options_;
  SpeedStretches stretches_;
  std::vector<std::string> slowdowns_;  // Report::slowdown, by rank
  ShareForecasts forecasts_;
  std::uint64_t total_ = 0;  // [samples] of a step
  bool fresh_ = false;       // a stretch ended since the last answer
  LeastGain gain_least_{kGainMin, kGainLarge, kHalfLifeSeconds};
};

}  // namespace tactus::policies
