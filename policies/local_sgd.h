// Local SGD (periodic averaging): what a period costs and gains, in time and in error.

#pragma once

#include <cstdint>

namespace tactus::policies {

// Speed of periodic averaging over that of averaging every step, with steps of equal time:
//
//   (1 + alpha) / (1 + alpha / tau)
//
// transfer_ratio  alpha = D / Y >= 0, time of one averaging over that of one step
// period          tau >= 1
// Returns a factor in [1, 1 + alpha).
//
// Source: memory, unverified: [adacomm].
double LocalSgdSpeedup(double transfer_ratio, std::uint32_t period);

// The expected largest of `members` means, each of `period` independent exponential times of mean
// 1: how long the slowest worker takes a step when step times are random.
//
//   integral over x > 0 of 1 - F(x)^members,   F: Erlang distribution of shape and rate `period`
//
// Returns at least 1; H_members, the harmonic number, for period 1. By Simpson's rule, to 1e-8.
// REQUIRES: members >= 1, period >= 1.
//
// Source: memory, unverified: [adacomm]; design: the integral.
double ExponentialSlowest(std::uint32_t members, std::uint32_t period);

enum class StepTimes {
  kConstant,
  kExponential,
};

struct LocalSgdTimes {
  std::uint32_t members = 1;    // m >= 1
  double step_seconds = 1;      // Y, the mean, > 0
  double transfer_seconds = 0;  // D >= 0, of one averaging
  StepTimes step_times = StepTimes::kConstant;
};

// Expected time of one step, with its share of the averaging: E[slowest] + D / tau. [s]
// Source: memory, unverified: [adacomm].
double LocalSgdStepSeconds(const LocalSgdTimes& times, std::uint32_t period);

// What the error of a run depends on beside its period.
struct LocalSgdProblem {
  LocalSgdTimes times{};  // of constant step times
  double loss_gap = 1;    // F(x_1) - F_inf >= 0
  double rate = 0.1;      // eta > 0
  double smoothness = 1;  // L > 0
  double variance = 1;    // sigma^2 of a member's gradient, >= 0
  double seconds = 1;     // T > 0, of the run
};

// A bound on the mean of E||grad F||^2 over a run of T seconds:
//
//   2 gap / (eta T) (Y + D / tau) + eta L sigma^2 / m + eta^2 L^2 sigma^2 (tau - 1)
//
// Valid where LocalSgdRateCondition is at most 1.
//
// Source: memory, unverified: [adacomm].
double LocalSgdErrorBound(const LocalSgdProblem& problem, std::uint32_t period);

// eta L + eta^2 L^2 tau (tau - 1).
// Source: memory, unverified: [adacomm].
double LocalSgdRateCondition(const LocalSgdProblem& problem, std::uint32_t period);

// The period that minimises the bound:
//
//   tau* = sqrt(2 gap D / (eta^3 L^2 sigma^2 T))
//
// Returns a real number >= 0, also below 1; infinite without variance (0/0, nothing to gain: not a
// number). The best period is one of its two neighbours, at least 1, as the bound is convex in tau.
//
// Source: memory, unverified: [adacomm]; derived anew from the bound.
double LocalSgdOptimalPeriod(const LocalSgdProblem& problem);

}  // namespace tactus::policies
