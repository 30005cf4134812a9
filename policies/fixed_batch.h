// The same batch size for every worker, whatever its speed: the baseline.

#pragma once

#include "policies/batch_policy.h"

namespace tactus::policies {

class FixedBatch final : public BatchPolicy {
 public:
  explicit FixedBatch(const BatchOptions& options) : options_(options) {}

  BatchDecision Start(const StartingGroup& group) override;
  void Observe(const Report& report) override;
  BatchDecision Decide(const std::vector<std::uint32_t>& in_force) override;

 private:
  const BatchOptions options_;
};

}  // namespace tactus::policies
