// Micro-batches for delayed rounds, and what another policy says for the rest: an elastic batch.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "policies/axis_policy.h"
#include "policies/planner_options.h"
#include "policies/training_wait.h"

namespace tactus::policies {

// The micro-batches mu_i of delayed rounds, whose batch is an outcome: all members take the time t
// for one, a fraction of the transfer, so that no reduction waits long for the last of them:
//
//   mu_i = v_i t within [batch_min, batch_max],   t = D kFraction within [kShareMin T, T]
//   T = total / sum_i v_i
//
// v_i  [samples/s]  speeds;  D  [s]  transfer of a round
// T    [s]  a step of the job's own batch; what each batch costs beside its samples keeps t from
//           going far below
// total  [samples]  of a step that is not delayed, >= 1
//
// Source: design; that a batch grows until the next synchronization starts: [abs-sgd] abstract.
std::vector<std::uint32_t> MicroBatches(const Observations& seen, std::uint64_t total,
                                        const BatchOptions& options);

// While the plan is delayed, MicroBatches whenever one of the sizes is off by more than kOffMin, at
// most every kRestSeconds of training and kRestRounds rounds; the seconds double with every change
// and halve in kHalfLifeSeconds; else what `otherwise` decides. Follows a change of the
// synchronization with either.
class MicroBatch final : public RememberingPolicy<MicroBatch> {
 public:
  static constexpr double kFraction = 0.25;
  static constexpr double kShareMin = 0.25;
  static constexpr double kOffMin = 0.25;
  static constexpr int kRestRounds = 10;
  static constexpr double kRestSeconds = 3;
  static constexpr double kRestSecondsMax = 600;
  static constexpr double kHalfLifeSeconds = 300;

  // otherwise: a batch policy, not null.
  MicroBatch(const BatchOptions& options, std::unique_ptr<AxisPolicy> otherwise);

  std::string Start(Plan& first, const Observations& seen) override;
  void Resume(const Plan& in_force) override;
  void Observe(const Report& report) override { otherwise_->Observe(report); }
  std::optional<Proposal> Decide(const Situation& situation) override;
  std::string Follow(Plan& plan, const Observations& seen) const override;

  friend void Fields(auto& archive, Of<MicroBatch> auto& policy) {
    archive("total", policy.total_);
    archive("rested", policy.rested_);
    archive("rest_seconds", policy.rest_seconds_);
    archive("seconds", policy.seconds_);
    archive("otherwise", *policy.otherwise_);
  }

 private:
  // Sizes for delayed rounds, when those given are off and enough was measured.
  std::optional<std::vector<std::uint32_t>> Better(const std::vector<std::uint32_t>& sizes,
                                                   const Observations& seen) const;

  const BatchOptions options_;
  const std::unique_ptr<AxisPolicy> otherwise_;
  std::uint64_t total_ = 1;  // [samples] of a step that is not delayed
  TrainingWait rested_{};    // since the latest change
  double rest_seconds_ = kRestSeconds;
  double seconds_ = 0;  // training time at the last look
};

}  // namespace tactus::policies
