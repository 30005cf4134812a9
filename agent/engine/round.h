// A round, as one member sees it.

#pragma once

#include <cstdint>
#include <optional>

#include "agent/engine/combine/aggregator.h"
#include "agent/engine/combine/lanes.h"
#include "base/time.h"
#include "policies/learning_rate.h"
#include "policies/plan.h"

namespace tactus::engine {

// Under what it runs, and what this member gathered in it, until it is applied.
struct Round {
  std::uint64_t number = 0;
  std::uint64_t plan_version = 0;
  policies::Aggregation aggregation = policies::Aggregation::kAverage;
  policies::Encoding encoding = policies::Encoding::kDense;
  Aggregator* aggregator = nullptr;  // never null in a round that was opened
  policies::LearningRateRule rule = policies::LearningRateRule::kConstant;
  std::uint32_t updates = 1;  // of the parameters: local steps, or one
  policies::LearningRate::Rate rate{};

  // What one in the sum of gradients stands for: 1 sample's; where the options want means, as many
  // samples as the round is to have of all members. [samples]
  double unit = 1;

  std::uint64_t samples = 0;          // of this member
  std::uint64_t replica_samples = 0;  // of all that share its steps
  std::uint64_t first_samples = 0;    // of this member, in the first step
  std::uint64_t first_sum = 0;  // where its gradients are two sums, of the first; 0: they are one
  std::uint32_t steps = 0;
  bool undone = false;  // it began at parameters that a trial's end has taken back since
  Duration compute{};
  Duration blocked{};
  Duration length{};    // from the former round's edge to its own
  Duration before{};    // of that, in groups that were lost
  Duration exchange{};  // with neighbours, from when all had come
  Instant finished{};   // of the last batch
  Instant combining{};  // since when

  // Once it is combined:
  double loss_sum = 0;             // of this member
  Spread spread{};                 // of the replicas' samples
  std::uint64_t shared_bytes = 0;  // of parameters that members tell one another
  // Of this member's mean gradient, or of its local steps' on average; where it has parts, in
  // single steps what it counts of its replica's.
  double gradient_norm2 = 0;
  // Where they were two sums, sum_j b_j ||g_j||^2 over their means g_j: two samples of the noise.
  std::optional<double> sums_norm2{};
  // What was combined is so many times the mean gradient; its variance is that over so many of the
  // round's samples, as a share. 0: it tells nothing of the noise.
  double gradient_length = 1;
  double gradient_share = 1;

  double InUnits(double of_samples) const { return of_samples / unit; }
};

}  // namespace tactus::engine
