// Every step first, periodic averaging once the schedule lowers the learning rate: post-local SGD.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "policies/axis_policy.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// The period H(t) of step t:
//
//   H(t) = 1 while eta(t) > kFall max_{s <= t} eta(s), and H = options.period for good from the
//   first
//          step on at which it is not
//
// eta  [1]  the learning rate as scheduled, without the gain of a learning rate rule
//
// So the noisy steps at a high rate are taken together, and what remains, when little changes in a
// step, is done with few exchanges. A group of one member runs every step, and keeps watching.
//
// After Resume() the highest rate is that seen since: where a coordinator was not there to see the
// rate fall, a group that runs every step goes on with it until the rate falls again.
//
// Source: [post-local] abstract: mini-batches first, local steps then; memory, unverified: that the
// first decay of the learning rate is where to change. Differs: half the highest rate in the place
// of any decay, so that warming up and the shoulder of a cosine are no decay.
class PostLocalSynchronization final : public AxisPolicy {
 public:
  static constexpr double kFall = 0.5;

  // options.period >= 1.
  explicit PostLocalSynchronization(const SynchronizationOptions& options)
      : period_(options.period) {}

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  std::string Follow(Plan& plan, const Observations& seen) const override;

 private:
  Proposal Change(const Situation& situation, double rate) const;

  const std::uint32_t period_;
  double rate_highest_ = 0;
  bool fallen_ = false;
};

}  // namespace tactus::policies
