// Periodic averaging whose period follows the loss: AdaComm as the planner's synchronization
// policy.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fields.h"
#include "policies/adacomm.h"
#include "policies/axis_policy.h"
#include "policies/period_search.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// Asks Adacomm at every averaging and plans the period it gives; every_step in place of a period of
// 1, so that an ordinary momentum acts again. tau_0 is the job's or, when that is 0,
// PeriodSearch's. F_0 is the loss of the first LossWindow::kSteps mini-batches of each
// worker, i.e. soon after the start rather than before it.
//
// A new group goes on with the period of the former one, which follows the root of the transfer
// when that is measured; F_0 and tau_0 stay. After Resume() the loss of that time is F_0 and the
// period in force tau_0.
//
// Source: memory, unverified, [adacomm] section 4: the rule; design: where F_0 is measured.
class AdacommSynchronization final : public RememberingPolicy<AdacommSynchronization> {
 public:
  explicit AdacommSynchronization(const SynchronizationOptions& options);

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  std::string Follow(Plan& plan, const Observations& seen) const override;

  friend void Fields(auto& archive, Of<AdacommSynchronization> auto& policy) {
    archive("period_initial", policy.period_initial_);
    archive("search", policy.search_);
    archive("rule", policy.rule_);
    archive("loss_initial", policy.loss_initial_);
    archive("period", policy.period_);
    archive("seconds_seen", policy.seconds_seen_);
    archive("transfer_seconds", policy.transfer_seconds_);
    archive("members_changed", policy.members_changed_);
  }
  friend bool Sound(const AdacommSynchronization& policy) {
    return policy.period_initial_ <= policy.options_.period_max;
  }

 private:
  std::optional<Proposal> Search(const Situation& situation);
  std::optional<Proposal> Average(const Situation& situation);

  const SynchronizationOptions options_;
  std::uint32_t period_initial_ = 0;  // tau_0; 0: being searched
  std::optional<PeriodSearch> search_;
  std::optional<Adacomm> rule_;
  std::optional<double> loss_initial_;  // F_0
  std::uint32_t period_ = 1;            // that was chosen last
  double seconds_seen_ = 0;
  double transfer_seconds_ = 0;   // of a round, as it was last known
  bool members_changed_ = false;  // and the transfer is not known anew yet
};

// Asks the rule what it makes of the latest averaging, and words its answer. A round that was lost
// to numbers that are not finite halves the period.
//
// seconds  since the rule was asked before
// Returns the plan with the new period, or nothing when it stays. REQUIRES: a whole round, speeds
// known; the plan in force is periodic or of every step.
std::optional<Proposal> AskAdacomm(Adacomm& rule, const Situation& situation, double seconds);

}  // namespace tactus::policies
