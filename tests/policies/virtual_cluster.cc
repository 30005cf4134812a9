#include "tests/policies/virtual_cluster.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tactus::policies {
namespace {

double MeanSeconds(const VirtualWorker& worker, double samples) {
  return worker.fixed_seconds + samples / worker.speed;
}

}  // namespace

VirtualCluster::VirtualCluster(VirtualClusterOptions options, ProportionalBatch& policy)
    : options_(std::move(options)), policy_(policy), rng_(options_.seed) {
  sizes_ =
      policy_.Start({.members = static_cast<std::uint32_t>(options_.workers.size())}).batch_sizes;
  proposed_.push_back(sizes_);
  noises_.assign(sizes_.size(), 0);
}

void VirtualCluster::Run(int rounds) {
  for (int i = 0; i < rounds; ++i) RunRound();
}

void VirtualCluster::RunRound() {
  if (!travelling_.empty() && round_ == arrives_at_) {
    sizes_ = std::exchange(travelling_, {});
    ++version_;
  }
  for (std::size_t rank = 0; rank < sizes_.size(); ++rank) {
    double seconds = MeanSeconds(options_.workers[rank], sizes_[rank]);
    const double memory = options_.noise_memory;
    noises_[rank] = memory * noises_[rank] + std::sqrt(1 - memory * memory) * rng_.Normal();
    seconds *= std::exp(options_.noise * noises_[rank]);
    if (rng_.Uniform() < options_.outlier_chance) seconds *= options_.outlier_factor;
    policy_.Observe({.round = static_cast<std::uint64_t>(round_),
                     .plan_version = version_,
                     .rank = static_cast<std::uint32_t>(rank),
                     .samples = sizes_[rank],
                     .compute_seconds = seconds,
                     .round_seconds = LongestSeconds()});
  }
  if (travelling_.empty()) {
    travelling_ = policy_.Decide(sizes_).batch_sizes;
    arrives_at_ = round_ + options_.travel_rounds;
    if (!travelling_.empty()) {
      proposal_rounds_.push_back(round_);
      proposed_.push_back(travelling_);
    }
  }
  ++round_;
}

int VirtualCluster::ProposalsAfter(int round) const {
  return static_cast<int>(std::count_if(proposal_rounds_.begin(), proposal_rounds_.end(),
                                        [&](int at) { return at >= round; }));
}

double VirtualCluster::LongestSeconds() const {
  double longest = 0;
  for (std::size_t rank = 0; rank < sizes_.size(); ++rank) {
    longest = std::max(longest, MeanSeconds(options_.workers[rank], sizes_[rank]));
  }
  return longest;
}

double VirtualCluster::IdealSeconds() const {
  double longest = 0;
  const std::vector<double> shares = IdealShares();
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    longest = std::max(longest, MeanSeconds(options_.workers[rank], shares[rank]));
  }
  return longest;
}

double VirtualCluster::WorstShareError() const {
  double worst = 0;
  const std::vector<double> shares = IdealShares();
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    worst = std::max(worst, std::abs(sizes_[rank] / shares[rank] - 1));
  }
  return worst;
}

std::vector<double> VirtualCluster::IdealShares() const {
  // Equal times T: sum_i (T - a_i) v_i = B. Workers whose fixed time exceeds T are not modelled.
  double speed_sum = 0;
  double fixed_samples = 0;
  for (const VirtualWorker& worker : options_.workers) {
    speed_sum += worker.speed;
    fixed_samples += worker.fixed_seconds * worker.speed;
  }
  const double total = std::accumulate(sizes_.begin(), sizes_.end(), 0.0);
  const double seconds = (total + fixed_samples) / speed_sum;
  std::vector<double> shares;
  for (const VirtualWorker& worker : options_.workers) {
    shares.push_back((seconds - worker.fixed_seconds) * worker.speed);
  }
  return shares;
}

}  // namespace tactus::policies
