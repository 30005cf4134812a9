// A group of workers in virtual rounds, closed over a batch policy: what the policy decides is what
// the next rounds run.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/rng.h"
#include "policies/proportional_batch.h"

namespace tactus::policies {

struct VirtualWorker {
  double speed = 1;          // [samples/s] of the part that grows with the batch
  double fixed_seconds = 0;  // of every batch
};

struct VirtualClusterOptions {
  std::vector<VirtualWorker> workers;
  double noise = 0;           // standard deviation of log(compute time)
  double noise_memory = 0;    // correlation of the noise of one round with the next, in [0, 1)
  int travel_rounds = 2;      // from a decision to the first round under it
  double outlier_chance = 0;  // that a worker's round lasts outlier_factor times as long
  double outlier_factor = 10;
  std::uint64_t seed = 1;
};

class VirtualCluster {
 public:
  VirtualCluster(VirtualClusterOptions options, ProportionalBatch& policy);

  // Runs so many rounds. A proposal made after round r is in force from round r + travel_rounds;
  // until then the policy is not asked.
  void Run(int rounds);

  VirtualWorker& worker(std::size_t rank) { return options_.workers[rank]; }
  const std::vector<std::uint32_t>& sizes() const { return sizes_; }
  int round() const { return round_; }
  // Every proposal, in order; the equal sizes of the start come first.
  const std::vector<std::vector<std::uint32_t>>& proposed() const { return proposed_; }
  // How many proposals were made after that many rounds.
  int ProposalsAfter(int round) const;

  // Without noise: the seconds of the slowest worker's round with the sizes in force.
  double LongestSeconds() const;
  // The same with the best sizes of real numbers (no bounds, no rounding).
  double IdealSeconds() const;
  // max_i |b_i / ideal_i - 1|, without noise.
  double WorstShareError() const;

 private:
  void RunRound();
  std::vector<double> IdealShares() const;

  VirtualClusterOptions options_;
  ProportionalBatch& policy_;
  Rng rng_;
  std::vector<double> noises_;  // one a rank: of the latest round, in standard deviations
  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint32_t> travelling_;
  std::uint64_t version_ = 1;
  int arrives_at_ = 0;
  int round_ = 0;
  std::vector<int> proposal_rounds_;
  std::vector<std::vector<std::uint32_t>> proposed_;
};

}  // namespace tactus::policies
