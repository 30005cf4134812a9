// The plans of one job: which was decided last, which is in force, and when to decide anew.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/plan.h"
#include "policies/planner.h"

namespace tactus::job {

// Asks the policy and numbers its plans. At most one plan travels at a time: the next is decided
// when a whole round, reported by all members, ran under the newest one.
class Steering {
 public:
  // policy: not null. last_version: of any plan that the job ever had; 0: none.
  Steering(std::unique_ptr<policies::PlanPolicy> policy, std::uint64_t last_version);

  // A new group starts. Returns its first plan, which counts as adopted, and
  // why it is as it is.
  policies::Revision Start(const policies::StartingGroup& group);

  // What the policy has learned, and first of all after a restart, back; see policies::PlanPolicy.
  std::string Memory() const { return policy_->Memory(); }
  std::string Recall(std::string_view memory, std::uint32_t members) {
    return policy_->Recall(memory, members);
  }

  // Goes on after a restart with what was on record, and with what was recalled. An empty or older
  // `newest` means that nothing was travelling. encodings: that the group knows.
  void Resume(const policies::Plan& adopted, const policies::Plan& newest,
              const policies::KnownEncodings& encodings);

  // Another policy from now on: with what was learned where only other axes are frozen, else it
  // learns anew. `group`: the running one; then its first plan is the next one of Decide. Without:
  // it goes on under the plan in force, or with the first plan that is due from a former Replace.
  void Replace(std::unique_ptr<policies::PlanPolicy> policy,
               const std::optional<policies::StartingGroup>& group);

  void Observe(const policies::Report& report);

  // All members reported a round that all ran under `plan_version`.
  void RoundDone(std::uint64_t plan_version);

  // The next plan when one is due and better, else nothing. It travels from now on.
  std::optional<policies::Revision> Decide(std::optional<double> seconds_left);

  // A plan would be decided now: a whole round ran under the newest.
  bool Due() const { return proven_; }

  // What taking a decision back would make of the newest plan.
  policies::Undoing Undo(const policies::Decision& decision) const {
    return policy_->Undo(newest_, decision);
  }
  // The axis stays as it is from now on.
  void Freeze(policies::Axis axis) { policy_->Freeze(axis); }
  // In the place of Decide: takes it back, if it can be done. Requires: Due().
  std::optional<policies::Revision> Revert(const policies::Decision& decision);

  // The group as it was measured under the adopted plan; nothing: it is not yet.
  std::optional<policies::MeasuredGroup> Measured() const { return policy_->Measured(adopted_); }

  // What the next job of this kind should begin with; nothing: it is not known yet.
  std::optional<policies::Prior> Learned() const { return policy_->Learned(); }

  // Earlier decisions of which it became known what they gained.
  std::vector<policies::Decision> TakeMeasured() { return policy_->TakeMeasured(); }

  const policies::Plan& adopted() const { return adopted_; }
  const policies::Plan& newest() const { return newest_; }

 private:
  // The next plan, of a group of so many members.
  void Number(policies::Revision& revision, std::size_t members);

  std::unique_ptr<policies::PlanPolicy> policy_;
  std::optional<policies::StartingGroup> anew_;  // policy_ was replaced, its first plan is due
  policies::KnownEncodings encodings_;           // that the group knows
  policies::Plan adopted_;
  policies::Plan newest_;
  bool proven_ = false;  // a whole round ran under newest_
};

}  // namespace tactus::job
