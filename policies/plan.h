// What the coordinator decides and what the workers saw: the plain data that policies live on.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/encodings.h"
#include "policies/mixing.h"
#include "policies/prior.h"

namespace tactus::policies {

// When the members of a group combine what they learned.
enum class Synchronization {
  kEveryStep,  // a round is one step: gradients are combined, then applied
  kPeriodic,   // a round is `period` local optimizer steps: parameter deltas are combined
  kDelayed,    // gradients are combined while the next round computes, and applied one round late
  kLsgd,       // members follow those of the least loss; each has parameters of its own
  kDecentlam,  // a round is one step: each mixes its parameters with its neighbours' alone
};

// How what the members learned becomes one.
enum class Aggregation { kAverage, kAdasum };

// By what the scheduled learning rate is multiplied, with S = samples of the round / base batch.
enum class LearningRateRule {
  kConstant,  // 1
  kLinear,    // S
  kSqrt,      // sqrt(S)
  kAdascale,  // AdaScale's gain, in [1, S]
};

// Samples of one round at most, over all members: the engine counts them in float32, exact up to
// here.
inline constexpr std::uint64_t kRoundSamplesMax = std::uint64_t{1} << 24;

// Steps of a round at most.
inline constexpr std::uint32_t kPeriodMax = 65536;

// A trial may go wrong for good: a step too long takes parameters where no shorter one brings them
// back from. So members keep what they hold as it begins.
//
//   none    no trial, or one that paid: nothing is kept any longer
//   begins  what members hold as the plan comes into force is kept
//   runs    still is: what changed is beside the trial
//   undone  members go back to that: to parameters, the optimizer's state, the momentum of rounds
//           and the learning rate's progress; rounds, samples and time go on
enum class Trial { kNone, kBegins, kRuns, kUndone };

// How the next rounds run. All members of a group hold the same plan in every round: a plan takes
// effect in the round after the one in which every member voted for it
// (agent/engine/combine/lanes.h).
struct Plan {
  // Consecutive within a job: a member that holds version v + 1 while v is in force votes for it.
  std::uint64_t version = 0;
  Synchronization synchronization = Synchronization::kEveryStep;
  // Steps of a round, >= 1: exactly 1 where IsOneStep, exactly so many for kPeriodic, at most so
  // many for kDelayed; of a member on average for kLsgd, between two pulls towards the leader of
  // all.
  std::uint32_t period = 1;
  Aggregation aggregation = Aggregation::kAverage;
  LearningRateRule learning_rate_rule = LearningRateRule::kConstant;
  // Of what an average is made of; what Adasum combines travels dense, and so do lanes.
  Encoding encoding = Encoding::kDense;
  // Samples of a step, one entry a rank of the group. Each >= 0, sum >= 1.
  std::vector<std::uint32_t> batch_sizes{};
  // Who are neighbours: of kDecentlam, and of nothing else.
  std::optional<Topology> graph{};
  // The ranks around the graph's circle, each once; empty: in their order.
  std::vector<std::uint32_t> circle{};
  Trial trial = Trial::kNone;
  // Why, for a person: "worker 3 runs at 0.25 of the fastest; round time 0.41 s → 0.17 s".
  std::string reason{};

  friend bool operator==(const Plan&, const Plan&) = default;
};

inline bool IsPeriodic(const Plan& plan) {
  return plan.synchronization == Synchronization::kPeriodic;
}

// Whether people are told of its rounds with the period.
inline bool HasPeriod(const Plan& plan) {
  return IsPeriodic(plan) || plan.synchronization == Synchronization::kLsgd;
}

// Whether members' parameters differ between two rounds.
inline bool MembersDiffer(const Plan& plan) {
  return plan.synchronization == Synchronization::kLsgd ||
         plan.synchronization == Synchronization::kDecentlam;
}

// Whether a round is one step of each member.
inline bool IsOneStep(Synchronization synchronization) {
  return synchronization == Synchronization::kEveryStep ||
         synchronization == Synchronization::kDecentlam;
}

// Whether a group of `members` can run under the plan: one batch size a rank, at least one sample a
// step and at most kRoundSamplesMax a round, a period that fits the synchronization; a graph and a
// circle of so many where the synchronization has neighbours, and none where it has not.
bool Fits(const Plan& plan, std::uint32_t members);

// What all members know beside dense; nothing: all encodings.
using KnownEncodings = std::optional<std::vector<Encoding>>;

// Of a dense exchange, from which on a first plan goes by what it should take: two rounds that
// measure a shorter one cost less than they tell of gains and noise. Decision 102 has cells. [s]
inline constexpr double kLongExchangeSeconds = 3;

// Who starts.
struct StartingGroup {
  std::uint32_t members = 1;  // >= 1
  // Samples/s that each measured by itself before the first round, or that it had in the group
  // before, by rank; 0: it did not. Empty: nobody did.
  std::vector<double> speeds{};
  // What the group before ran last, for what is frozen; without sizes where it had other members.
  // Nothing: there was none.
  std::optional<Plan> before{};
  // They are those who are left of the group before, whose plan goes on, and behind them who joins
  // them: `before` has the sizes of the former, by rank.
  bool goes_on = false;
  // What a former job of this kind found; of use to a job's first group alone.
  std::optional<Prior> prior{};
  // What a dense exchange should take by what the members' links brought before; 0: not known. Of
  // use to the first plan alone, where no prior says more. [s]
  double exchange_seconds = 0;
  double exchange_values = 0;  // that it is of
  KnownEncodings encodings{};

