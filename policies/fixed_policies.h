// The axes left as the job's file has them: what does not adapt.

#pragma once

#include <cstdint>
#include <string>

#include "policies/axis_policy.h"
#include "policies/planner_options.h"

namespace tactus::policies {

// The same batch size for every worker, whatever its speed: the baseline.
class FixedBatch final : public AxisPolicy {
 public:
  explicit FixedBatch(const BatchOptions& options) : options_(options) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;

 private:
  const BatchOptions options_;
};

// every_step, periodic with its period, or delayed with at most so many steps a round. A group of
// one replica runs every step: it has nobody to exchange with. A period that the batch sizes do not
// allow (kRoundSamplesMax) is shortened.
class FixedSynchronization final : public AxisPolicy {
 public:
  // period: >= 1, of kPeriodic and kDelayed.
  FixedSynchronization(Synchronization synchronization, std::uint32_t period)
      : synchronization_(synchronization), period_(period) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;
  std::string Follow(Plan& plan, const Observations& seen) const override;

 private:
  const Synchronization synchronization_;
  const std::uint32_t period_;
};

class FixedAggregation final : public AxisPolicy {
 public:
  explicit FixedAggregation(Aggregation aggregation) : aggregation_(aggregation) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;

 private:
  const Aggregation aggregation_;
};

class FixedLearningRate final : public AxisPolicy {
 public:
  explicit FixedLearningRate(LearningRateRule rule) : rule_(rule) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;

 private:
  const LearningRateRule rule_;
};

// Dense all the same in a group of one member, which has nobody to send to, in one of which not all
// know the encoding, and in one in which it sends no less than dense values do.
class FixedEncoding final : public AxisPolicy {
 public:
  // replica_members: BatchOptions'. What a member has travels between those of all replicas.
  FixedEncoding(Encoding encoding, const EncodingOptions& options,
                std::uint32_t replica_members = 1)
      : encoding_(encoding), options_(options), replica_members_(replica_members) {}

  std::string Start(Plan& first, const Observations& seen) override;
  std::optional<Proposal> Decide(const Situation& situation) override;

 private:
  std::string WhyDense(const Observations& seen) const;

  const Encoding encoding_;
  const EncodingOptions options_;
  const std::uint32_t replica_members_;
};

}  // namespace tactus::policies
