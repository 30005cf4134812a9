#include "coordinator/job/steering.h"

#include <utility>

#include "base/check.h"

namespace tactus::job {

Steering::Steering(std::unique_ptr<policies::BatchPolicy> policy, std::uint64_t last_version)
    : policy_(std::move(policy)) {
  TACTUS_CHECK(policy_ != nullptr);
  newest_.version = last_version;
}

const policies::Plan& Steering::Start(std::uint32_t members) {
  policies::BatchDecision decision = policy_->Start(members);
  TACTUS_CHECK(decision.batch_sizes.size() == members);
  ++newest_.version;
  newest_.batch_sizes = std::move(decision.batch_sizes);
  newest_.reason = std::move(decision.reason);
  adopted_ = newest_;
  proven_ = false;
  return newest_;
}

void Steering::Resume(const policies::Plan& adopted, const policies::Plan& newest) {
  policy_->Start(static_cast<std::uint32_t>(adopted.batch_sizes.size()));
  adopted_ = adopted;
  newest_ = newest.version > adopted.version ? newest : adopted;
  proven_ = false;
}

void Steering::Observe(const policies::Report& report) { policy_->Observe(report); }

void Steering::RoundDone(std::uint64_t plan_version) {
  if (plan_version != newest_.version) return;
  proven_ = true;
  adopted_ = newest_;
}

std::optional<policies::Plan> Steering::Decide() {
  if (!proven_) return std::nullopt;
  policies::BatchDecision decision = policy_->Decide(newest_.batch_sizes);
  if (decision.batch_sizes.empty() || decision.batch_sizes == newest_.batch_sizes) {
    return std::nullopt;
  }
  TACTUS_CHECK(decision.batch_sizes.size() == newest_.batch_sizes.size());
  ++newest_.version;
  newest_.batch_sizes = std::move(decision.batch_sizes);
  newest_.reason = std::move(decision.reason);
  proven_ = false;
  return newest_;
}

}  // namespace tactus::job
