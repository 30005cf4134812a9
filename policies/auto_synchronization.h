// Which synchronization teaches most in a second, from measured transfer, speeds, noise and loss.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/change_trial.h"
#include "policies/least_gain.h"
#include "policies/period_canary.h"
#include "policies/planner_options.h"
#include "policies/prior.h"

namespace tactus::policies {

// Compares what each synchronization would teach in a second,
//
//   useful samples/s = credit updates U(samples) / (1 + kDrift (tau - 1)) / seconds
//                                                              Forecast, UsefulSamples
//
// of   every_step
//      periodic   with the tau for which that is largest, sqrt(D / s (1 / kDrift - 1)), within
//                 period_max; the first jump is to that of min(kDrift g^2, kDriftMost), as members
//                 drift apart by the length of their steps (g: the rate's gain, 1 or more), and
//                 what that costs is its square
//      delayed    worth kDelayWorth of that, for gradients that are one round old, and no more
//                 useful samples of a sample than now; not offered where the momentum, or the first
//                 moment of a preconditioned optimizer, leaves it less than kDelayRoomMin of the
//                 learning rates
//
// and goes from the one in force to the best that may be run, however far, if it promises more than
// the least gain: at once where it promises kGainLarge, else once it did so for kPromiseSeconds.
// That is a LeastGain of kGainMin to kGainMax with a half-life of kHalfLifeSeconds.
//
// Such a change is on trial, ChangeTrial. What it was measured to bring over what it promised is
// the credit of its kind from then on; what is regretted is taken back (undone where the loss
// rose), and its kind not tried again for kBanFactor times the length of the trial, twice as long
// each time. Half of the credit that is lacking is given back when the training time has doubled:
// nothing lasts for ever.
//
// A job's first group begins with the period of a Prior, where it has one, within a quarter of the
// guess and the guess, which speeds that were tried out, the prior's transfer and the most that the
// rate could gain make: on trial, JudgePrior, then as one that was judged. Where it is regretted
// all goes on as without a prior. Without one, and where it is known what an exchange should take,
// it begins with the guess by that, if that is kLongExchangeSeconds and the guess promises
// kGainLarge: not on trial, but guessed anew as soon as the first window has told what it is; where
// nothing better is promised canaries go on from it.
//
// The first period is a guess about the loss; a group that meets anew begins with the former
// one's, unless it was taken back, and takes a shorter one without a trial. From then on other
// periods are tried by a PeriodCanary each: in turn a quarter of the one in force and twice as
// long, where that would bring kCanaryGain; the latter first where it would bring kCanaryGainFirst
// while the loss still falls. The next comes when the training time has grown by kCanaryPause, or
// by kCanaryGoesOn in the direction that paid, and what is in force was for
// PeriodCanary::kShareBefore of the time. A shorter one stays if that is certain, a longer one,
// which brings more samples in any case, if it looks better at all. A group of one member stays
// with every_step.
//
// Source: design. The shape of the term for local steps is that of periodic averaging's bound,
// [adacomm]; kDrift is small as no price of periods up to 48 was measured on real data at a gain of
// 1. At 3.9 a period of 39 lost there what averaging brings, one of 12 did not (decision 56).
class AutoSynchronization final : public RememberingPolicy<AutoSynchronization> {
 public:
  static constexpr double kDrift = 0.002;
  static constexpr double kDriftMost = 0.05;  // no fewer than sqrt(19 D / s) steps for it
  static constexpr double kDelayWorth = 0.95;
  // DelayedStabilityLimit over StabilityLimit, how much of the rates that are stable without delay
  // are so with it. That is a sixth at a momentum of 0.5, and at 0.56 looking ahead; at 0.9 a 38th,
  // and a 15th: the curvature is unknown, and a rate that was chosen for every step seldom has that
  // much room. Nesterov's are taken for the same. Source: design.
  static constexpr double kDelayRoomMin = 1.0 / 6;
  // beta_1 of adam, adamw and lamb, as it is seldom chosen otherwise; they do not look ahead. A
  // small transformer had a loss of 0.46 after 144 rounds of adamw and of 1.61 after 148 that were
  // a round late, at the rate that was best for every step.
  static constexpr double kFirstMoment = 0.9;
  static constexpr double kGainMin = 0.05;
  static constexpr double kGainMax = 0.50;
  static constexpr double kGainLarge = 0.30;
  static constexpr double kPromiseSeconds = 2;
  static constexpr double kHalfLifeSeconds = 300;
  static constexpr double kBanFactor = 10;
  static constexpr double kCreditMin = 0.1;
  static constexpr double kCanaryPause = 1.5;
  static constexpr double kCanaryGoesOn = 1.1;
  static constexpr double kCanaryGain = 0.03;
  static constexpr double kCanaryGainFirst = 0.10;
  static constexpr std::uint32_t kCanaryStep = 4;  // from one period to the next that is tried

  explicit AutoSynchronization(const PlannerOptions& options);

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  bool OnTrial() const override { return prior_ || trial_ || canary_; }
  std::string Follow(Plan& plan, const Observations& seen) const override;
  std::optional<Prior> Learned(const Observations& seen) const override;

