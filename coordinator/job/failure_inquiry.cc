#include "coordinator/job/failure_inquiry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

Finding Explain(const MemberRecord& member, const WorkerExited& exit) {
  std::string how = " ended before the job did";
  if (exit.signal != 0) {
    how = " was ended by " + SignalWords(exit.signal);
  } else if (exit.exit_code != 0) {
    how = " ended with exit code " + std::to_string(exit.exit_code);
  }
  const std::string line = LastLine(exit.log_tail);
  return {.worker = member.worker,
          .evidence = exit.signal != 0 ? Evidence::kSignal : Evidence::kExit,
          .reason = WorkerName(member) + how + (line.empty() ? "" : ": " + line)};
}

Finding Explain(const MemberRecord& member, const NodeLost& loss) {
  return {.worker = member.worker,
          .evidence = Evidence::kNodeLost,
          .reason = "node " + member.node + " was lost: " + loss.reason};
}

Finding Explain(const MemberRecord& member, const AgentRestarted& restart) {
  // While both were away, the worker may have ended first and the agent's restart been harmless.
  if (restart.awaited) {
    return {.worker = member.worker,
            .evidence = Evidence::kAbsence,
            .reason = "the coordinator restarted and " + WorkerName(member) + " did not come back"};
  }
  return {.worker = member.worker,
          .evidence = Evidence::kNodeLost,
          .reason =
              "the agent of node " + member.node + " restarted, which ended " + WorkerName(member)};
}

}  // namespace

Finding FindingOf(const MemberRecord& member, const Departure& departure) {
  return std::visit([&](const auto& how) { return Explain(member, how); }, departure);
}

Finding FindingOf(const MemberRecord& member, const FailedMessage& message) {
  const bool consequence = message.lost_generation > 0;
  return {
      .worker = member.worker,
      .evidence = consequence ? Evidence::kConsequence : Evidence::kOwnWords,
      .reason = WorkerName(member) + (consequence ? " lost its group: " : ": ") + message.message,
      .field = message.field,
      .own = !consequence && !message.transient};
}

Finding FindingOf(const MemberRecord& member, const GroupLostMessage& message) {
  return {.worker = member.worker,
          .evidence = Evidence::kConsequence,
          .reason = WorkerName(member) + " lost its group: " + message.reason};
}

void FailureInquiry::Add(Finding finding, Instant now) {
  // The clock runs from the first sign, so that a group whose members fail one by one is not
  // awaited for ever.
  if (findings_.empty()) opened_ = now;
  const bool known = std::ranges::any_of(findings_, [&finding](const Finding& other) {
    return other.worker == finding.worker && other.evidence == finding.evidence;
  });
  if (!known) findings_.push_back(std::move(finding));
}

void FailureInquiry::Withdraw(WorkerId worker) {
  std::erase_if(findings_, [worker](const Finding& finding) { return finding.worker == worker; });
}

bool FailureInquiry::Heard(WorkerId worker) const {
  return std::ranges::any_of(findings_, [worker](const Finding& finding) {
    return finding.worker == worker &&
           (finding.evidence == Evidence::kConsequence || finding.evidence == Evidence::kOwnWords);
  });
}

bool FailureInquiry::Conclusive() const { return open() && Best().evidence >= Evidence::kNodeLost; }

const Finding& FailureInquiry::Best() const {
  TACTUS_CHECK(open());
  return *std::ranges::max_element(findings_, {}, &Finding::evidence);
}

}  // namespace tactus::job
