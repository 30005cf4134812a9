// Which period AdaComm starts with: a short measured search at the start of a job.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/observations.h"

namespace tactus::policies {

// Tries ever longer periods, each for a stretch of the training itself, and takes the largest that
// does not hurt the fall of the loss in the time it takes.
//
//   stretch      at least kRoundsMin rounds of kStepsMin steps in all, without the first round
//   c hurts      the loss Lags behind the line of the stretch before, or a round was lost to
//                numbers that are not finite
//   enough       the exchange takes less than kShareMin of the time, so longer periods save nothing
//
// It ends with the first that hurts, the first that is enough, or the last that period_max allows.
// What a stretch taught is kept: the search costs only what its worse periods lose.
//
// Source: [adacomm] section 5: that tau_0 is found by trying {1, 2, 5, ...}; memory, unverified.
// Design: what is tried how long and compared how.
class PeriodSearch {
 public:
  static constexpr std::array<std::uint32_t, 7> kCandidates = {1, 2, 5, 10, 20, 50, 100};
  static constexpr int kRoundsMin = 6;
  static constexpr std::uint64_t kStepsMin = 40;
  static constexpr double kShareMin = 0.05;

  // period_max: >= 1.
  explicit PeriodSearch(std::uint32_t period_max) : period_max_(period_max) {}
  PeriodSearch() = default;  // to be read into

  // The period to run now.
  std::uint32_t period() const { return done_ ? best_ : kCandidates[at_]; }
  bool done() const { return done_; }

  // What the search made of a stretch, for a person.
  struct Step {
    std::string reason{};  // a sentence
    LossTrend trend{};     // of the stretch
    double share = 0;      // of the exchange in its time
  };

  // Looks at the rounds under the plan of `version`, which runs period(). Returns what it learned
  // when the stretch is long enough, having moved on.
  std::optional<Step> Look(const Observations& seen, std::uint64_t version);

  friend void Fields(auto& archive, Of<PeriodSearch> auto& search) {
    archive("period_max", search.period_max_);
    archive("at", search.at_);
    archive("best", search.best_);
    archive("best_trend", search.best_trend_);
    archive("done", search.done_);
  }
  friend bool Sound(const PeriodSearch& search) {
    return search.period_max_ >= 1 && search.at_ < kCandidates.size() && search.best_ >= 1;
  }

 private:
  void Conclude(const Step& step, bool hurts);

  std::uint32_t period_max_ = 1;
  std::size_t at_ = 0;
  std::uint32_t best_ = 1;
  LossTrend best_trend_{};
  bool done_ = false;
};

}  // namespace tactus::policies
