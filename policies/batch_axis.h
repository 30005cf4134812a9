// Shares in proportion to speed as one axis of the planner.

#pragma once

#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/proportional_batch.h"

namespace tactus::policies {

// A change of shares that was decided, as a proposal: its promise, a shorter computation, becomes
// one of samples/s:
//
//   lock step   g c / (1 - g c)
//   delayed     by Forecast, or while that is unknown g / (1 - g)
//
// g  [1]  relative fall of the longest computation that is predicted
// c  [1]  its share of the latest rounds under the plan in force; the rest is transfer
//
// Source: design.
Proposal ProposeShares(const Situation& situation, BatchDecision decision);

// ProportionalBatch, which knows batch sizes alone, as a policy of the planner.
class BatchAxis final : public RememberingPolicy<BatchAxis> {
 public:
  explicit BatchAxis(const BatchOptions& options) : shares_(options) {}

  std::string Start(Plan& first, const Observations& seen) override;
  void Observe(const Report& report) override { shares_.Observe(report); }
  std::optional<Proposal> Decide(const Situation& situation) override;

  friend void Fields(auto& archive, Of<BatchAxis> auto& policy) {
    archive("shares", policy.shares_);
  }

 private:
  ProportionalBatch shares_;
};

}  // namespace tactus::policies