  bool Knows(Encoding encoding) const {
    return encoding == Encoding::kDense || !encodings ||
           std::ranges::find(*encodings, encoding) != encodings->end();
  }

  // What averages begin with under `auto`, without a prior: float16 where a dense exchange is long
  // and half of it is several times what encoding its values takes (EncodingRow).
  Encoding EncodingByLinks() const;
};

// What one worker saw in one applied round. Times are durations of its own clock, in seconds.
struct Report {
  std::uint64_t round = 0;         // counts applied rounds of the job, from 0
  std::uint64_t plan_version = 0;  // the plan that the round ran under
  std::uint32_t rank = 0;          // in the group
  std::uint64_t samples = 0;       // of this worker
  double loss_sum = 0;             // over those samples
  std::uint32_t steps = 0;         // of this worker: optimizer steps, or batches when delayed
  double compute_seconds = 0;      // reading samples, forward, backward and optimizer
  double data_seconds = 0;         // of these, until the samples were in memory
  // Neither computing nor free to: from its own last gradient to the combined one, wait and
  // transfer; when delayed, only what it waited.
  double blocked_seconds = 0;
  // From the start of its collective to the end, whether blocked or computing meanwhile.
  double transfer_seconds = 0;
  double round_seconds = 0;  // from one round's end to the next
  // From the round's end until the update that is due then is applied: the round's own; when
  // delayed, that of the round before. So of the next round's time. On a GPU the host's share: what
  // it queues is computed before the next gradient is.
  double update_seconds = 0;
  // Of neighbours: of that, from when all had come until this worker had what its own sent it.
  double exchange_seconds = 0;
  // What its peers together can bring it at once, as its collectives since the report before tell;
  // 0: not known.
  double link_bytes_per_second = 0;
  std::uint64_t bytes_sent = 0;     // payload of the collectives
  double gradient_norm2_local = 0;  // ||g_i||^2 of this worker's mean gradient; 0 without samples
  // ||g||^2 of the combined gradient; periodic: of the window's mean gradient, as its delta tells.
  double gradient_norm2_global = 0;
  // Equal on every member, from the lanes of the round:
  std::uint64_t samples_global = 0;
  // Per sample, at parameters that all members had; periodic: of the first step of each member.
  double loss_mean_global = 0;
  // Of samples_global, those of later steps of a window, at each member's own parameters, and their
  // loss per sample, which is above that of the members' mean; 0 otherwise. lsgd: without the
  // samples of members whose numbers were not finite, which are in samples_global all the same.
  std::uint64_t local_samples_global = 0;
  double local_loss_mean_global = 0;
  // > 0: the update was skipped everywhere; lsgd: by so many members, all of them is everywhere.
  std::uint32_t nonfinite_members = 0;
  // Gradients that the mean is of: members with samples; of a single member's two halves, 2.
  std::uint32_t contributors = 0;
  // sum over members of b_i ||g_i||^2, of gradients as for gradient_norm2_global.
  double samples_gradient_norm2 = 0;
  // sum over members of b_i: the samples that the gradients tell of. Those of a delta count less
  // where momentum weighs them unequally; of adaptive optimizers it tells of the gradients as they
  // are divided. 0: what was combined tells nothing of their noise.
  double gradient_samples = 0;
  // Of what was combined, in (0, 1]; see policies/orthogonality.h. 0: it is not known.
  double orthogonality = 0;
  double learning_rate = 0;          // that the update used
  double gain = 1;                   // of the learning rate rule: learning_rate over the schedule's
  double progress = 0;               // base steps after this round; see policies/learning_rate.h
  std::uint64_t epoch = 0;           // of the round's samples
  std::uint64_t epoch_consumed = 0;  // samples of that epoch consumed, this round included
  // Why the worker's device is slower than its load explains, as its agent says; empty: nothing is
  // known of it.
  std::string slowdown{};
};

}  // namespace tactus::policies
