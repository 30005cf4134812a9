// Whether a change of the synchronization kept its promise: rounds after against rounds before.

#pragma once

#include <cstdint>
#include <string>

#include "base/fields.h"
#include "policies/observations.h"

namespace tactus::policies {

// Watches kRounds rounds after a change, or kRoundsMin where they last kSecondsMin, without the
// first kRoundsOfChange, in which the former plan still shows. It is regretted when
//
//   a round was lost to numbers that are not finite, which did not happen before, or
//   the loss is above that of the latest rounds before by more than kLossMargin of it and
//   kLossErrors standard errors, or useful samples/s, measured, are below those before by more than
//   kRateMargin, or the loss Lags behind what it would be by going on as before
//
// the first two looked at with each round, the others after 4, 8, 14 and 20.
//
// Source: design.
class ChangeTrial {
 public:
  static constexpr int kRounds = 20;
  static constexpr int kRoundsMin = 4;  // where they last kSecondsMin
  static constexpr double kSecondsMin = 15;
  static constexpr int kRoundsOfChange = 2;
  static constexpr double kRateMargin = 0.02;
  static constexpr double kLossMargin = 0.25;
  static constexpr double kLossErrors = 4;

  struct Setting {
    std::uint64_t version_before = 0;  // of the first plan with what was before the change
    std::uint64_t version = 0;         // of the plan with the change
    double seconds_start = 0;          // of training time
    double base_batch = 32;            // [samples] > 0
    double loss_floor = 0;             // F_inf

    friend void Fields(auto& archive, Of<Setting> auto& setting) {
      archive("version_before", setting.version_before);
      archive("version", setting.version);
      archive("seconds_start", setting.seconds_start);
      archive("base_batch", setting.base_batch);
      archive("loss_floor", setting.loss_floor);
    }
    friend bool Sound(const Setting& setting) { return setting.base_batch > 0; }
  };
  ChangeTrial() = default;  // to be read into
  explicit ChangeTrial(const Setting& setting) : setting_(setting) {}

  enum class Verdict { kOpen, kKept, kRegretted };
  struct Judgement {
    Verdict verdict = Verdict::kOpen;
    std::string reason{};  // of a regret, a clause
    bool undo = false;     // the loss rose, or numbers were lost: going on makes it no better
  };
  // Asked after each whole round.
  Judgement Look(const Observations& seen);

  // What there was to compare; 0 where nothing was measured.
  struct Evidence {
    double useful_before = 0;  // [useful samples/s]
    double useful = 0;
    double fall_before = 0;  // LossTrend::fall
    double fall = 0;
  };
  Evidence Compare(const Observations& seen) const;

  const Setting& setting() const { return setting_; }

  friend void Fields(auto& archive, Of<ChangeTrial> auto& trial) {
    archive("setting", trial.setting_);
    archive("rounds_looked", trial.rounds_looked_);
  }

 private:
  Observations::Span Before(int most) const;
  Observations::Span After() const;
  std::string RegretOfLoss(const Observations& seen, int rounds) const;
  std::string RegretOfPace(const Observations& seen, int rounds) const;

  Setting setting_;
  int rounds_looked_ = 0;
};

}  // namespace tactus::policies
