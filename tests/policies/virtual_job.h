// A job in virtual rounds, closed over a Planner: workers of known speed, a transfer of known
// length and a loss of known curvature run what the planner decides.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/decision.h"
#include "policies/learning_rate.h"
#include "policies/plan.h"
#include "policies/planner.h"
#include "tests/policies/slow_noise.h"
#include "tests/policies/virtual_cluster.h"

namespace tactus::policies {

// A quadratic loss under noisy gradients, followed by its mean and its variance in each direction:
//
//   loss = floor + sum_j lambda_j (m_j^2 + v_j) / 2,   m_j^2 = distance^2 / sqrt(lambda_j) at first
//   m_j <- m_j - eta lambda_j m_j         of the round before when delayed
//   v_j <- (1 - eta lambda_j)^2 v_j + eta^2 (variance / n) (1 + drift (tau - 1)) / B
struct VirtualLoss {
  // lambda_j: of a wide range, so that the loss falls like a power of time.
  std::vector<double> curvatures = {1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001};
  double distance = 1;
  double variance = 1;  // of one sample's gradient
  double floor = 0;
  double drift = 0;         // how much noisier every further local step makes all of them
  double rate = 0.05;       // eta of the schedule
  double sample_noise = 0;  // standard deviation of one sample's loss
};

struct VirtualJobOptions {
  std::vector<VirtualWorker> workers{};
  PlannerOptions planner{};
  VirtualLoss loss{};
  double transfer_seconds = 0.1;  // dense
  double latency_seconds = 0;     // of it, that fewer bytes do not shorten
  double encode_seconds = 0;      // of a round that is not dense
  double encoding_noise = 0;      // of one with noise of its own, over that of the gradients
  double residual_worth = 1;      // of a sample, where a rest is left for later rounds
  double residual_share = 0;      // of the dense bytes that are sent there; 0: as its row has it
  double update_seconds = 0;      // Report::update_seconds
  double parameters = 1e9;        // that Report::bytes_sent is of
  double delayed_slowdown = 1;    // of computing while gradients travel
  double noise = 0;               // standard deviation of log(time), of steps and transfers
  SlowNoiseOptions slow{};        // of the workers' speeds
  int travel_rounds = 2;          // from a decision to the first round under it
  std::vector<double> tried_speeds{};  // StartingGroup::speeds
  std::optional<Prior> prior{};        // likewise
  double exchange_seconds = 0;         // likewise
  KnownEncodings encodings{};          // likewise
  std::vector<double> link_rates{};    // Report::link_bytes_per_second, by rank; none: not known
  std::uint64_t seed = 1;
};

class VirtualJob {
 public:
  explicit VirtualJob(const VirtualJobOptions& options);

  // A round is run, reported by all, and the planner is asked unless its plan is travelling.
  void Run(int rounds);
  // Runs rounds until that time, or at most so many rounds.
  void RunUntil(double seconds, int rounds_max = 1'000'000);
  // The workers meet as a new group, at the point that training had come to; those that go on after
  // a loss begin with the plan of before.
  void Regroup(bool goes_on = false);

  // The planner's process ends and another takes its place, which knows what the former one
  // remembered, and no more. Returns Planner::Recall's answer.
  std::string RestartPlanner();

  const Plan& plan() const { return plan_; }
  const Planner& planner() const { return *planner_; }
  VirtualWorker& worker(std::size_t rank) { return options_.workers[rank]; }
  double seconds() const { return seconds_; }
  double loss() const;  // without the noise of measuring
  std::uint64_t round() const { return round_; }
  double samples() const { return samples_; }
  double noise_scale() const;  // [samples], as it is
  // All decisions but those of the start.
  const std::vector<Decision>& decisions() const { return decisions_; }
  const std::vector<Decision>& measured() const { return measured_; }
  std::vector<Decision> DecisionsOf(Axis axis) const;
  // Plans that the job ran under, in order.
  const std::vector<Plan>& plans() const { return plans_; }
  VirtualJobOptions& options() { return options_; }

 private:
  struct Times {
    std::vector<std::uint32_t> steps{};
    std::vector<double> compute{}, blocked{}, transfer{}, round{};
  };

  void RunRound();
  void FollowTrial();
  Times LockStep();
  Times Delayed();
  std::uint32_t Members() const { return static_cast<std::uint32_t>(begun_.size()); }
  double Noisy(double seconds);
  double ShareSent() const;
  double TransferSeconds();
  double StepSeconds(std::size_t rank);
  double GradientNorm2() const;
  Report Learn(const Times& times);
  void Update(double rate, double samples, bool delayed);

  VirtualJobOptions options_;
  std::optional<Planner> planner_;
  Rng rng_;
  SlowNoise slow_;
  LearningRate rate_;
  Plan plan_;
  Plan travelling_;
  std::uint64_t arrives_at_ = 0;
  std::uint64_t round_ = 0;
  double seconds_ = 0;
  double samples_ = 0;
  std::vector<double> mean_, mean_before_, variance_;  // one a direction
  struct Kept {
    std::vector<double> mean{}, variance{};
    LearningRate::State rate{};
  };
  std::optional<Kept> kept_;
  std::vector<double> begun_;  // delayed: when a member began its round
  double transfer_end_ = 0;    // delayed: of the round before
  bool was_delayed_ = false;
  std::vector<Decision> decisions_;
  std::vector<Decision> measured_;
  std::vector<Plan> plans_;
};

}  // namespace tactus::policies
