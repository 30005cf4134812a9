// AdaComm: how many local steps lie between two averagings, fewer as the loss falls.

#pragma once

#include <cstdint>

#include "base/fields.h"
namespace tactus::policies {

// Where training stands against where it started.
struct LossPoint {
  double loss_initial = 0;  // F_0, before the first step
  double loss = 0;          // F_l, per sample; both means of at least 20 batches of each worker
  double loss_floor = 0;    // F_inf, below both
  double rate_initial = 1;  // eta_0 > 0
  double rate = 1;          // eta_l > 0, as scheduled
};

// q, by whose root the period follows the loss and the learning rate:
//
//   q = (eta_0 / eta) (F - F_inf) / (F_0 - F_inf)
//
// A tenth of the learning rate gives sqrt(10) of the period. With eta = eta_0 it is the basic rule.
//
// Source: memory, unverified: [adacomm]. Paddle's localsgd_optimizer.py has it with tau_0 under the
// root as well, by mistake.
double PeriodRatio(const LossPoint& point);

// ceil(sqrt(ratio) period_initial) within [1, period_max]; a ratio that is not a number gives 1.
//
// Source: memory, unverified: [adacomm].
std::uint32_t CandidatePeriod(double ratio, double period_initial, std::uint32_t period_max);

struct AdacommOptions {
  std::uint32_t period_initial = 20;  // tau_0, in [1, period_max]
  std::uint32_t period_max = 128;     // tau_max >= 1
  double interval_seconds = 60;       // T_0 > 0
  double loss_floor = 0;              // F_inf
  double fallback = 0.5;              // gamma in (0, 1)
  // Intervals and a loss that stands still are counted in the logarithm of time: see Adacomm.
  bool log_time = false;

  friend void Fields(auto& archive, Of<AdacommOptions> auto& options) {
    archive("period_initial", options.period_initial);
    archive("period_max", options.period_max);
    archive("interval_seconds", options.interval_seconds);
    archive("loss_floor", options.loss_floor);
    archive("fallback", options.fallback);
    archive("log_time", options.log_time);
  }
};

// The group averaged: what is known then. Times are those of training alone: the caller leaves out
// evaluation, checkpoints and failures.
struct AveragingPoint {
  double seconds = 0;           // since the averaging before, or the start
  double loss = 0;              // F_l, sample-weighted, over the latest averagings
  double rate = 1;              // eta_l, as scheduled
  double step_seconds = 0;      // Y, of the slowest worker; 0 when unknown
  double transfer_seconds = 0;  // D, of one averaging
};

// Why the period is what it is.
enum class AdacommCause {
  kWaiting,     // the interval lasts
  kLoss,        // the loss asks for less
  kRate,        // the learning rate changed: loss and rate decide, up or down
  kFallback,    // neither fell enough: gamma of the former
  kFalling,     // the same, but the loss does not stand still: the period stays
  kBadLoss,     // alarm: the loss is not a number, or below its floor; the period stays
  kNoHeadroom,  // the initial loss was at its floor or no number: 1, whatever comes
};

struct AdacommDecision {
  std::uint32_t period = 1;  // steps until the next averaging, >= 1
  AdacommCause cause = AdacommCause::kWaiting;
  bool capped = false;       // warning: the rule's period would fill too much of an interval
  bool synchronous = false;  // make plain synchronous steps instead
};

// Chooses the period tau. At the first averaging T_0 seconds after the last choice:
//
//   tau' = CandidatePeriod(q, tau_0)
//   tau <- tau'                                            if the learning rate changed
//          tau'                                            else if tau' < tau
//          max(1, min(tau - 1, ceil(gamma tau)))           else, where the loss stands still
//
// So between changes of the learning rate tau never grows, and once the loss stands still it falls
// to 1 within ceil(log2(tau_0)) intervals, for good: tau' stays above what the first fallback left.
//
// As published a loss stands still wherever tau' did not become less within one T_0. One that falls
// as a power of time does so ever later, however long it goes on to fall by the same share in each
// doubling of the time: tau would be 1 after some ten minutes, for good. With log_time an interval
// lasts kIntervalShare of the training time so far, T_0 at least, and the loss stands still where
// it fell by less than kPlateau for each doubling of that time.
//
// A rate that rises above eta_0, as in a warm-up, becomes eta_0: it never asks for less.
//
// What runs is tau, at most (max(T_0 / 2, 2 D) - D) / Y, so that an interval holds two averagings,
// and no less time is spent on computing than on averaging. The cap falls at any averaging and
// rises only with an interval; the rule itself goes on with the uncapped tau, else a cap would pass
// for a fallback.
//
// Source: memory, unverified: [adacomm]. Design: rounding and min(tau - 1, .),
// without which gamma > 1/2 stalls; the raise after a change of the learning rate; the cap;
// warm-up; the logarithm of time.
class Adacomm {
 public:
  static constexpr double kIntervalShare = 0.25;
  static constexpr double kPlateau = 0.03;

