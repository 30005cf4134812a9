// Which period AdaComm starts with: a short measured search at the start of a job.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/observations.h"

namespace tactus::policies {

// From the long end: after a few rounds of single steps, which tell how the loss falls and what an
// exchange takes, the shortest period with which that is at most kShareMax of the time, as longer
// ones save nothing. Where it hurts the fall of the loss, the next shorter one, and so on.
//
//   stretch      at least kRoundsMin rounds of kStepsMin steps in all, without the first round; of
//                single steps kRoundsFirst rounds
//   hurts        the loss Lags behind the line of the single steps; after a period that did, it
//                falls by a lower power of time, by more than kLagMargin and kLagErrors.
//                Or a round was lost to numbers that are not finite
//
// It ends with the first that does not hurt. What a stretch taught is kept: the search costs only
// what its worse periods lose. From the short end it would cost most of what the long ones save: a
// minute and more of short periods where the exchange takes several times as long as a step.
//
// Source: [adacomm] section 5: that tau_0 is found by trying {1, 2, 5, ...}; memory, unverified.
// Design: what is tried how long and compared how.
class PeriodSearch {
 public:
  static constexpr std::array<std::uint32_t, 7> kCandidates = {1, 2, 5, 10, 20, 50, 100};
  static constexpr int kRoundsMin = 6;
  static constexpr std::uint64_t kStepsMin = 40;
  static constexpr int kRoundsFirst = 4;
  static constexpr double kShareMax = 0.10;

  // period_max: >= 1.
  explicit PeriodSearch(std::uint32_t period_max) : period_max_(period_max) {}
  PeriodSearch() = default;  // to be read into

  // The period to run now.
  std::uint32_t period() const { return kCandidates[at_]; }
  bool done() const { return done_; }

  // What the search made of a stretch, for a person.
  struct Step {
    std::string reason{};  // a sentence
    LossTrend trend{};     // of the stretch
    double share = 0;      // of the exchange in its time: of an exchange every step, before
  };

  // Looks at the rounds under the plan of `version`, which runs period(). Returns what it learned
  // when the stretch is long enough, having moved on.
  std::optional<Step> Look(const Observations& seen, std::uint64_t version);

  friend void Fields(auto& archive, Of<PeriodSearch> auto& search) {
    archive("period_max", search.period_max_);
    archive("at", search.at_);
    archive("first", search.first_);
    archive("hurt", search.hurt_);
    archive("done", search.done_);
  }
  friend bool Sound(const PeriodSearch& search) {
    return search.period_max_ >= 1 && search.at_ < kCandidates.size();
  }

 private:
  bool LongEnough(std::size_t rounds) const;
  std::size_t LongEnd(double step, double transfer) const;
  void Begin(Step& step, double step_seconds, double transfer_seconds);
  void Conclude(Step& step, bool lost);
  bool Slows(const LossTrend& trend) const;

  std::uint32_t period_max_ = 1;
  std::size_t at_ = 0;
  std::optional<LossTrend> first_;  // of the single steps
  bool hurt_ = false;               // a longer period did
  bool done_ = false;
};

}  // namespace tactus::policies
