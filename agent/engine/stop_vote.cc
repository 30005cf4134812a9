#include "agent/engine/stop_vote.h"

#include <array>
#include <cstdio>
#include <utility>

namespace tactus::engine {
namespace {

bool GoesOn(StopKind kind) { return kind == StopKind::kSuspend || kind == StopKind::kRegroup; }

}  // namespace

std::string TimeIsUpWords(Duration limit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.6g s are over", ToSeconds(limit));
  return text.data();
}

void StopVote::Request(std::string reason, StopKind kind) {
  const bool yields =
      kind == StopKind::kRegroup || (kind == StopKind::kSuspend && kind_ != StopKind::kRegroup);
  if (wanted_ && (kind_ == kind || yields)) return;
  wanted_ = true;
  time_is_up_ = false;
  kind_ = kind;
  reason_ = std::move(reason);
}

void StopVote::TimeIsUp(Duration limit) {
  // A job whose time is up has nothing to go on to.
  if (wanted_ && !GoesOn(kind_)) return;
  Request(TimeIsUpWords(limit), StopKind::kFinish);
  time_is_up_ = true;
}

void StopVote::Regrouped() {
  decided_ = false;
  if (kind_ != StopKind::kRegroup) return;
  wanted_ = false;
  reason_.clear();
}

void StopVote::Cast(Lanes& lanes) const {
  if (!wanted_) return;
  lanes.stop_votes = 1;
  lanes.discard_votes = kind_ == StopKind::kDiscard ? 1 : 0;
  lanes.suspend_votes = kind_ == StopKind::kSuspend ? 1 : 0;
  lanes.regroup_votes = kind_ == StopKind::kRegroup ? 1 : 0;
}

Verdict StopVote::Decide(const std::string& condition, const Lanes& lanes) {
  decided_ = condition.empty() && lanes.stop_votes > 0;
  if (condition.empty() && !decided_) return {};
  Verdict verdict{.outcome = Outcome::kFinished, .reason = condition};
  if (decided_) verdict.reason = reason_.empty() ? "another member asked to stop" : reason_;
  if (lanes.discard_votes > 0) {
    verdict.outcome = Outcome::kDiscarded;
  } else if (decided_ && lanes.regroup_votes == lanes.stop_votes) {
    verdict.outcome = Outcome::kRegrouped;
  } else if (decided_ && lanes.suspend_votes + lanes.regroup_votes == lanes.stop_votes) {
    verdict.outcome = Outcome::kSuspended;
  }
  return verdict;
}

}  // namespace tactus::engine
