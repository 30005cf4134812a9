#include "coordinator/job/reversal.h"

#include <algorithm>
#include <utility>

namespace tactus::job {
namespace {

// The group under whose plans it was decided; null: it is not on record, or does not say.
const GroupRecord* GroupOf(const JobRecord& record, std::uint64_t plan_version) {
  const GroupRecord* found = nullptr;
  for (const GroupRecord& group : record.groups) {
    if (group.first_plan != 0 && group.first_plan <= plan_version) found = &group;
  }
  return found;
}

std::string DevicesOf(const std::vector<MemberRecord>& members) {
  std::string text;
  for (const MemberRecord& member : members) {
    text += (text.empty() ? "" : ", ") + member.node + "/" + member.device;
  }
  return text;
}

}  // namespace

bool SameDevices(const std::vector<MemberRecord>& one, const std::vector<MemberRecord>& other) {
  return std::ranges::equal(one, other, [](const MemberRecord& a, const MemberRecord& b) {
    return a.node == b.node && a.device == b.device;
  });
}

std::string WhyNotReverted(const JobRecord& record, const policies::Decision& decision,
                           std::uint64_t in_force) {
  const std::string version = std::to_string(decision.plan_version);
  if (decision.from.empty()) {
    return "plan " + version + " is the first of a group or of other settings: nothing was before";
  }
  if (record.reversal) {
    return "decision " + policies::IdOf({record.reversal->plan_version, record.reversal->axis}) +
           " is being taken back: wait until the plan after " + std::to_string(in_force) +
           " is in force";
  }
  const GroupRecord* const group = GroupOf(record, decision.plan_version);
  const bool present = group != nullptr && group == &record.groups.back();
  const std::uint64_t last = present ? in_force : group == nullptr ? 0 : group->last_plan;
  if (present && decision.plan_version > last) {
    return "plan " + version + " is not in force yet, but plan " + std::to_string(last) +
           ": wait until all workers run it";
  }
  if (last != 0 && decision.plan_version > last) {
    return "plan " + version + " never came into force: its group ended under plan " +
           std::to_string(last);
  }
  if (decision.axis != policies::Axis::kBatch) return "";
  if (group == nullptr) return "whose batch sizes they were is not on record any more";
  if (SameDevices(group->members, record.members)) return "";
  return "the batch sizes before it were those of " + DevicesOf(group->members) +
         ", and the group is " + DevicesOf(record.members);
}

// In the order of the axes, as settings have them that are read from a specification.
void Freeze(JobSettings& settings, policies::Axis axis) {
  std::vector<policies::Axis>& frozen = settings.adapt.frozen;
  const auto at = std::ranges::lower_bound(frozen, axis);
  if (at == frozen.end() || *at != axis) frozen.insert(at, axis);
}

}  // namespace tactus::job
