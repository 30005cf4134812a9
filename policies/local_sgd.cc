#include "policies/local_sgd.h"

#include <cmath>

#include "base/check.h"

namespace tactus::policies {
namespace {

constexpr int kPanels = 1 << 13;      // of Simpson's rule
constexpr double kTermLeast = 1e-17;  // of a series, relative to its sum
constexpr double kTailLeast = 1e-18;  // where the integral ends

// ln(x^shape e^-x / shape!), the largest terms of the series below.
double LogPoisson(double shape, double x) {
  return shape * std::log(x) - x - std::lgamma(shape + 1);
}

// P[Gamma(shape, 1) <= x] for x < shape: e^-x x^shape / shape! (1 + x / (shape + 1) + ...).
double LowerTail(double shape, double x) {
  double term = 1;
  double sum = 1;
  for (double k = shape + 1; term > kTermLeast * sum; ++k) {
    term *= x / k;
    sum += term;
  }
  return sum * std::exp(LogPoisson(shape, x));
}

// P[Gamma(shape, 1) > x] for x >= shape, a whole number: the Poisson terms below it, downwards.
double UpperTail(double shape, double x) {
  double term = 1;
  double sum = 1;
  for (double k = shape - 1; k > 0 && term > kTermLeast * sum; --k) {
    term *= k / x;
    sum += term;
  }
  return sum * std::exp(LogPoisson(shape - 1, x));
}

// P[the largest of `members` means of `period` times > x].
double SlowestBeyond(double members, double period, double x) {
  if (x <= 0) return 1;
  if (x < 1) return 1 - std::pow(LowerTail(period, period * x), members);
  return -std::expm1(members * std::log1p(-UpperTail(period, period * x)));
}

}  // namespace

double LocalSgdSpeedup(double transfer_ratio, std::uint32_t period) {
  TACTUS_CHECK(transfer_ratio >= 0 && period >= 1);
  return (1 + transfer_ratio) / (1 + transfer_ratio / period);
}

double ExponentialSlowest(std::uint32_t members, std::uint32_t period) {
  TACTUS_CHECK(members >= 1 && period >= 1);
  // One mean has the deviation `width` around 1: below 10 of them lies nothing.
  const double width = 1 / std::sqrt(static_cast<double>(period));
  const double begin = std::fmax(0.0, 1 - 10 * width);
  double end = 1 + width;
  while (SlowestBeyond(members, period, end) > kTailLeast) end += width;
  const double step = (end - begin) / kPanels;
  double sum = SlowestBeyond(members, period, begin) + SlowestBeyond(members, period, end);
  for (int i = 1; i < kPanels; ++i) {
    sum += (i % 2 == 1 ? 4 : 2) * SlowestBeyond(members, period, begin + i * step);
  }
  return begin + sum * step / 3;
}

double LocalSgdStepSeconds(const LocalSgdTimes& times, std::uint32_t period) {
  TACTUS_CHECK(period >= 1);
  const double slowest =
      times.step_times == StepTimes::kExponential ? ExponentialSlowest(times.members, period) : 1.0;
  return slowest * times.step_seconds + times.transfer_seconds / period;
}

double LocalSgdErrorBound(const LocalSgdProblem& problem, std::uint32_t period) {
  const double step = problem.rate * problem.smoothness;
  const double descent = 2 * problem.loss_gap / (problem.rate * problem.seconds) *
                         LocalSgdStepSeconds(problem.times, period);
  const double noise = step * problem.variance / problem.times.members;
  return descent + noise + step * step * problem.variance * (period - 1.0);
}

double LocalSgdRateCondition(const LocalSgdProblem& problem, std::uint32_t period) {
  const double step = problem.rate * problem.smoothness;
  return step + step * step * period * (period - 1.0);
}

double LocalSgdOptimalPeriod(const LocalSgdProblem& problem) {
  const double step = problem.rate * problem.smoothness;
  return std::sqrt(2 * problem.loss_gap * problem.times.transfer_seconds /
                   (problem.rate * step * step * problem.variance * problem.seconds));
}

}  // namespace tactus::policies
