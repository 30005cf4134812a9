#include "coordinator/job/joiners.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "coordinator/job/group_formation.h"

namespace tactus::job {

namespace {

// Null: it is not among them.
const Joiner* FindIn(const std::vector<Joiner>& joiners, WorkerId worker) {
  const auto found =
      std::ranges::find(joiners, worker, [](const Joiner& joiner) { return joiner.member.worker; });
  return found == joiners.end() ? nullptr : &*found;
}

bool IsReady(const Joiner& joiner) { return joiner.ready.has_value(); }

bool IsFaster(const Joiner& one, const Joiner& other) {
  return one.ready->samples_per_second > other.ready->samples_per_second;
}

}  // namespace

void Joiners::Start(const std::vector<MemberRecord>& members, Instant now) {
  TACTUS_CHECK(coming_.empty());
  for (const MemberRecord& member : members) coming_.push_back({.member = member});
  since_ = now;
}

bool Joiners::Has(WorkerId worker) const {
  return FindIn(coming_, worker) != nullptr || FindIn(spares_, worker) != nullptr;
}

std::vector<MemberRecord> Joiners::members() const {
  std::vector<MemberRecord> members;
  for (const Joiner& joiner : coming_) members.push_back(joiner.member);
  for (const Joiner& spare : spares_) members.push_back(spare.member);
  return members;
}

void Joiners::SetReady(WorkerId worker, const ReadyMessage& ready, Instant now) {
  if (std::ranges::none_of(coming_, IsReady)) first_ready_ = now;
  for (Joiner& joiner : coming_) {
    if (joiner.member.worker == worker && !joiner.ready) joiner.ready = ready;
  }
}

MemberRecord Joiners::Remove(WorkerId worker) {
  TACTUS_CHECK(Has(worker));
  const Joiner* const found = FindIn(coming_, worker);
  MemberRecord member = (found != nullptr ? found : FindIn(spares_, worker))->member;
  const auto is_it = [worker](const Joiner& joiner) { return joiner.member.worker == worker; };
  std::erase_if(coming_, is_it);
  std::erase_if(spares_, is_it);
  return member;
}

void Joiners::Clear() {
  coming_.clear();
  spares_.clear();
}

std::optional<Instant> Joiners::Due() const {
  const auto ready = std::ranges::count_if(coming_, IsReady);
  if (ready == 0) return std::nullopt;
  if (ready == std::ssize(coming_)) return first_ready_;
  return first_ready_ + (first_ready_ - since_);
}

std::vector<Joiner> Joiners::Ready() const {
  std::vector<Joiner> ready;
  std::ranges::copy_if(coming_, std::back_inserter(ready), IsReady);
  ready.insert(ready.end(), spares_.begin(), spares_.end());
  std::ranges::stable_sort(ready, IsFaster);
  return ready;
}

std::vector<Joiner> Joiners::Take(std::size_t most) {
  std::vector<Joiner> chosen = Ready();
  chosen.resize(std::min(most, chosen.size()));
  std::vector<Joiner> taken;
  const auto take_from = [&](std::vector<Joiner>& joiners) {
    std::erase_if(joiners, [&](const Joiner& joiner) {
      const bool is_chosen = FindIn(chosen, joiner.member.worker) != nullptr;
      if (is_chosen) taken.push_back(joiner);
      return is_chosen;
    });
  };
  take_from(coming_);
  take_from(spares_);
  std::vector<Joiner> left;
  std::ranges::copy_if(coming_, std::back_inserter(left), IsReady);
  std::erase_if(coming_, IsReady);
  for (Joiner& spare : left) AddSpare(std::move(spare));
  return taken;
}

void Joiners::AddSpare(Joiner joiner) {
  TACTUS_CHECK(joiner.ready && !Has(joiner.member.worker));
  spares_.insert(std::ranges::upper_bound(spares_, joiner, IsFaster), std::move(joiner));
}

std::string OddLoadWords(const ReadyMessage& ready, const ReadyMessage& group) {
  for (const LoadedCount& count : kLoadedCounts) {
    const std::uint64_t found = ready.*count.value;
    const std::uint64_t expected = group.*count.value;
    if (found == expected) continue;
    return "has " + std::to_string(found) + " " + count.noun + ", the group has " +
           std::to_string(expected);
  }
  if (ProgramHash(ready) != ProgramHash(group)) return "is another program than the group's";
  for (const std::string& name : group.encodings) {
    const bool known = std::ranges::find(ready.encodings, name) != ready.encodings.end();
    if (!known) return "does not know the encoding " + name + ", which the group does";
  }
  return "";
}

}  // namespace tactus::job
