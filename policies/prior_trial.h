// Whether what a former job found holds in this one, too.

#pragma once

#include "policies/change_trial.h"
#include "policies/observations.h"
#include "policies/prior.h"

namespace tactus::policies {

// A prior's period is in force from a job's first round on, so that there is no round before to
// compare with. It is regretted when
//
//   a round was lost to numbers that are not finite, or
//   the loss is above the first round's by more than ChangeTrial::kLossMargin of it, or
//   a round's transfer took less than a kPriorTransferFactor-th of the prior's, or the measured one
//   takes more than kPriorTransferFactor times as long: the period was right for another network
//
// the last once it is measured, as a round may be late for many reasons and early for none. Else it
// is kept as soon as all speeds and the transfer are known and there were
// Observations::kObservationsMin rounds: what those cannot tell is for canaries, as of any period.
//
// seen        asked after each whole round, from the job's first on
// loss_floor  F_inf
//
// Source: design.
inline constexpr double kPriorTransferFactor = 2;
ChangeTrial::Judgement JudgePrior(const Prior& prior, const Observations& seen, double loss_floor);

}  // namespace tactus::policies