  friend void Fields(auto& archive, Of<AutoSynchronization> auto& policy) {
    archive("bans", policy.bans_);
    archive("credits", policy.credits_);
    archive("promised", policy.promised_);
    archive("version_of_kind", policy.version_of_kind_);
    archive("seconds_of_kind", policy.seconds_of_kind_);
    archive("prior", policy.prior_);
    archive("trial", policy.trial_);
    archive("canary", policy.canary_);
    archive("judged", policy.judged_);
    archive("guessed", policy.guessed_);
    archive("period_most", policy.period_most_);
    archive("shorter", policy.shorter_);
    archive("former", policy.former_);
    archive("rate_rule", policy.rate_rule_);
    archive("encoding", policy.encoding_);
    archive("gain_least", policy.gain_least_);
    archive("seconds_seen", policy.seconds_seen_);
    archive("canary_due", policy.canary_due_);
    archive("promising_since", policy.promising_since_);
    archive("promising_kind", policy.promising_kind_);
  }

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

    friend void Fields(auto& archive, Of<Ban> auto& ban) {
      archive("until_seconds", ban.until_seconds);
      archive("length", ban.length);
    }
  };
  // What a kind was measured to bring over what it promised, and when; half of what it lacked is
  // forgiven when the training time has doubled.
  struct Credit {
    double share = 1;  // in (0, 1]
    double seconds = 1;

    friend void Fields(auto& archive, Of<Credit> auto& credit) {
      archive("share", credit.share);
      archive("seconds", credit.seconds);
    }
  };
  bool Banned(Synchronization synchronization, const Observations& seen) const;
  bool BeginsWith(const Prior& prior, const StartingGroup& group, Plan& first);
  bool BeginsByLinks(const StartingGroup& group, Plan& first);
  double ExchangeByLinks(const StartingGroup& group) const;
  double MostGain(const Plan& first) const;
  static std::optional<double> TriedStep(const StartingGroup& group, const Plan& first);
  void KeepGuess(const Situation& situation);
  Proposal LeaveGuess(const Situation& situation);
  std::optional<Proposal> TryPrior(const Situation& situation);
  bool AnyRoundInForce(const Observations& seen) const;
  std::optional<Proposal> Compare(const Situation& situation);
  bool Persists(const Candidate& best, double gain, double seconds);
  std::vector<Candidate> Candidates(const Situation& situation) const;
  static double DriftAt(double gain);
  double BestPeriod(double step, double transfer, double drift) const;
  double UsefulRate(const Plan& plan, const Observations& seen) const;
  double Useful(const Plan& plan, const Observations& seen) const;
  bool OffersDelay() const;
  double WithoutSmallerBatches(const Plan& delayed, const Situation& situation) const;
  double CreditOf(Synchronization synchronization, double seconds) const;
  void Settle(const Plan& in_force, const Observations& seen);
  Proposal Change(const Situation& situation, const Candidate& to,
                  const std::vector<Candidate>& all);
  void Try(const Situation& situation);

  std::optional<Proposal> Judge(const Situation& situation);
  Proposal TakeBack(const Situation& situation, const std::string& reason);

  std::optional<Proposal> TryPeriod(const Situation& situation);
  std::optional<Proposal> JudgePeriod(const Situation& situation);
  PeriodCanary::Setting CanarySetting(std::uint64_t version, const Observations& seen) const;
  Proposal ProposePeriod(const Situation& situation, std::uint32_t period) const;
  std::uint32_t PeriodToTry(const Situation& situation) const;
  double GainOfDoubling(const Situation& situation) const;

  void NoteOthers(const Situation& situation);
  void InForceFrom(std::uint64_t version, double seconds);
  // The change on trial, or the canary, never came into force.
  bool NeverAdopted(const Plan& in_force) const;

  const PlannerOptions options_;
  std::array<Ban, 3> bans_{};          // by Synchronization
  std::array<Credit, 3> credits_{};    // likewise
  double promised_ = 1;                // by the change on trial: UsefulRate over that before
  std::uint64_t version_of_kind_ = 0;  // the first plan with what is in force
  double seconds_of_kind_ = 0;         // training time since when
  std::optional<Prior> prior_;         // in force, and on trial
  std::optional<ChangeTrial> trial_;
  std::optional<PeriodCanary> canary_;
  bool judged_ = false;            // a period was, by the loss, in this group
  bool guessed_ = false;           // the period is by the links, and nothing was judged since
  std::uint32_t period_most_ = 0;  // the latest that was judged, in any group; 0: none was
  bool shorter_ = true;            // than the one in force, is what is tried next
  Plan former_{};                  // in force before the change on trial
  std::optional<LearningRateRule> rate_rule_;  // in force at the last look
  std::optional<Encoding> encoding_;           // likewise
  LeastGain gain_least_{kGainMin, kGainMax, kHalfLifeSeconds};
  double seconds_seen_ = 0;
  double canary_due_ = 0;  // training time from which on a period is tried
  // Of the best candidate: since when it promised enough.
  std::optional<double> promising_since_;
  Synchronization promising_kind_ = Synchronization::kEveryStep;
};

}  // namespace tactus::policies
