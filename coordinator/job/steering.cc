#include "coordinator/job/steering.h"

#include <utility>

#include "base/check.h"

namespace tactus::job {

Steering::Steering(std::unique_ptr<policies::PlanPolicy> policy, std::uint64_t last_version)
    : policy_(std::move(policy)) {
  TACTUS_CHECK(policy_ != nullptr);
  newest_.version = last_version;
}

policies::Revision Steering::Start(const policies::StartingGroup& group) {
  anew_.reset();
  encodings_ = group.encodings;
  policies::Revision revision = policy_->Start(group);
  Number(revision, group.members);
  adopted_ = newest_;
  return revision;
}

void Steering::Resume(const policies::Plan& adopted, const policies::Plan& newest,
                      const policies::KnownEncodings& encodings) {
  encodings_ = encodings;
  policy_->Resume(adopted, encodings);
  adopted_ = adopted;
  // Which members run the newest is not on record: a whole round has to prove it anew.
  newest_ = newest.version > adopted.version ? newest : adopted;
  proven_ = false;
}

void Steering::Replace(std::unique_ptr<policies::PlanPolicy> policy,
                       const std::optional<policies::StartingGroup>& group) {
  TACTUS_CHECK(policy != nullptr);
  // It refuses what was learned under other options.
  policy->Recall(policy_->Memory(), static_cast<std::uint32_t>(newest_.batch_sizes.size()));
  policy_ = std::move(policy);
  if (group) (anew_ = group)->encodings = encodings_;
  // Without sizes there is no plan to go on under yet: Start() comes first.
  if (!newest_.batch_sizes.empty()) policy_->Resume(newest_, encodings_);
}

void Steering::Observe(const policies::Report& report) { policy_->Observe(report); }

void Steering::RoundDone(std::uint64_t plan_version) {
  // A round under the plan before: the newest still travels.
  if (plan_version != newest_.version) return;
  proven_ = true;
  adopted_ = newest_;
}

std::optional<policies::Revision> Steering::Decide(std::optional<double> seconds_left) {
  if (!proven_) return std::nullopt;
  std::optional<policies::Revision> revision;
  if (anew_) {
    anew_->before = newest_;
    revision = policy_->Start(*anew_);
    anew_.reset();
  } else {
    revision = policy_->Decide(newest_, seconds_left);
  }
  if (revision) Number(*revision, newest_.batch_sizes.size());
  return revision;
}

std::optional<policies::Revision> Steering::Revert(const policies::Decision& decision) {
  TACTUS_CHECK(Due());
  std::optional<policies::Revision> revision = policy_->Revert(newest_, decision);
  if (revision) Number(*revision, newest_.batch_sizes.size());
  return revision;
}

void Steering::Number(policies::Revision& revision, std::size_t members) {
  TACTUS_CHECK(policies::Fits(revision.plan, static_cast<std::uint32_t>(members)));
  // Consecutive over all groups and policies of the job: a version names one plan for good.
  revision.plan.version = newest_.version + 1;
  for (policies::Decision& decision : revision.decisions) {
    decision.plan_version = revision.plan.version;
  }
  newest_ = revision.plan;
  proven_ = false;
}

}  // namespace tactus::job
