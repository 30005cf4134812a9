// Every step first, periodic averaging once the learning rate has halved: post-local SGD.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// The period H(k) at base step k:
//
//   H(k) = 1 below options.rate_falls_at, options.period from there on and for good
//
//   rate_falls_at = StepOfFall(schedule, kFall)  [base steps]  nothing: H = 1 to the end
//
// So the noisy steps at a high rate are taken together, and what remains, when little changes in a
// step, is done with few exchanges. A group of one member runs every step, and keeps watching.
// Where k is not known yet, as at the start of a job that goes on, a group runs every step until
// its first rounds say it.
//
// Source: [post-local] abstract: mini-batches first, local steps then; memory, unverified: that the
// first decay of the learning rate is where to change. Differs: half the highest rate in the place
// of any decay, so that the shoulder of a cosine is no decay.
class PostLocalSynchronization final : public RememberingPolicy<PostLocalSynchronization> {
 public:
  static constexpr double kFall = 0.5;

  // options.period >= 1.
  explicit PostLocalSynchronization(const SynchronizationOptions& options)
      : period_(options.period), rate_falls_at_(options.rate_falls_at) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  std::string Follow(Plan& plan, const Observations& seen) const override;

  friend void Fields(auto& archive, Of<PostLocalSynchronization> auto& policy) {
    archive("fallen", policy.fallen_);
  }

 private:
  Proposal Change(const Situation& situation) const;

  const std::uint32_t period_;
  const std::optional<std::uint64_t> rate_falls_at_;
  bool fallen_ = false;  // as far as was seen
};

}  // namespace tactus::policies
