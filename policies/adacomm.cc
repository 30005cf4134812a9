#include "policies/adacomm.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus::policies {
namespace {

// A rate that is scaled by a gain and back is the same but for its last bits.
constexpr double kSameRate = 1e-9;
constexpr double kRounding = 1e-12;  // relative, of the root: 2.0000000000000004 is 2

bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

std::uint32_t Within(double period, std::uint32_t period_max) {
  // Not `period <= 1`: what is not a number gives 1 as well.
  if (!(period > 1)) return 1;
  return static_cast<std::uint32_t>(std::min<double>(period, period_max));
}

}  // namespace

double PeriodRatio(const LossPoint& point) {
  return point.rate_initial / point.rate * (point.loss - point.loss_floor) /
         (point.loss_initial - point.loss_floor);
}

std::uint32_t CandidatePeriod(double ratio, double period_initial, std::uint32_t period_max) {
  return Within(std::ceil(std::sqrt(ratio) * period_initial * (1 - kRounding)), period_max);
}

Adacomm::Adacomm(const AdacommOptions& options, double loss_initial, double rate_initial,
                 double trained)
    : Adacomm(options, {.period = options.period_initial,
                        .period_cap = options.period_max,
                        .loss_initial = loss_initial,
                        .rate_initial = IsPositive(rate_initial) ? rate_initial : 1,
                        .rate = IsPositive(rate_initial) ? rate_initial : 1,
                        .trained = IsPositive(trained) ? trained : 0,
                        .loss_then = loss_initial,
                        .trained_then = IsPositive(trained) ? trained : 0}) {
  if (!Headroom()) state_.period = 1;
}

Adacomm::Adacomm(const AdacommOptions& options, const State& state)
    : options_(options), state_(state) {
  TACTUS_CHECK(Sound(*this));
  state_.period = std::min(state_.period, options.period_max);
}

bool Sound(const Adacomm& rule) {
  const AdacommOptions& options = rule.options_;
  const Adacomm::State& state = rule.state_;
  return options.period_initial >= 1 && options.period_initial <= options.period_max &&
         options.interval_seconds > 0 && options.fallback > 0 && options.fallback < 1 &&
         state.period >= 1 && state.period_cap >= 1 && state.period_factor > 0 &&
         state.trained >= 0 && state.trained_then >= 0;
}

AdacommDecision Adacomm::Averaged(const AveragingPoint& point) {
  if (IsPositive(point.seconds)) {
    state_.seconds += point.seconds;
    state_.trained += point.seconds;
  }
  AdacommDecision decision;
  const std::uint32_t cap = CapFor(point);
  const double interval = options_.log_time ? kIntervalShare * state_.trained : 0;
  if (state_.seconds < std::max(options_.interval_seconds, interval)) {
    state_.period_cap = std::min(state_.period_cap, cap);
  } else {
    decision.cause = Choose(point);
    state_.period_cap = cap;
    state_.seconds = 0;
    ++state_.intervals;
  }
  decision.period = period();
  decision.capped = state_.period_cap < state_.period;
  decision.synchronous = decision.period == 1;
  return decision;
}

void Adacomm::ParametersLost() { state_.period = std::max(1u, state_.period / 2); }

void Adacomm::MembersChanged(const TransferChange& change) {
  if (!IsPositive(change.seconds_before) || !IsPositive(change.seconds_after)) return;
  const double factor = std::sqrt(change.seconds_after / change.seconds_before);
  if (!IsPositive(factor) || !IsPositive(state_.period_factor * factor) || !Headroom()) return;
  state_.period = Within(std::round(state_.period * factor), options_.period_max);
  state_.period_factor *= factor;
}

std::uint32_t Adacomm::period() const { return std::min(state_.period, state_.period_cap); }

bool Adacomm::Headroom() const {
  return std::isfinite(state_.loss_initial) && state_.loss_initial > options_.loss_floor;
}

AdacommCause Adacomm::Choose(const AveragingPoint& point) {
  if (!Headroom()) return AdacommCause::kNoHeadroom;
  if (!std::isfinite(point.loss) || point.loss < options_.loss_floor) return AdacommCause::kBadLoss;
  // Noted only now: a change of rate that comes with a bad loss is still one at the next choice.
  const double rate = IsPositive(point.rate) ? point.rate : state_.rate;
  const bool rate_changed = std::abs(rate - state_.rate) > kSameRate * state_.rate;
  state_.rate = rate;
  state_.rate_initial = std::max(state_.rate_initial, rate);
  const bool stands_still = StandsStill(point.loss);
  state_.loss_then = point.loss;
  state_.trained_then = state_.trained;
  const double ratio = PeriodRatio({.loss_initial = state_.loss_initial,
                                    .loss = point.loss,
                                    .loss_floor = options_.loss_floor,
                                    .rate_initial = state_.rate_initial,
                                    .rate = rate});
  const std::uint32_t candidate =
      CandidatePeriod(ratio, options_.period_initial * state_.period_factor, options_.period_max);
  if (rate_changed || candidate < state_.period) {
    state_.period = candidate;
    return rate_changed ? AdacommCause::kRate : AdacommCause::kLoss;
  }
  if (!stands_still) return AdacommCause::kFalling;
  const double fallback = std::ceil(options_.fallback * state_.period);
  state_.period = Within(std::min<double>(state_.period - 1, fallback), options_.period_max);
  return AdacommCause::kFallback;
}

// F_0 of no known time has only its loss to compare with.
bool Adacomm::StandsStill(double loss) const {
  if (!options_.log_time) return true;
  if (!(state_.trained_then > 0)) return loss >= state_.loss_then;
  const double doublings = std::log2(state_.trained / state_.trained_then);
  const double left = (loss - options_.loss_floor) / (state_.loss_then - options_.loss_floor);
  // Not `1 - left < ...`: a former loss at its floor leaves nothing to fall.
  return !(1 - left >= kPlateau * doublings);
}

std::uint32_t Adacomm::CapFor(const AveragingPoint& point) const {
  const double transfer = point.transfer_seconds;
  if (!IsPositive(point.step_seconds) || !(transfer >= 0)) return options_.period_max;
  const double room = std::max(options_.interval_seconds / 2 - transfer, transfer);
  return Within(std::floor(room / point.step_seconds), options_.period_max);
}

}  // namespace tactus::policies