  // Plain data, for checkpoints; taken at an averaging.
  struct State {
    std::uint64_t intervals = 0;  // l, completed
    std::uint32_t period = 1;     // tau, uncapped
    std::uint32_t period_cap = 1;
    double loss_initial = 0;   // F_0
    double rate_initial = 1;   // eta_0
    double rate = 1;           // eta of the latest choice
    double seconds = 0;        // in this interval
    double period_factor = 1;  // of tau', by changes of membership
    double trained = 0;        // seconds, with those before F_0
    double loss_then = 0;      // F at the latest choice, or F_0
    double trained_then = 0;   // `trained` then; 0: F_0 is of no known time

    friend bool operator==(const State&, const State&) = default;
    friend void Fields(auto& archive, Of<State> auto& state) {
      archive("intervals", state.intervals);
      archive("period", state.period);
      archive("period_cap", state.period_cap);
      archive("loss_initial", state.loss_initial);
      archive("rate_initial", state.rate_initial);
      archive("rate", state.rate);
      archive("seconds", state.seconds);
      archive("period_factor", state.period_factor);
      archive("trained", state.trained);
      archive("loss_then", state.loss_then);
      archive("trained_then", state.trained_then);
    }
  };

  Adacomm() = default;  // to be read into

  // loss_initial: F_0. rate_initial: eta_0; not a positive number: 1. trained: seconds before that.
  Adacomm(const AdacommOptions& options, double loss_initial, double rate_initial,
          double trained = 0);

  // Goes on from a state.
  Adacomm(const AdacommOptions& options, const State& state);

  // The group averaged; returns what holds until the next averaging. Numbers that are not finite,
  // or negative where they cannot be, count as unknown.
  AdacommDecision Averaged(const AveragingPoint& point);

  // A worker's parameters were not finite; all went back to those of the last averaging.
  // tau <- max(1, tau / 2).
  void ParametersLost();

  // The group changed, and with it the time of one averaging: tau <- tau sqrt(D' / D), to the
  // nearest in [1, tau_max], as the optimal period is proportional to sqrt(D). Times that are not
  // positive change nothing.
  //
  // Source: design. F_0 and tau_0 stay; tau' is multiplied by the same factor from then on, else a
  // smaller tau would pass for a fallback at the next choice.
  struct TransferChange {
    double seconds_before = 0;  // D
    double seconds_after = 0;   // D'
  };
  void MembersChanged(const TransferChange& change);

  // Steps until the next averaging, >= 1.
  std::uint32_t period() const;

  const State& state() const { return state_; }

  // tau_0, one of the options, may have been searched for.
  friend void Fields(auto& archive, Of<Adacomm> auto& rule) {
    archive("options", rule.options_);
    archive("state", rule.state_);
  }
  friend bool Sound(const Adacomm& rule);

 private:
  bool Headroom() const;
  bool StandsStill(double loss) const;
  AdacommCause Choose(const AveragingPoint& point);
  std::uint32_t CapFor(const AveragingPoint& point) const;

  AdacommOptions options_;
  State state_;
};

}  // namespace tactus::policies
