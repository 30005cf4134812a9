#include "coordinator/telemetry/awaited_nodes.h"

namespace tactus::telemetry {

void AwaitedNodes::Await(const job::JobRecord& record) {
  switch (record.state) {
    case job::JobState::kRunning:
    case job::JobState::kStopping:
    case job::JobState::kSuspending:
      break;
    default:
      return;
  }
  for (const job::MemberRecord& member : record.members) {
    if (awaited_.insert(member.node).second) metrics_.nodes().Set(member.node, {});
  }
}

void AwaitedNodes::GiveUp() {
  for (const std::string& node : awaited_) {
    metrics_.nodes().Lose(node);
    metrics_.CountMembershipChange("lost");
  }
  awaited_.clear();
}

}  // namespace tactus::telemetry
