// What the coordinator decides and what the workers saw: the plain data that policies live on.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tactus::policies {

enum class Synchronization { kEveryStep };
enum class Aggregation { kAverage };
enum class LearningRateRule { kConstant };

// Samples of one round at most, over all members: the engine counts them in float32, exact up to here.
inline constexpr std::uint64_t kRoundSamplesMax = std::uint64_t{1} << 24;

// How the next rounds run. All members of a group hold the same plan in every round: a plan takes
// effect in the round after the one in which every member voted for it (agent/engine/lanes.h).
struct Plan {
  // Consecutive within a job: a member that holds version v + 1 while v is in force votes for it.
  std::uint64_t version = 0;
  Synchronization synchronization = Synchronization::kEveryStep;
  Aggregation aggregation = Aggregation::kAverage;
  LearningRateRule learning_rate_rule = LearningRateRule::kConstant;
  // Samples a round, one entry a rank of the group. Each >= 0, sum >= 1.
  std::vector<std::uint32_t> batch_sizes{};
  // Why, for a person: "worker 3 runs at 0.25 of the fastest; round time 0.41 s -> 0.17 s".
  std::string reason{};

  friend bool operator==(const Plan&, const Plan&) = default;
};

// What one worker saw in one applied round. Times are durations of its own clock, in seconds.
struct Report {
  std::uint64_t round = 0;         // counts applied rounds of the job, from 0
  std::uint64_t plan_version = 0;  // the plan that the round ran under
  std::uint32_t rank = 0;          // in the group
  std::uint64_t samples = 0;       // of this worker
  double loss_sum = 0;             // over those samples
  double compute_seconds = 0;      // forward, backward and optimizer
  double blocked_seconds = 0;    // from its own last gradient to the reduced one: wait and transfer
  double round_seconds = 0;      // from one round's end to the next
  std::uint64_t bytes_sent = 0;  // payload of the collectives
  double gradient_norm2_local = 0;   // ||g_i||^2 of this worker's mean gradient; 0 without samples
  double gradient_norm2_global = 0;  // ||g||^2 of the mean gradient over all samples
  // Equal on every member, from the lanes of the round:
  std::uint64_t samples_global = 0;
  double loss_mean_global = 0;          // per sample
  std::uint32_t nonfinite_members = 0;  // > 0: the update was skipped everywhere
  std::uint64_t epoch = 0;              // of the round's samples
  std::uint64_t epoch_consumed = 0;     // samples of that epoch consumed, this round included
};

}  // namespace tactus::policies
