// A batch policy as one axis of the planner.

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "policies/axis_policy.h"
#include "policies/batch_policy.h"

namespace tactus::policies {

// A change of shares that a batch policy decided, as a proposal: its promise, a shorter
// computation, becomes one of samples/s, in which the transfer has its share: by Forecast, or while
// the transfer is unknown g / (1 - g).
//
// g  [1]  relative fall of the longest step that the policy predicts
//
// Source: design.
Proposal ProposeShares(const Situation& situation, BatchDecision decision);

// Lets a policy that knows batch sizes alone take part.
class BatchAxis final : public AxisPolicy {
 public:
  // policy: not null.
  explicit BatchAxis(std::unique_ptr<BatchPolicy> policy);

  std::string Start(Plan& first, const Observations& seen) override;
  void Observe(const Report& report) override { policy_->Observe(report); }
  std::optional<Proposal> Decide(const Situation& situation) override;

 private:
  const std::unique_ptr<BatchPolicy> policy_;
};

}  // namespace tactus::policies
