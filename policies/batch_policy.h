// How many samples each worker takes in a round: the contract of every batch policy.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policies/plan.h"

namespace tactus::policies {

// What all batch policies are told at the start.
struct BatchOptions {
  std::uint32_t per_worker = 32;  // samples a worker a round, on average, >= 1; the sum is constant
  std::uint32_t batch_min = 1;    // of one worker, >= 1
  std::uint32_t batch_max = 1u << 20;  // of one worker, >= batch_min

  friend bool operator==(const BatchOptions&, const BatchOptions&) = default;
};

// A decision about the batch sizes. Empty `batch_sizes` means "leave it as it is".
struct BatchDecision {
  std::vector<std::uint32_t> batch_sizes{};  // one a rank
  std::string reason{};                      // never empty
  double predicted_gain = 0;  // relative fall of the round's compute time, 0.25 = a quarter shorter
};

// A policy sees reports and proposes batch sizes. Pure and total: every report may be folded in,
// every question has an answer. Not thread-safe.
class BatchPolicy {
 public:
  virtual ~BatchPolicy() = default;

  // A (new) group starts; what was learned of former ranks is forgotten. Returns the sizes to start
  // with.
  virtual BatchDecision Start(const StartingGroup& group) = 0;

  // Folds one worker's report in.
  virtual void Observe(const Report& report) = 0;

  // Proposes sizes given those in force, or leaves them. The caller asks when the former plan is in
  // force everywhere, so that a proposal is never made on top of one that is still travelling.
  virtual BatchDecision Decide(const std::vector<std::uint32_t>& in_force) = 0;
};

// Makes a policy by its name in the job file: "fixed", "proportional". Null for an unknown name;
// BatchPolicyNames() lists the known ones, sorted.
std::unique_ptr<BatchPolicy> MakeBatchPolicy(std::string_view name, const BatchOptions& options);
std::vector<std::string> BatchPolicyNames();

}  // namespace tactus::policies
