#include "coordinator/job/joiners.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "coordinator/job/group_formation.h"

namespace tactus::job {

void Joiners::Start(const std::vector<MemberRecord>& members, Instant now) {
  TACTUS_CHECK(empty());
  for (const MemberRecord& member : members) joiners_.push_back({.member = member});
  since_ = now;
}

const Joiner* Joiners::Find(WorkerId worker) const {
  const auto found = std::ranges::find(joiners_, worker,
                                       [](const Joiner& joiner) { return joiner.member.worker; });
  return found == joiners_.end() ? nullptr : &*found;
}

std::vector<MemberRecord> Joiners::members() const {
  std::vector<MemberRecord> members;
  for (const Joiner& joiner : joiners_) members.push_back(joiner.member);
  return members;
}

void Joiners::SetReady(WorkerId worker, const ReadyMessage& ready, Instant now) {
  const auto is_ready = [](const Joiner& joiner) { return joiner.ready.has_value(); };
  if (std::ranges::none_of(joiners_, is_ready)) first_ready_ = now;
  for (Joiner& joiner : joiners_) {
    if (joiner.member.worker == worker && !joiner.ready) joiner.ready = ready;
  }
}

MemberRecord Joiners::Remove(WorkerId worker) {
  const Joiner* const found = Find(worker);
  TACTUS_CHECK(found != nullptr);
  MemberRecord member = found->member;
  std::erase_if(joiners_,
                [worker](const Joiner& joiner) { return joiner.member.worker == worker; });
  return member;
}

std::optional<Instant> Joiners::Due() const {
  const auto ready = std::ranges::count_if(
      joiners_, [](const Joiner& joiner) { return joiner.ready.has_value(); });
  if (ready == 0) return std::nullopt;
  if (ready == std::ssize(joiners_)) return first_ready_;
  return first_ready_ + (first_ready_ - since_);
}

std::vector<Joiner> Joiners::TakeReady() {
  std::vector<Joiner> taken;
  std::ranges::copy_if(joiners_, std::back_inserter(taken),
                       [](const Joiner& joiner) { return joiner.ready.has_value(); });
  std::erase_if(joiners_, [](const Joiner& joiner) { return joiner.ready.has_value(); });
  return taken;
}

std::string OddLoadWords(const ReadyMessage& ready, const ReadyMessage& group) {
  for (const LoadedCount& count : kLoadedCounts) {
    const std::uint64_t found = ready.*count.value;
    const std::uint64_t expected = group.*count.value;
    if (found == expected) continue;
    return "has " + std::to_string(found) + " " + count.noun + ", the group has " +
           std::to_string(expected);
  }
  for (const std::string& name : group.encodings) {
    const bool known = std::ranges::find(ready.encodings, name) != ready.encodings.end();
    if (!known) return "does not know the encoding " + name + ", which the group does";
  }
  return "";
}

}  // namespace tactus::job
