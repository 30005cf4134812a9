// Which synchronization teaches most in a second, from measured transfer, speeds, noise and loss.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/adacomm.h"
#include "policies/axis_policy.h"
#include "policies/change_trial.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// Compares what each synchronization would teach in a second,
//
//   useful samples/s = updates U(samples) / seconds      Forecast, UsefulSamples
//
// of   every_step
//      periodic   with the smallest tau >= 2 for which the exchange takes at most kShare of the
//                 round, tau >= D (1 / kShare - 1) / s, within period_max, but at most
//                 kPeriodGrowth times the period in force: longer ones only after shorter proved
//      delayed    worth kDelayWorth of that, for gradients that are one round old; not offered
//                 for a momentum above kDelayMomentumMax
//
// and goes from the one in force to the best that may be run, if it promised more than the least
// gain in kPersistence comparisons running. The least gain is kGainMin, grows by kRestlessness with
// every change up to kGainMax, and comes back with a half-life of kHalfLife rounds.
//
// Once the period does not grow any more, Adacomm lowers it with the loss, from the loss and the
// period of that time; none is proposed again above the period that the loss asked for, nor above
// half of one that was taken back. A group of one member stays with every_step.
//
// Bounded regret: a change is on trial, ChangeTrial, and what is regretted is taken back and not
// tried again for kBanFactor times the length of the trial, twice as long each time. So a wrong
// change costs at most the trial, and of all time at most 1 / kBanFactor, halved with each
// repetition.
//
// The margin, of the closed loops in tests/policies/auto_synchronization_test.cc: over transfers of
// 0.05 to 10 steps, with noise scales of 1 to 24,000 samples, a loss is reached at most 10 % later
// than with every_step, where local steps add as much noise as the published bound of periodic
// averaging says; 50 % later where they are two and a half times as bad. What is not seen at once
// is noise that comes slowly, which Adacomm answers interval by interval.
//
// Source: design.
class AutoSynchronization final : public AxisPolicy {
 public:
  static constexpr double kShare = 0.10;
  static constexpr std::uint32_t kPeriodGrowth = 4;
  static constexpr double kDelayWorth = 0.95;
  // On a quadratic of curvature lambda a heavy-ball update is stable up to eta lambda =
  // 2 (1 + momentum), and one round late up to 1 - momentum: where the roots of
  // z^2 - (1 + momentum) z + momentum + eta lambda leave the unit circle. At 0.5 that is a sixth,
  // at 0.9 a 38th: the curvature is unknown, and a rate that was chosen for every step seldom has
  // that much room. Source: design.
  static constexpr double kDelayMomentumMax = 0.5;
  static constexpr double kGainMin = 0.10;
  static constexpr double kGainMax = 0.50;
  static constexpr double kRestlessness = 1.5;
  static constexpr double kHalfLife = 1000;
  static constexpr int kRoundsMin = 10;        // of a group before the first comparison
  static constexpr int kComparisonRounds = 4;  // from one comparison to the next
  static constexpr int kPersistence = 3;
  static constexpr int kRestRounds = 10;  // after a trial
  static constexpr double kBanFactor = 10;

  explicit AutoSynchronization(const PlannerOptions& options);

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  std::string Follow(Plan& plan, const Observations& seen) const override;

 private:
  // A plan that could follow, whole, and what it would teach.
  struct Candidate {
    Plan plan{};
    double useful = 0;  // [useful samples/s]
    bool banned = false;
  };
  struct Ban {
    double until_seconds = 0;  // of training time
    double length = 0;         // of the latest; 0: none yet
  };

  std::optional<Proposal> Compare(const Situation& situation);
  std::optional<Proposal> Average(const Situation& situation);
  std::vector<Candidate> Candidates(const Situation& situation) const;
  std::uint32_t LongestPeriod(const Situation& situation) const;
  double Useful(const Plan& plan, const Observations& seen) const;
  Proposal Change(const Situation& situation, const Candidate& to,
                  const std::vector<Candidate>& all);
  std::optional<Proposal> Judge(const Situation& situation);
  // The change on trial never came into force.
  bool NeverAdopted(const Plan& in_force) const;
  Proposal TakeBack(const Situation& situation, const std::string& reason);

  const PlannerOptions options_;
  std::array<Ban, 3> bans_{};          // by Synchronization
  std::optional<Adacomm> rule_;        // of the periodic plan
  bool growing_ = false;               // the period in force may grow before Adacomm rules it
  std::uint32_t period_most_;          // that may be proposed
  std::uint64_t version_of_kind_ = 0;  // the first plan with the synchronization in force
  std::optional<ChangeTrial> trial_;
  Plan former_{};  // in force before the change on trial
  double gain_least_ = kGainMin;
  double seconds_seen_ = 0;
  std::uint64_t rounds_to_wait_ = 0;
  int promising_ = 0;
  Synchronization promising_kind_ = Synchronization::kEveryStep;
};

}  // namespace tactus::policies
