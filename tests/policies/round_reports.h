// The reports of one round of a group of known speed, for tests that write rounds down by hand.

#pragma once

#include <cstdint>
#include <vector>

#include "policies/observations.h"
#include "policies/plan.h"

namespace tactus::policies {

struct RoundFacts {
  std::vector<double> speeds = {100, 100};  // [samples/s] one a rank
  double transfer_seconds = 0.1;
  double loss = 1;
  double noise_scale = 100;  // [samples] of gradients with ||mean||^2 = 1
  double orthogonality = 0.5;
  double learning_rate = 0.1;
  double gain = 1;
  double progress = 0;  // [base steps] after the round
  std::uint32_t nonfinite_members = 0;
};

// As a group reports in lock step: everybody computes plan.period steps, then the transfer. Steps
// of a delayed plan: plan.period as well.
std::vector<Report> ReportsOf(const Plan& plan, std::uint64_t round, const RoundFacts& facts);

// Observes so many such rounds, numbered from `first` on.
struct Rounds {
  std::uint64_t first = 0;
  int count = 1;
};
void ObserveRounds(Observations& seen, const Plan& plan, const Rounds& rounds,
                   const RoundFacts& facts = {});

// Two members with 32 samples each, of version 1.
Plan TwoMembers();

}  // namespace tactus::policies
